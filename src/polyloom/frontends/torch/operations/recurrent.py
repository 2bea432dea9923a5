"""Recurrent layers, unrolled: a step after another, gates as slices of one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyloom.frontends.graph.core import (
    Builder,
    Expression,
    Value,
    check_steps,
    concatenated,
    einsum,
    mapped,
    refuse_if,
    relu,
    scalar,
    selected,
    split_parts,
    squeezed,
    stacked,
    transposed,
    unsqueezed,
)
from polyloom.frontends.torch.call import Call, Lowering, operations

States = tuple[Value, ...]
Step = Callable[[Builder, Value, Value, States], States]
"""``x w^T + b`` of this step, ``h r^T + b``, the states before: the states after, the first is the result."""


def _lstm_step(b: Builder, xw: Value, hw: Value, states: States) -> States:
    parts = [split_parts(v, 1, [v.shape[1] // 4] * 4) for v in (xw, hw)]
    (xi, xf, xg, xo), (hi, hf, hg, ho) = parts

    def cell(*p: Expression) -> Expression:
        i, f = (scalar.sigmoid(scalar.add(p[k], p[k + 3])) for k in (0, 1))
        g = scalar.tanh(scalar.add(p[2], p[5]))
        return scalar.add(scalar.multiply(f, p[6]), scalar.multiply(i, g))

    new = mapped(b, cell, xi, xf, xg, hi, hf, hg, states[1], hint="cell")
    return mapped(
        b,
        lambda x, h, s: scalar.multiply(scalar.sigmoid(scalar.add(x, h)), scalar.tanh(s)),
        xo,
        ho,
        new,
        hint="hidden",
    ), new


def _gru_step(b: Builder, xw: Value, hw: Value, states: States) -> States:
    (xr, xz, xn), (hr, hz, hn) = (split_parts(v, 1, [v.shape[1] // 3] * 3) for v in (xw, hw))

    def hidden(*p: Expression) -> Expression:
        r, z = (scalar.sigmoid(scalar.add(p[k], p[k + 3])) for k in (0, 1))
        n = scalar.tanh(scalar.add(p[2], scalar.multiply(r, p[5])))
        return scalar.add(n, scalar.multiply(z, scalar.subtract(p[6], n)))

    return (mapped(b, hidden, xr, xz, xn, hr, hz, hn, states[0], hint="hidden"),)


def _plain_step(function: Callable[[Expression], Expression]) -> Step:
    def step(b: Builder, xw: Value, hw: Value, states: States) -> States:
        return (mapped(b, lambda x, h: function(scalar.add(x, h)), xw, hw, hint="hidden"),)

    return step


def _run(
    b: Builder, step: Step, x: Value, weights: Sequence[Value], states: States, *, backwards: bool
) -> tuple[list[Value], States]:
    """Return the results of one direction in the order of time, and its last states.

    ``x``: time first. ``weights``: of data, of states, the biases of both, or none; at last what the results
    are multiplied with, or none.
    """
    w, r, *rest = weights
    biases, projection = rest[: len(rest) // 2 * 2], rest[len(rest) // 2 * 2 :]
    xw = einsum(b, ["tni", "gi"], "tng", [x, w], hint="data")
    xw = mapped(b, scalar.add, xw, biases[0], hint="data_bias") if biases else xw
    results: list[Value] = []
    check_steps(x.shape[0])
    times = range(x.shape[0])
    for t in reversed(times) if backwards else times:
        hw = einsum(b, ["nh", "gh"], "ng", [states[0], r], hint="state")
        hw = mapped(b, scalar.add, hw, biases[1], hint="state_bias") if biases else hw
        states = step(b, selected(xw, 0, t), hw, states)
        if projection:
            projected = einsum(b, ["nh", "ph"], "np", [states[0], projection[0]], hint="projected")
            states = (projected, *states[1:])
        results.append(states[0])
    return results[::-1] if backwards else results, states


def _layers(step: Step, kinds: int) -> Lowering:
    """Return the operation of layers of cells with ``kinds`` states each."""

    def lowering(c: Call) -> Sequence[Value]:
        refuse_if(
            "input" not in c.arguments or "batch_sizes" in c.arguments, "sequences of several lengths, packed"
        )
        refuse_if(
            c.flag("train") and c.number("dropout", 0) != 0,
            "random numbers: export the module in `eval()` mode",
        )
        x = c.input("input")
        start = c.tensors("hx") if kinds == 2 else [c.input("hx")]
        if x.rank == 2:
            wide = [unsqueezed(v, [1]) for v in (x, *start)]
            return [squeezed(v, [1]) for v in _all_layers(c, step, wide[0], wide[1:])]
        turned = c.flag("batch_first")
        found = _all_layers(c, step, transposed(x, [1, 0, 2]) if turned else x, start)
        return [transposed(found[0], [1, 0, 2]) if turned else found[0], *found[1:]]

    return lowering


def _all_layers(c: Call, step: Step, x: Value, start: Sequence[Value]) -> Sequence[Value]:
    weights, both = c.tensors("params"), c.flag("bidirectional")
    ways = 2 if both else 1
    layers = c.integer("num_layers")
    plain = 4 if c.flag("has_biases", True) else 2
    each = len(weights) // max(1, ways * layers)
    refuse_if(
        len(weights) != each * ways * layers or each not in (plain, plain + 1) or x.shape[0] == 0,
        f"{len(weights)} weights of {layers} layers",
    )
    ends: list[States] = []
    for layer in range(layers):
        sides = []
        for way in range(ways):
            number = layer * ways + way
            states = tuple(selected(s, 0, number) for s in start)
            own = weights[number * each : (number + 1) * each]
            results, last = _run(c.b, step, x, own, states, backwards=way == 1)
            sides.append(stacked(c.b, results, 0))
            ends.append(last)
        x = concatenated(c.b, sides, 2)
    last_states = [concatenated(c.b, [unsqueezed(e[k], [0]) for e in ends], 0) for k in range(len(start))]
    return x, *last_states


def _cell(step: Step, kinds: int) -> Lowering:
    """Return the operation of one step of a cell with ``kinds`` states."""

    def lowering(c: Call) -> Sequence[Value]:
        x = c.input("input")
        states = tuple(c.tensors("hx") if kinds == 2 else [c.input("hx")])
        names = ("w_ih", "w_hh", "b_ih", "b_hh")
        weights = [c.input(n) for n in names if c.given(n)]
        return _run(c.b, step, unsqueezed(x, [0]), weights, states, backwards=False)[1]

    return lowering


OPERATIONS = operations(
    {
        "lstm_cell": _cell(_lstm_step, 2),
        "gru_cell": _cell(_gru_step, 1),
        "rnn_tanh_cell": _cell(_plain_step(scalar.tanh), 1),
        "rnn_relu_cell": _cell(_plain_step(relu), 1),
        "lstm": _layers(_lstm_step, 2),
        "gru": _layers(_gru_step, 1),
        "rnn_tanh": _layers(_plain_step(scalar.tanh), 1),
        "rnn_relu": _layers(_plain_step(relu), 1),
    }
)
