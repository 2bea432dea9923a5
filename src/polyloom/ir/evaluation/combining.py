"""Combine operators at work on arrays: points of a dimension into one, or into all their prefixes.

``h(a ++_k b) = h(a) op_k h(b)``: a *partial result* is what some points have combined to, one array per
output, and where there is anything at all (points may be excluded by a guard, and an operator need not have
a neutral element). Operands keep their order; one operator on one output combines one after another, as the
sequential program does, others in pairs of neighbours.

Source: md_poly, Definition 3.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.arithmetic import constant, value
from polyloom.ir.expressions import Binary, Read
from polyloom.ir.host import Combiner

NDArray = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Partial:
    """``values[o]`` where ``present`` holds; all arrays have one shape."""

    values: tuple[NDArray, ...]
    present: Mask

    def take(self, part: slice, axis: int) -> Partial:
        """Return the part of all arrays along an axis."""
        where = (*(slice(None),) * axis, part)
        return Partial(tuple(v[where] for v in self.values), self.present[where])


def ufunc_of(combiner: Combiner) -> np.ufunc | None:
    """Return the NumPy function of a combiner that is one binary operator of one output."""
    match combiner.results:
        case (Binary(op=op, left=Read(position=0), right=Read(position=1)),):
            return op.ufunc
        case _:
            return None


def combined(combiner: Combiner, left: Partial, right: Partial, names: Mapping[str, int]) -> Partial:
    """Return ``left op right``, point by point; where one side has nothing, the other."""
    both = left.present & right.present
    reads = [*left.values, *right.values]
    values = []
    for result, a, b in zip(combiner.results, left.values, right.values, strict=True):
        found = value(result, reads, no_iterators, names)
        values.append(np.where(both, found, np.where(left.present, a, b)))
    return Partial(tuple(values), left.present | right.present)


def no_iterators(dimension: int) -> NDArray:
    """Refuse iterators: an operator combines values only."""
    raise LookupError("a combine operator uses an iterator")


def reduced(
    combiner: Combiner, points: Partial, axis: int, names: Mapping[str, int], start: Partial | None = None
) -> Partial:
    """Combine the points along an axis, which stays with length 1; ``start`` comes before the first."""
    function = ufunc_of(combiner)
    points = points if function is not None else entered(combiner, points, names)
    line = points if start is None else joined([start, points], axis)
    if function is not None and (line.present.all() or combiner.neutral[0] is not None):
        present = some_present(line, [axis])
        (values,) = with_neutral(combiner, line).values
        total = one_after_another(function, None, np.moveaxis(values, axis, 0))
        return Partial((np.expand_dims(total, axis),), present)
    while line.present.shape[axis] > 1:
        line = _halved(combiner, line, axis, names)
    return line


def some_present(points: Partial, axes: Sequence[int]) -> Mask:
    """Return where a point along some axes, which stay with length 1, is present."""
    if points.present.all():
        return np.ones([1 if k in axes else n for k, n in enumerate(points.present.shape)], np.bool_)
    return np.logical_or.reduce(points.present, axis=tuple(axes), keepdims=True)


def one_after_another(function: np.ufunc, before: NDArray | None, lines: NDArray) -> NDArray:
    """Combine lines along their first axis in order, ``before`` first; there is one at least."""
    if lines.size < 64 * len(lines):
        whole = lines if before is None else np.concatenate([before[np.newaxis], lines])
        return np.asarray(function.accumulate(whole, axis=0, dtype=lines.dtype)[-1])
    total = before
    for each in lines:
        total = each if total is None else function(total, each)
    assert total is not None
    return total


def _halved(combiner: Combiner, line: Partial, axis: int, names: Mapping[str, int]) -> Partial:
    """Combine neighbours; a last one without a neighbour stays."""
    length = line.present.shape[axis]
    even = length // 2 * 2
    pairs = combined(combiner, line.take(slice(0, even, 2), axis), line.take(slice(1, even, 2), axis), names)
    return joined([pairs, line.take(slice(even, length), axis)], axis) if even < length else pairs


def scanned(combiner: Combiner, points: Partial, axis: int, names: Mapping[str, int]) -> Partial:
    """Return what the points 0..k along an axis combine to, at every k."""
    function = ufunc_of(combiner)
    if function is not None and (points.present.all() or combiner.neutral[0] is not None):
        (values,) = with_neutral(combiner, points).values
        sums = function.accumulate(values, axis=axis, dtype=values.dtype)
        return Partial((sums,), np.logical_or.accumulate(points.present, axis=axis))
    points = entered(combiner, points, names)
    steps = [points.take(slice(0, 1), axis)]
    for k in range(1, points.present.shape[axis]):
        steps.append(combined(combiner, steps[-1], points.take(slice(k, k + 1), axis), names))
    return joined(steps, axis)


def joined(parts: Sequence[Partial], axis: int) -> Partial:
    """Return partial results one after another along an axis."""
    shapes = [p.present.shape for p in parts]
    outer = np.broadcast_shapes(*((*s[:axis], 1, *s[axis + 1 :]) for s in shapes))
    whole = [(*outer[:axis], s[axis], *outer[axis + 1 :]) for s in shapes]

    def along(arrays: Sequence[NDArray]) -> NDArray:
        pairs = zip(arrays, whole, strict=True)
        return np.concatenate([np.broadcast_to(a, shape) for a, shape in pairs], axis=axis)

    count = len(parts[0].values)
    values = tuple(along([p.values[o] for p in parts]) for o in range(count))
    return Partial(values, along([p.present for p in parts]))


def entered(combiner: Combiner, points: Partial, names: Mapping[str, int]) -> Partial:
    """Return terms as they come in: ``neutral op term``, if the operator has a neutral element."""
    if any(n is None for n in combiner.neutral):
        return points
    everywhere = with_neutral(combiner, nothing(combiner, points.present.shape))
    return Partial(combined(combiner, everywhere, points, names).values, points.present)


def with_neutral(combiner: Combiner, result: Partial) -> Partial:
    """Return a result with the neutral element where nothing is, if the operator has one."""
    if result.present.all() or any(n is None for n in combiner.neutral):
        return result
    kinds = [r.type for r in combiner.results]
    neutral = [constant(n, k) for n, k in zip(combiner.neutral, kinds, strict=True) if n is not None]
    pairs = zip(result.values, neutral, strict=True)
    values = tuple(np.where(result.present, v, n) for v, n in pairs)
    return Partial(values, np.ones_like(result.present))


def nothing(combiner: Combiner, shape: tuple[int, ...]) -> Partial:
    """Return the partial result of no points."""
    values = tuple(np.zeros(shape, r.type.dtype) for r in combiner.results)
    return Partial(values, np.zeros(shape, np.bool_))
