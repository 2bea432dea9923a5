"""Elements at positions between elements, which may be data.

Of grids each element around a position is picked and weighed: ``y[n][c][o] += x[n][c][e[n][o]] * w[n][o]``.
Of boxes they are products with weights of distances: ``y[n][c][o] += x[n][c][i] * w(p[n][o] - i)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from polyloom.frontends.graph.basis import (
    BinaryOp,
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Term,
    UnaryOp,
    Value,
    iterators,
    refuse_if,
    scalar,
    selected,
    unsqueezed,
)
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.movement import reshaped
from polyloom.frontends.graph.operations.reductions import iota

_CUBIC = -0.75
_TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
"""Elements around a position that count, along one axis."""


def sampled(b: Builder, x: Value, grid: Value, mode: str, padding: str, *, corners: bool) -> Value:
    """Return ``x[n][c][...]`` at the positions ``grid[n][o...][axis]``, of which the last axis comes first.

    -1 and 1 are the outer borders of the first and last element, with ``corners`` their centres.
    ``mode``: nearest, linear, cubic. ``padding``: zeros, border, reflection. A position of NaN is held
    at the first element, as is an infinite one that is thrown back; weights that such a position has
    no distance for are NaN (cubic, and linear with zeros), as on the processor in PyTorch.
    Raises ``Refused``.
    """
    rank = x.rank - 2
    refuse_if(
        rank < 1 or grid.rank != x.rank or grid.shape[-1] != rank or grid.shape[0] != x.shape[0],
        f"a grid of shape {list(grid.shape)} for data of shape {list(x.shape)}",
    )
    refuse_if(
        mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"),
        f"the mode `{mode}` with the padding `{padding}`",
    )
    refuse_if(
        not x.type.is_float or grid.type is not x.type,
        f"positions of type {grid.type.value} in data of type {x.type.value}",
    )
    refuse_if(prod(x.shape[2:]) >= 1 << 31, "a grid over 2^31 elements or more")
    axes = [_Axis(x.shape[2 + k], padding, corners) for k in range(rank)]
    places = [selected(grid, rank + 1, rank - 1 - k) for k in range(rank)]
    rows = reshaped(b, x, (*x.shape[:2], prod(x.shape[2:])))
    total: Value | None = None
    for taps in product(range(_TAPS[mode]), repeat=rank):
        here = _Tap(axes, taps, mode)
        part = _picked(b, rows, mapped(b, here.element, *places, hint="elements"))
        weighed = _weighed(b, part, mapped(b, here.weight, *places, hint="weights"))
        total = weighed if total is None else mapped(b, scalar.add, total, weighed)
    assert total is not None
    return total


def _picked(b: Builder, rows: Value, elements: Value) -> Value:
    """Return ``y[n][c][o...] = rows[n][c][elements[n][o...]]``, 0 for an element -1."""
    size = rows.shape[2]
    axes = iterators(elements.rank + 2)
    n, c, *outer, k = axes
    terms = [Term(elements, (n, *outer)), Term(iota(b, size, elements.type), (k,)), Term(rows, (n, c, k))]
    shape = [elements.shape[0], rows.shape[1], *elements.shape[1:]]

    def term(e: Expression, number: Expression, value: Expression) -> Expression:
        chosen = scalar.compare(CompareOp.EQ, e, number)
        return scalar.select(chosen, value, scalar.number(0, value.type))

    return b.statement([*shape, size], terms, shape, (n, c, *outer), term, Combine.ADD, "picked")


def _weighed(b: Builder, part: Value, weights: Value) -> Value:
    """Return ``part[n][c][o...] * weights[n][o...]``."""
    axes = iterators(part.rank)
    terms = [Term(part, axes), Term(weights, (axes[0], *axes[2:]))]
    return b.statement(part.shape, terms, part.shape, axes, scalar.multiply, hint="weighed")


@dataclass(frozen=True)
class _Tap:
    """One of the elements around a position that count: the ``taps[k]``-th along each axis."""

    axes: Sequence[_Axis]
    taps: Sequence[int]
    mode: str

    def element(self, *places: Expression) -> Expression:
        """Return which element it is, row by row; -1 beside the data."""
        total: Expression | None = None
        there: Expression | None = None
        for axis, tap, g in zip(self.axes, self.taps, places, strict=True):
            at = axis.tap(g, tap, self.mode)
            inside = axis.held(at)
            own = scalar.compare(CompareOp.EQ, at, inside)
            number = scalar.convert(inside, ElementType.INT32)
            total = number if total is None else scalar.add(scalar.multiply(total, axis.size), number)
            there = own if there is None else scalar.logical(BinaryOp.AND, there, own)
        assert total is not None and there is not None
        return scalar.select(there, total, scalar.number(-1, ElementType.INT32))

    def weight(self, *places: Expression) -> Expression:
        """Return the weight of the element, which is 0 where it lies beside the data."""
        total: Expression | None = None
        for axis, tap, g in zip(self.axes, self.taps, places, strict=True):
            own = axis.weight(g, tap, self.mode)
            total = own if total is None else scalar.multiply(total, own)
        assert total is not None
        return total


class _Axis:
    """An axis of the data: its size, and what lies beside it."""

    def __init__(self, size: int, padding: str, corners: bool) -> None:
        self.size, self.padding, self.corners = size, padding, corners

    def tap(self, g: Expression, number: int, mode: str) -> Expression:
        """Return the element of that number around a place, a whole number that may lie beside the data."""
        if mode == "nearest":
            return scalar.unary(UnaryOp.ROUND, self._inside(self._position(g)))
        if mode == "linear":
            return scalar.add(_floor(self._inside(self._position(g))), number)
        return scalar.unary(UnaryOp.ROUND, self._inside(self._around(g, number)))

    def weight(self, g: Expression, number: int, mode: str) -> Expression:
        """Return its weight."""
        if mode == "nearest":
            return scalar.number(1, g.type)
        if mode == "linear":
            at = self._inside(self._position(g))
            return scalar.subtract(1, scalar.absolute(scalar.subtract(at, self.tap(g, number, mode))))
        at = self._position(g)
        return _cubic_weight(scalar.absolute(scalar.subtract(at, self._around(g, number))))

    def _around(self, g: Expression, number: int) -> Expression:
        return scalar.add(_floor(self._position(g)), number - 1)

    def _position(self, g: Expression) -> Expression:
        """Return where a number from -1 to 1 lies, counted in elements."""
        if self.corners:
            return scalar.multiply(scalar.add(g, 1), (self.size - 1) / 2)
        return scalar.multiply(scalar.subtract(scalar.multiply(scalar.add(g, 1), self.size), 1), 0.5)

    def _inside(self, at: Expression) -> Expression:
        if self.padding == "zeros":
            return at
        return self.held(self._reflected(at) if self.padding == "reflection" else at)

    def held(self, at: Expression) -> Expression:
        """Return a position moved to the nearest element where it lies beside them; NaN to the first."""
        there = scalar.compare(CompareOp.GE, at, 0)
        return scalar.select(there, scalar.minimum(at, self.size - 1), scalar.number(0, at.type))

    def _reflected(self, at: Expression) -> Expression:
        """Return a position with what is beside the axis thrown back into it: a wave of triangles."""
        low, span = (0.0, self.size - 1) if self.corners else (-0.5, self.size)
        if span == 0:
            return at
        turns = scalar.divide(scalar.subtract(at, low), 2 * span)
        share = scalar.subtract(turns, _floor(turns))
        down = scalar.absolute(scalar.subtract(scalar.multiply(share, 2 * span), span))
        return scalar.subtract(span + low, down)


def clamped(at: Expression, size: int) -> Expression:
    """Return a position moved to the first or last element where it lies beside them."""
    return scalar.minimum(scalar.maximum(at, 0), size - 1)


def hat(at: Expression, k: Expression) -> Expression:
    """Return the linear weight of element ``k``: 1 where the position is, 0 one element away."""
    return scalar.maximum(scalar.subtract(1, scalar.absolute(scalar.subtract(at, k))), 0)


def _floor(x: Expression) -> Expression:
    return scalar.unary(UnaryOp.FLOOR, x)


def _cubic_weight(d: Expression) -> Expression:
    """Return Keys' weight of an element at a distance below 2."""
    near = _polynomial(d, (_CUBIC + 2, -(_CUBIC + 3), 0, 1))
    far = _polynomial(d, (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC))
    return scalar.select(scalar.compare(CompareOp.LE, d, 1), near, far)


