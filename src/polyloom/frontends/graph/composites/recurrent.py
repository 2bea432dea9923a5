"""Recurrent layers, unrolled: a step after another, gates as slices of two products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polyloom.frontends.graph.basis import (
    Builder,
    ElementType,
    Expression,
    Value,
    expanded,
    refuse_if,
    scalar,
    selected,
    unsqueezed,
)
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.elementwise import cast, filled, mapped
from polyloom.frontends.graph.operations.movement import split_parts, stacked
from polyloom.frontends.graph.operations.unrolling import check_steps

Activation = Callable[[Expression], Expression]
States = tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Cell:
    """One direction of a layer.

    - ``w``, ``r``: the weights ``[gate * hidden][size]`` of data and of the state; ``bias_w``, ``bias_r``.
    - ``start``: the states before the first step, ``[n][hidden]``, of which the first is the result.
    - ``activations``: of the gates, of the candidate, of the state of an LSTM.
    - ``order``: where the weights have the gates i, f, c, o (r, z, n of a GRU).
    - ``projection``: what results are multiplied with.
    - ``peepholes``: what the gates i, f, o see of the state of an LSTM.
    - ``coupled``: what an LSTM does not take in it keeps.
    - ``late_reset``: a GRU resets the product with the state, and not the state.
    """

    w: Value
    r: Value
    bias_w: Value | None
    bias_r: Value | None
    start: States
    activations: tuple[Activation, ...]
    order: tuple[int, ...] = (0,)
    backwards: bool = False
    projection: Value | None = None
    peepholes: tuple[Value | None, ...] = (None, None, None)
    coupled: bool = False
    late_reset: bool = True

    def gates(self, value: Value, axis: int = 1) -> list[Value]:
        """Return the parts of the gates, in the order of the formulas."""
        count = len(self.order)
        parts = split_parts(value, axis, [value.shape[axis] // count] * count)
        return [parts[k] for k in self.order]


Step = Callable[[Builder, Cell, Value, States], States]
"""From ``x w^T + bias_w`` of this step, and the states before, to the states after."""


def _product(b: Builder, h: Value, r: Value, bias: Value | None) -> Value:
    """Return ``h r^T + bias``."""
    found = einsum(b, ["nh", "gh"], "ng", [h, r], hint="state")
    return found if bias is None else mapped(b, scalar.add, found, bias, hint="state_bias")


def plain(b: Builder, cell: Cell, xw: Value, states: States) -> States:
    """Return the step of a plain cell: ``h = f(x w + h r)``."""
    hw = _product(b, states[0], cell.r, cell.bias_r)
    return (mapped(b, lambda x, h: cell.activations[0](x + h), xw, hw, hint="hidden"),)


def gru(b: Builder, cell: Cell, xw: Value, states: States) -> States:
    """Return the step of a GRU: ``n = g(xn + r hn); h = n + z (h - n)``."""
    (h,), (f, g) = states, cell.activations
    xr, xz, xn = cell.gates(xw)
    if cell.late_reset:
        hr, hz, hn = cell.gates(_product(b, h, cell.r, cell.bias_r))
        reset = [xr, hr]
    else:
        rows = cell.gates(cell.r, 0)
        biases = [None] * 3 if cell.bias_r is None else cell.gates(cell.bias_r, 0)
        hr, hz = (_product(b, h, row, bias) for row, bias in zip(rows[:2], biases[:2], strict=True))
        kept = mapped(b, lambda x, p, h: f(x + p) * h, xr, hr, h, hint="kept")
        hn, reset = _product(b, kept, rows[2], biases[2]), []

    def hidden(xz: Expression, xn: Expression, hz: Expression, hn: Expression, *of: Expression) -> Expression:
        h, *given = of
        n = g(xn + (f(given[0] + given[1]) * hn if given else hn))
        return n + f(xz + hz) * (h - n)

    return (mapped(b, hidden, xz, xn, hz, hn, h, *reset, hint="hidden"),)


def lstm(b: Builder, cell: Cell, xw: Value, states: States) -> States:
    """Return the step of an LSTM: ``c = f c + i g; h = o out(c)``."""
    (h, memory), (f, g, out) = states, cell.activations
    (xi, xf, xg, xo), (hi, hf, hg, ho) = map(cell.gates, (xw, _product(b, h, cell.r, cell.bias_r)))
    pi, pf, po = cell.peepholes

    def gate(total: Expression, hole: Expression | None, c: Expression) -> Expression:
        return f(total if hole is None else total + hole * c)

    def new(*p: Expression) -> Expression:
        xi, xf, xg, hi, hf, hg, c, pi, pf = p
        i = gate(xi + hi, pi, c)
        kept = 1 - i if cell.coupled else gate(xf + hf, pf, c)
        return kept * c + i * g(xg + hg)

    found = mapped(b, new, xi, xf, xg, hi, hf, hg, memory, pi, pf, hint="cell")
    shown: Callable[..., Expression] = lambda x, h, c, p: gate(x + h, p, c) * out(c)  # noqa: E731
    return mapped(b, shown, xo, ho, found, po, hint="hidden"), found


def run(b: Builder, step: Step, cell: Cell, x: Value, lengths: Value | None = None) -> tuple[Value, States]:
    """Return the results ``[t][n][hidden]`` of data ``[t][n][size]``, ordered by time, and the last states.

    ``lengths``: of each sequence; states behind its end stay, and results are 0. Raises ``Refused``.
    """
    refuse_if(x.shape[0] == 0, "a sequence without elements")
    check_steps(x.shape[0])
    xw = einsum(b, ["tni", "gi"], "tng", [x, cell.w], hint="data")
    if cell.bias_w is not None:
        xw = mapped(b, scalar.add, xw, cell.bias_w, hint="data_bias")
    states, results = cell.start, []
    times = range(x.shape[0])
    for t in reversed(times) if cell.backwards else times:
        new = step(b, cell, selected(xw, 0, t), states)
        if cell.projection is not None:
            projected = einsum(b, ["nh", "ph"], "np", [new[0], cell.projection], hint="projected")
            new = (projected, *new[1:])
        if lengths is None:
            results.append(new[0])
        else:
            none = filled(b, new[0].shape, 0, new[0].type)
            results.append(_where_long(b, lengths, t, new[0], none))
            new = tuple(_where_long(b, lengths, t, n, o) for n, o in zip(new, states, strict=True))
        states = new
    return stacked(b, results[::-1] if cell.backwards else results, 0), states


def _where_long(b: Builder, lengths: Value, t: int, new: Value, old: Value) -> Value:
    """Return ``new`` for the sequences that are longer than ``t``, else ``old``."""
    wide = expanded(unsqueezed(cast(b, lengths, ElementType.INT32, "lengths"), [1]), new.shape)
    return mapped(b, lambda n, a, z: scalar.select(n > t, a, z), wide, new, old, hint="kept")


def last_states(b: Builder, runs: Sequence[tuple[Value, States]]) -> list[Value]:
    """Return the last states of layers and directions, ``[run][n][hidden]`` each."""
    return [stacked(b, states, 0) for states in zip(*(last for _, last in runs), strict=True)]
