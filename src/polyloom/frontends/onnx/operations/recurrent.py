"""Recurrent layers: RNN, GRU and LSTM with all that ONNX lets a cell have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from polyloom.frontends.graph.composites.recurrent import (
    Activation,
    Cell,
    Step,
    gru,
    last_states,
    lstm,
    plain,
    run,
)
from polyloom.frontends.graph.core import (
    Context,
    Expression,
    Refused,
    Table,
    Value,
    clipped,
    concatenated,
    elu,
    filled,
    hard_sigmoid,
    leaky,
    refuse_if,
    relu,
    scalar,
    selected,
    softplus,
    softsign,
    split_parts,
    transposed,
    unsqueezed,
)

_ACTIVATIONS: dict[str, Callable[[Expression, float, float], Expression]] = {
    "relu": lambda x, a, b: relu(x),
    "tanh": lambda x, a, b: scalar.tanh(x),
    "sigmoid": lambda x, a, b: scalar.sigmoid(x),
    "affine": lambda x, a, b: x * a + b,
    "leakyrelu": lambda x, a, b: leaky(x, a),
    "elu": lambda x, a, b: elu(x, a),
    "hardsigmoid": hard_sigmoid,
    "softsign": lambda x, a, b: softsign(x),
    "softplus": lambda x, a, b: softplus(x),
}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "elu": 1.0, "hardsigmoid": 0.2}
_BETA = {"affine": 0.0, "hardsigmoid": 0.5}
_WAYS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


def _activation(c: Context, name: str, number: int) -> Activation:
    function = _ACTIVATIONS.get(name.lower())
    if function is None:
        raise Refused(f"the activation `{name}`")
    alphas, betas = c.attribute("activation_alpha", ()), c.attribute("activation_beta", ())
    alpha = alphas[number] if number < len(alphas) else _ALPHA.get(name.lower(), 0.0)
    beta = betas[number] if number < len(betas) else _BETA.get(name.lower(), 0.0)
    return lambda x: function(x, alpha, beta)


def _activations(c: Context, number: int, defaults: Sequence[str]) -> tuple[Activation, ...]:
    """Return the activations of a direction.

    The sums of gates are cut off at ``clip`` and ``-clip``; the state of an LSTM is not, before its third
    activation (as onnxruntime has it).
    """
    count, clip = len(defaults), c.attribute("clip")
    names = c.attribute("activations", tuple(defaults) * 2)[number * count : (number + 1) * count]
    found = tuple(_activation(c, str(n), number * count + k) for k, n in enumerate(names))
    refuse_if(len(found) != count, f"{len(found)} activations of {count}")
    if clip is None:
        return found
    cut = (lambda x, f=f: f(clipped(x, -clip, clip)) for f in found[:2])
    return (*cut, *found[2:])


def _layer(
    c: Context, step: Step, order: tuple[int, ...], states: int, defaults: Sequence[str]
) -> Sequence[Value]:
    """Lower a kind of cell, whose weights have its gates in an ``order``, with so many ``states``."""
    batch_first = c.integer("layout", 0)
    x = transposed(c.input(0), (1, 0, 2)) if batch_first else c.input(0)
    ways = _WAYS.get(c.text("direction", "forward"))
    if ways is None or x.rank != 3:
        raise Refused(f"direction {c.text('direction')} of data of rank {x.rank}")
    runs = []
    for number, backwards in enumerate(ways):
        cell = _cell(c, number, order, states, _activations(c, number, defaults), backwards=backwards)
        runs.append(run(c.b, step, cell, x, c.optional(4)))
    sequence = concatenated(c.b, [unsqueezed(way, [1]) for way, _ in runs], 1)
    last = last_states(c.b, runs)
    if not batch_first:
        return sequence, *last
    return transposed(sequence, (2, 0, 1, 3)), *(transposed(v, (1, 0, 2)) for v in last)


def _cell(
    c: Context,
    number: int,
    order: tuple[int, ...],
    states: int,
    activations: tuple[Activation, ...],
    *,
    backwards: bool,
) -> Cell:
    batch_first, gates = c.integer("layout", 0), len(order)
    w, r = selected(c.input(1), 0, number), selected(c.input(2), 0, number)
    hidden = r.shape[1]
    refuse_if(w.shape[0] != gates * hidden, f"weights of {w.shape[0]} rows for {gates} gates of {hidden}")
    bias, holes = c.optional(3), c.optional(7)
    bias_w, bias_r = (
        [None] * 2 if bias is None else split_parts(selected(bias, 0, number), 0, [gates * hidden] * 2)
    )
    i, o, f = [None] * 3 if holes is None else split_parts(selected(holes, 0, number), 0, [hidden] * 3)
    given = map(c.optional, range(5, 5 + states))
    zero = filled(c.b, (c.input().shape[0 if batch_first else 1], hidden), 0, w.type)
    start = (zero if v is None else selected(v, 1 if batch_first else 0, number) for v in given)
    return Cell(
        w,
        r,
        bias_w,
        bias_r,
        tuple(start),
        activations,
        order,
        backwards,
        peepholes=(i, f, o),
        coupled=c.flag("input_forget"),
        late_reset=c.flag("linear_before_reset"),
    )


OPERATIONS: Table = {
    "RNN": partial(_layer, step=plain, order=(0,), states=1, defaults=("Tanh",)),
    "GRU": partial(_layer, step=gru, order=(1, 0, 2), states=1, defaults=("Sigmoid", "Tanh")),
    "LSTM": partial(_layer, step=lstm, order=(0, 2, 3, 1), states=2, defaults=("Sigmoid", "Tanh", "Tanh")),
}
