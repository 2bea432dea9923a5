"""Elements at positions between elements, which may be data: products with weights of distances.

y[n][c][o] += x[n][c][i] * w(p[n][o] - i), for as many axes as there are
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    CompareOp,
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
from polyloom.frontends.graph.operations.reductions import iota

_CUBIC = -0.75
_TAPS = 4
"""Elements around a position that a cubic looks at."""


def sampled(b: Builder, x: Value, grid: Value, mode: str, padding: str, *, corners: bool) -> Value:
    """Return ``x[n][c][...]`` at the positions ``grid[n][o...][axis]``, of which the last axis comes first.

    -1 and 1 are the outer borders of the first and last element, with ``corners`` their centres.
    ``mode``: nearest, linear, cubic. ``padding``: zeros, border, reflection. Raises ``Refused``.
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
    outer, inner = "abd"[:rank], "ijk"[:rank]
    weights = []
    for k in range(rank):
        places = selected(grid, rank + 1, rank - 1 - k)
        weights.append(_Axis(x.shape[2 + k], padding, corners).weights(b, places, mode))
    labels = [f"nc{inner}", *(f"n{outer}{label}" for label in inner)]
    return einsum(b, labels, f"nc{outer}", [x, *weights])


class _Axis:
    """An axis of the data: its size, and what lies beside it."""

    def __init__(self, size: int, padding: str, corners: bool) -> None:
        self.size, self.padding, self.corners = size, padding, corners

    def weights(self, b: Builder, places: Value, mode: str) -> Value:
        """Return the weight of each element for each place, ``[n][o...][i]``."""
        if mode == "cubic":
            return self._cubic(b, places)
        numbers = iota(b, self.size, places.type)

        def weight(g: Expression, k: Expression) -> Expression:
            at = self._inside(self._position(g))
            return hat(at, k) if mode == "linear" else _is_nearest(at, k)

        return mapped(b, weight, unsqueezed(places, [places.rank]), numbers, hint="weights")

    def _cubic(self, b: Builder, places: Value) -> Value:
        """Each of four elements around a place is looked for inside, and its weight goes there."""
        axes = iterators(places.rank + 2)
        own, i, tap = axes[:-2], axes[-2], axes[-1]

        def weight(g: Expression, k: Expression, number: Expression) -> Expression:
            at = self._position(g)
            element = scalar.subtract(scalar.add(_floor(at), number), 1)
            found = _cubic_weight(scalar.absolute(scalar.subtract(at, element)))
            inside = scalar.unary(UnaryOp.ROUND, self._inside(element))
            return scalar.select(scalar.compare(CompareOp.EQ, inside, k), found, scalar.number(0, found.type))

        taps = b.constant(np.arange(_TAPS).astype(places.type.dtype))
        terms = [Term(places, own), Term(iota(b, self.size, places.type), (i,)), Term(taps, (tap,))]
        shape = [*places.shape, self.size]
        return b.statement([*shape, _TAPS], terms, shape, axes[:-1], weight, Combine.ADD, "weights")

    def _position(self, g: Expression) -> Expression:
        """Return where a number from -1 to 1 lies, counted in elements."""
        if self.corners:
            return scalar.multiply(scalar.add(g, 1), (self.size - 1) / 2)
        return scalar.multiply(scalar.subtract(scalar.multiply(scalar.add(g, 1), self.size), 1), 0.5)

    def _inside(self, at: Expression) -> Expression:
        if self.padding == "zeros":
            return at
        return clamped(self._reflected(at) if self.padding == "reflection" else at, self.size)

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


def _is_nearest(at: Expression, k: Expression) -> Expression:
    same = scalar.compare(CompareOp.EQ, scalar.unary(UnaryOp.ROUND, at), k)
    return scalar.select(same, scalar.number(1, at.type), 0)


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
