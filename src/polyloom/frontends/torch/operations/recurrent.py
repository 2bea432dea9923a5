"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from polyloom.frontends.graph.composites.recurrent import (
    Activation,
    Cell,
    States,
    Step,
    gru,
    last_states,
    lstm,
    plain,
    run,
)
from polyloom.frontends.graph.core import (
    Value,
    concatenated,
    refuse_if,
    relu,
    scalar,
    selected,
    squeezed,
    transposed,
    unsqueezed,
)
from polyloom.frontends.torch.call import Call, operations

_KINDS: dict[str, tuple[Step, tuple[int, ...], tuple[Activation, ...]]] = {
    "lstm": (lstm, (0, 1, 2, 3), (scalar.sigmoid, scalar.tanh, scalar.tanh)),
    "gru": (gru, (0, 1, 2), (scalar.sigmoid, scalar.tanh)),
    "rnn_tanh": (plain, (0,), (scalar.tanh,)),
    "rnn_relu": (plain, (0,), (relu,)),
}
"""The step of a cell, the order of its gates, its activations."""


def _cell(kind: str, weights: Sequence[Value], start: States, *, backwards: bool = False) -> Cell:
    """Return a cell of the weights of data and states, of both biases or none, and a projection or none."""
    w, r, *rest = weights
    bias_w, bias_r = rest[:2] if len(rest) > 1 else (None, None)
    projection = rest[-1] if len(rest) % 2 else None
    _, order, activations = _KINDS[kind]
    return Cell(w, r, bias_w, bias_r, start, activations, order, backwards, projection)


def _start(c: Call, kind: str) -> list[Value]:
    return c.tensors("hx") if kind == "lstm" else [c.input("hx")]


def _layers(c: Call, kind: str) -> Sequence[Value]:
    refuse_if(
        "input" not in c.arguments or "batch_sizes" in c.arguments, "sequences of several lengths, packed"
    )
    refuse_if(
        c.flag("train") and c.number("dropout", 0) != 0,
        "random numbers: export the module in `eval()` mode",
    )
    x, start = c.input("input"), _start(c, kind)
    if x.rank == 2:
        wide = [unsqueezed(v, [1]) for v in (x, *start)]
        return [squeezed(v, [1]) for v in _all_layers(c, kind, wide[0], wide[1:])]
    batch_first = c.flag("batch_first")
    found = _all_layers(c, kind, transposed(x, [1, 0, 2]) if batch_first else x, start)
    return [transposed(found[0], [1, 0, 2]) if batch_first else found[0], *found[1:]]


def _all_layers(c: Call, kind: str, x: Value, start: Sequence[Value]) -> Sequence[Value]:
    weights, ways, layers = c.tensors("params"), 1 + c.flag("bidirectional"), c.integer("num_layers")
    plain_count = 4 if c.flag("has_biases", True) else 2
    each = len(weights) // max(1, ways * layers)
    refuse_if(
        len(weights) != each * ways * layers or each not in (plain_count, plain_count + 1),
        f"{len(weights)} weights of {layers} layers",
    )
    runs = []
    for layer in range(layers):
        for number in range(layer * ways, (layer + 1) * ways):
            states = tuple(selected(s, 0, number) for s in start)
            own = weights[number * each : (number + 1) * each]
            cell = _cell(kind, own, states, backwards=number % ways == 1)
            runs.append(run(c.b, _KINDS[kind][0], cell, x))
        x = concatenated(c.b, [sequence for sequence, _ in runs[-ways:]], 2)
    return x, *last_states(c.b, runs)


def _one_step(c: Call, kind: str) -> Sequence[Value]:
    weights = [c.input(n) for n in ("w_ih", "w_hh", "b_ih", "b_hh") if c.given(n)]
    cell = _cell(kind, weights, tuple(_start(c, kind)))
    return run(c.b, _KINDS[kind][0], cell, unsqueezed(c.input("input"), [0]))[1]


OPERATIONS = operations(
    {kind: partial(_layers, kind=kind) for kind in _KINDS}
    | {f"{kind}_cell": partial(_one_step, kind=kind) for kind in _KINDS}
)