def _polynomial(x: Expression, coefficients: Sequence[float]) -> Expression:
    total: Expression = scalar.number(coefficients[0], x.type)
    for c in coefficients[1:]:
        total = scalar.add(scalar.multiply(total, x), c)
    return total


def affine_grid(b: Builder, theta: Value, shape: Sequence[int], *, corners: bool) -> Value:
    """Return ``grid[n][o...][axis]``, the positions of a regular grid moved by matrices ``theta[n]``.

    ``shape``: n, channels, and the sizes of the grid. Raises ``Refused``.
    """
    rank = len(shape) - 2
    refuse_if(
        rank < 1 or theta.shape != (shape[0], rank, rank + 1) or min(shape) < 1,
        f"matrices of shape {list(theta.shape)} for a grid of shape {list(shape)}",
    )
    lines = []
    for size in shape[2:]:
        ends = 1.0 if corners else 1 - 1 / size
        lines.append(np.linspace(-ends, ends, size) if size > 1 else np.zeros(1))
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(shape[2:])], -1)
    base = b.constant(points.astype(theta.type.dtype))
    outer = "abd"[:rank]
    return einsum(b, ["nij", f"{outer}j"], f"n{outer}i", [theta, base])


@dataclass(frozen=True)
class Boxes:
    """Boxes along one axis: where each starts, how long it is, and how many points a part of it has.

    ``most``: points of a part at most, over all boxes.
    """

    starts: Value
    lengths: Value
    points: Value
    most: int


