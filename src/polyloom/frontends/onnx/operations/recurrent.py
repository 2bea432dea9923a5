"""Recurrent layers, unrolled: a step after another, gates as slices of one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from polyloom.frontends.graph.core import (
    Builder,
    CompareOp,
    Context,
    ElementType,
    Expression,
    Refused,
    Table,
    Value,
    cast,
    check_steps,
    concatenated,
    einsum,
    elu,
    expanded,
    filled,
    hard_sigmoid,
    leaky,
    mapped,
    refuse_if,
    scalar,
    selected,
    softplus,
    split_parts,
    stacked,
    transposed,
    unsqueezed,
)

Activation = Callable[[Expression], Expression]
_ACTIVATIONS: dict[str, Callable[[Expression, float, float], Expression]] = {
    "relu": lambda x, a, b: scalar.maximum(x, 0),
    "tanh": lambda x, a, b: scalar.tanh(x),
    "sigmoid": lambda x, a, b: scalar.sigmoid(x),
    "affine": lambda x, a, b: scalar.add(scalar.multiply(x, a), b),
    "leakyrelu": lambda x, a, b: leaky(x, a),
    "elu": lambda x, a, b: elu(x, a),
    "hardsigmoid": hard_sigmoid,
    "softsign": lambda x, a, b: scalar.divide(x, scalar.add(scalar.absolute(x), 1)),
    "softplus": lambda x, a, b: softplus(x),
}
_ALPHA = {"affine": 1.0, "leakyrelu": 0.01, "elu": 1.0, "hardsigmoid": 0.2}
_BETA = {"affine": 0.0, "hardsigmoid": 0.5}


@dataclass(frozen=True, eq=False)
class Cell:
    """One direction of a layer: weights ``w``, ``r``, biases, initial states, activations."""

    w: Value
    r: Value
    bias_w: Value | None
    bias_r: Value | None
    start: tuple[Value, ...]
    peephole: Value | None
    activations: tuple[Activation, ...]
    linear_before_reset: bool
    coupled: bool


Step = Callable[[Builder, Cell, Value, Sequence[Value]], Sequence[Value]]


def _activation(c: Context, name: str, number: int) -> Activation:
    function = _ACTIVATIONS.get(name.lower())
    if function is None:
        raise Refused(f"the activation `{name}`")
    alphas, betas = c.attribute("activation_alpha", ()), c.attribute("activation_beta", ())
    alpha = alphas[number] if number < len(alphas) else _ALPHA.get(name.lower(), 0.0)
    beta = betas[number] if number < len(betas) else _BETA.get(name.lower(), 0.0)
    return lambda x: function(x, alpha, beta)


def _clipped(activation: Activation, clip: float | None) -> Activation:
    """Return the activation of what is cut off at ``clip`` and ``-clip``.

    The sums of gates are; the state of an LSTM is not, before its third activation (as onnxruntime has it).
    """
    if clip is None:
        return activation
    return lambda x: activation(scalar.maximum(scalar.minimum(x, clip), -clip))


def _layer(
    gates: int, states: int, defaults: Sequence[str], step: Step
) -> Callable[[Context], Sequence[Value]]:
    """Return the operation of a kind of cell with ``gates`` gates and ``states`` states."""

    def operation(c: Context) -> Sequence[Value]:
        x = transposed(c.input(0), (1, 0, 2)) if c.integer("layout", 0) else c.input(0)
        lengths = c.optional(4)
        ways = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
        directions = ways.get(c.text("direction", "forward"))
        if directions is None or x.rank != 3:
            raise Refused(f"direction {c.text('direction')} of data of rank {x.rank}")
        check_steps(x.shape[0])
        runs = []
        for number, backwards in enumerate(directions):
            cell = _cell(c, number, gates, states, defaults, x.shape[1])
            runs.append(_run(c.b, cell, step, x, lengths, backwards=backwards))
        return _results(c, runs, states)

    return operation


def _cell(c: Context, number: int, gates: int, states: int, defaults: Sequence[str], batch: int) -> Cell:
    b = c.b
    w, r = selected(c.input(1), 0, number), selected(c.input(2), 0, number)
    hidden = r.shape[1]
    refuse_if(w.shape[0] != gates * hidden, f"weights of {w.shape[0]} rows for {gates} gates of {hidden}")
    bias = c.optional(3)
    halves = [None, None] if bias is None else split_parts(selected(bias, 0, number), 0, [gates * hidden] * 2)
    start = []
    for position in range(5, 5 + states):
        given = c.optional(position)
        if given is None:
            start.append(filled(b, (batch, hidden), 0, w.type))
        else:
            start.append(selected(given, 1 if c.integer("layout", 0) else 0, number))
    peephole = c.optional(7)
    count = len(defaults)
    names = c.attribute("activations", tuple(defaults) * 2)[number * count : (number + 1) * count]
    chosen = [_activation(c, str(n), number * count + k) for k, n in enumerate(names)]
    refuse_if(len(chosen) != count, f"{len(chosen)} activations of {count}")
    gated = [_clipped(a, c.attribute("clip")) for a in chosen[:2]]
    return Cell(
        w,
        r,
        halves[0],
        halves[1],
        tuple(start),
        None if peephole is None else selected(peephole, 0, number),
        (*gated, *chosen[2:]),
        bool(c.integer("linear_before_reset", 0)),
        bool(c.integer("input_forget", 0)),
    )


def _run(
    b: Builder, cell: Cell, step: Step, x: Value, lengths: Value | None, *, backwards: bool
) -> tuple[list[Value], list[Value]]:
    """Return the hidden state after every step, in the order of the sequence, and the last states."""
    state = list(cell.start)
    outputs: list[Value | None] = [None] * x.shape[0]
    order = range(x.shape[0])
    for t in reversed(order) if backwards else order:
        new = list(step(b, cell, selected(x, 0, t), state))
        shown = new[0]
        if lengths is not None:
            kept = [_where_long(b, lengths, t, n, o) for n, o in zip(new, state, strict=True)]
            shown = _where_long(b, lengths, t, new[0], filled(b, new[0].shape, 0, new[0].type))
            new = kept
        outputs[t], state = shown, new
    return [o for o in outputs if o is not None], state


def _where_long(b: Builder, lengths: Value, t: int, new: Value, old: Value) -> Value:
    """Return ``new`` for the sequences that are longer than ``t``, else ``old``."""
    wide = expanded(unsqueezed(cast(b, lengths, ElementType.INT32, "lengths"), [1]), new.shape)
    return mapped(
        b,
        lambda n, a, z: scalar.select(scalar.compare(CompareOp.GT, n, t), a, z),
        wide,
        new,
        old,
        hint="kept",
    )


def _results(c: Context, runs: Sequence[tuple[list[Value], list[Value]]], states: int) -> Sequence[Value]:
    """Return the sequence ``[t][direction][n][h]`` and the last states ``[direction][n][h]``."""
    b = c.b
    ways = [stacked(b, outputs, 0) for outputs, _ in runs]
    sequence = concatenated(b, [unsqueezed(w, [1]) for w in ways], 1)
    last = [concatenated(b, [unsqueezed(r[1][k], [0]) for r in runs], 0) for k in range(states)]
    if c.integer("layout", 0):
        sequence = transposed(sequence, (2, 0, 1, 3))
        last = [transposed(v, (1, 0, 2)) for v in last]
    return sequence, *last


def _affine(b: Builder, x: Value, w: Value, hint: str) -> Value:
    return einsum(b, ["nk", "hk"], "nh", [x, w], hint=hint)


def _total(b: Builder, parts: Sequence[Value], activation: Activation, hint: str) -> Value:
    """Return the activation of a sum; vectors broadcast."""
    return mapped(b, lambda *vs: activation(reduce(scalar.add, vs)), *parts, hint=hint)


def _present(*values: Value | None) -> list[Value]:
    return [v for v in values if v is not None]


def _rnn(b: Builder, cell: Cell, x: Value, state: Sequence[Value]) -> Sequence[Value]:
    parts = [_affine(b, x, cell.w, "input"), _affine(b, state[0], cell.r, "recurrent")]
    return [_total(b, [*parts, *_present(cell.bias_w, cell.bias_r)], cell.activations[0], "state")]


def _gates(value: Value | None, count: int, axis: int) -> list[Value | None]:
    if value is None:
        return [None] * count
    return [*split_parts(value, axis, [value.shape[axis] // count] * count)]


def _gru(b: Builder, cell: Cell, x: Value, state: Sequence[Value]) -> Sequence[Value]:
    """GRU: z, r, then the candidate. Gates in the order z, r, h."""
    (h,) = state
    f, g = cell.activations
    wx = _gates(_affine(b, x, cell.w, "input"), 3, 1)
    rs = _gates(cell.r, 3, 0)
    bw, br = _gates(cell.bias_w, 3, 0), _gates(cell.bias_r, 3, 0)
    rows = [r for r in rs if r is not None]
    update = _total(b, _present(wx[0], _affine(b, h, rows[0], "update"), bw[0], br[0]), f, "z")
    reset = _total(b, _present(wx[1], _affine(b, h, rows[1], "reset"), bw[1], br[1]), f, "r")
    if cell.linear_before_reset:
        parts = _present(_affine(b, h, rows[2], "candidate"), br[2])
        inner = mapped(
            b, lambda s, *vs: scalar.multiply(s, reduce(scalar.add, vs)), reset, *parts, hint="inner"
        )
        candidate = _total(b, _present(wx[2], inner, bw[2]), g, "h")
    else:
        kept = mapped(b, scalar.multiply, reset, h, hint="kept")
        inner = _affine(b, kept, rows[2], "candidate")
        candidate = _total(b, _present(wx[2], inner, bw[2], br[2]), g, "h")

    def blend(z: Expression, n: Expression, o: Expression) -> Expression:
        return scalar.add(scalar.multiply(scalar.subtract(1, z), n), scalar.multiply(z, o))

    return [mapped(b, blend, update, candidate, h, hint="state")]


def _lstm(b: Builder, cell: Cell, x: Value, state: Sequence[Value]) -> Sequence[Value]:
    """LSTM with peepholes. Gates in the order i, o, f, c; peepholes i, o, f."""
    h, memory = state
    f, g, out = cell.activations
    wx, rx = _gates(_affine(b, x, cell.w, "input"), 4, 1), _gates(_affine(b, h, cell.r, "recurrent"), 4, 1)
    bw, br = _gates(cell.bias_w, 4, 0), _gates(cell.bias_r, 4, 0)
    holes = _gates(cell.peephole, 3, 0)

    def gate(k: int, activation: Activation, hole: Value | None, seen: Value, hint: str) -> Value:
        parts = _present(wx[k], rx[k], bw[k], br[k])
        if hole is not None:
            parts.append(mapped(b, scalar.multiply, seen, hole, hint="hole"))
        return _total(b, parts, activation, hint)

    entry = gate(0, f, holes[0], memory, "i")
    if cell.coupled:
        forget = mapped(b, lambda v: scalar.subtract(1, v), entry, hint="f")
    else:
        forget = gate(2, f, holes[2], memory, "f")
    candidate = gate(3, g, None, memory, "c")
    new = mapped(
        b,
        lambda z, old, i, n: scalar.add(scalar.multiply(z, old), scalar.multiply(i, n)),
        forget,
        memory,
        entry,
        candidate,
        hint="cell",
    )
    shown = gate(1, f, holes[1], new, "o")
    return [mapped(b, lambda o, m: scalar.multiply(o, out(m)), shown, new, hint="state"), new]


OPERATIONS: Table = {
    "RNN": _layer(1, 1, ("Tanh",), _rnn),
    "GRU": _layer(3, 1, ("Sigmoid", "Tanh"), _gru),
    "LSTM": _layer(4, 2, ("Sigmoid", "Tanh", "Tanh"), _lstm),
}