def boxes_averaged(b: Builder, x: Value, boxes: Sequence[Boxes], parts: Sequence[int]) -> Value:
    """Return the means over the points of ``parts`` of boxes ``x[box][c][i][j]``, along both axes.

    A point more than one element beside the data is 0.
    """
    weights = [_part_weights(b, axis, x.shape[2 + k], parts[k]) for k, axis in enumerate(boxes)]
    rows = einsum(b, ["rcij", "rpi"], "rcpj", [x, weights[0]], hint="rows")
    return einsum(b, ["rcpj", "rqj"], "rcpq", [rows, weights[1]])


def corners_sampled(
    b: Builder, x: Value, corners: Sequence[tuple[Value, Value]], sizes: Sequence[int]
) -> Value:
    """Return ``x[box][c][i][j]`` at ``sizes`` points from corner to corner of each box, 0 beside the data.

    ``corners``: first and last of each box along each axis, 0 and 1 at the first and last element.
    """
    weights = [_corner_weights(b, *ends, x.shape[2 + k], sizes[k]) for k, ends in enumerate(corners)]
    rows = einsum(b, ["rcij", "rpi"], "rcpj", [x, weights[0]], hint="rows")
    return einsum(b, ["rcpj", "rqj"], "rcpq", [rows, weights[1]])


def corners_scattered(
    b: Builder, dy: Value, corners: Sequence[tuple[Value, Value]], sizes: Sequence[int]
) -> Value:
    """Return the gradient of ``corners_sampled``, by the data of ``sizes`` that each box has seen."""
    weights = [_corner_weights(b, *ends, sizes[k], dy.shape[2 + k]) for k, ends in enumerate(corners)]
    rows = einsum(b, ["rcpq", "rqj"], "rcpj", [dy, weights[1]], hint="rows")
    return einsum(b, ["rcpj", "rpi"], "rcij", [rows, weights[0]])


def _corner_weights(b: Builder, first: Value, last: Value, size: int, count: int) -> Value:
    """Return the weight of each element for each point of each box, ``[box][point][i]``."""
    shares = np.linspace(0, 1, count) if count > 1 else np.full(1, 0.5)

    def weight(low: Expression, high: Expression, share: Expression, k: Expression) -> Expression:
        part = scalar.add(scalar.multiply(scalar.subtract(high, low), share), low)
        at = scalar.multiply(part, size - 1)
        found = hat(at, k)
        for op, bound in ((CompareOp.LT, 0), (CompareOp.GT, size - 1)):
            found = scalar.select(scalar.compare(op, at, bound), scalar.number(0, found.type), found)
        return found

    points = unsqueezed(b.constant(shares.astype(first.type.dtype)), [0, 2])
    numbers = unsqueezed(iota(b, size, first.type), [0, 1])
    ends = (unsqueezed(v, [1, 2]) for v in (first, last))
    return mapped(b, weight, *ends, points, numbers, hint="weights")


def _part_weights(b: Builder, boxes: Boxes, size: int, parts: int) -> Value:
    """Return the weight of each element for each part of each box, ``[box][part][i]``."""
    r, p, i, s = iterators(4)
    kind = boxes.starts.type

    def weight(*terms: Expression) -> Expression:
        start, length, count, part, point, k = terms
        share = scalar.divide(scalar.add(part, scalar.divide(scalar.add(point, 0.5), count)), parts)
        at = scalar.add(start, scalar.multiply(length, share))
        counted = scalar.divide(hat(clamped(at, size), k), count)
        for op, bound in ((CompareOp.LT, -1), (CompareOp.GT, size)):
            counted = scalar.select(scalar.compare(op, at, bound), scalar.number(0, kind), counted)
        return scalar.select(scalar.compare(CompareOp.LT, point, count), counted, 0)

    numbers = (iota(b, n, kind) for n in (parts, boxes.most, size))
    terms = [Term(v, (r,)) for v in (boxes.starts, boxes.lengths, boxes.points)]
    terms += [Term(v, (a,)) for v, a in zip(numbers, (p, s, i), strict=True)]
    shape = [boxes.starts.size, parts, size]
    return b.statement([*shape, boxes.most], terms, shape, (r, p, i), weight, Combine.ADD, "weights")
