"""Moving elements: reshape, padding, concatenation, gathering at positions known at import."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.basis import (
    BinaryOp,
    Builder,
    Combine,
    ElementType,
    Expression,
    Formula,
    Refused,
    Term,
    Value,
    blocks,
    check_constant,
    expanded,
    iterators,
    merged,
    refuse_if,
    reindexed,
    scalar,
    selected,
    sliced,
    split,
    squeezed,
    transposed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import filled, mapped

NDArray = npt.NDArray[Any]


def reshaped(b: Builder, value: Value, shape: Sequence[int], hint: str = "") -> Value:
    """Return the elements in another shape, in the same order.

    A dimension that is split is a view. Dimensions that are merged are a view where the tensor's strides
    allow it; otherwise one statement writes them merged: ``f[6*i + j] = x[i][j]``. Raises ``Refused``.
    """
    if prod(shape) != value.size or min(shape, default=0) < 0:
        raise Refused(f"{value.size} elements do not fit {' x '.join(map(str, shape))}")
    if tuple(shape) == value.shape:
        return value
    if value.size == 0:
        return filled(b, shape, 0, value.type)
    runs = blocks(value.shape, shape)
    flat = value
    for number, (old, _) in enumerate(runs):
        found = merged(flat, number, len(old))
        if found is None:
            return _unflattened(_copied(b, value, [old for old, _ in runs], hint), shape, runs)
        flat = found
    return _unflattened(flat, shape, runs)


def _copied(b: Builder, value: Value, runs: Sequence[range], hint: str) -> Value:
    """Write each run of dimensions as one dimension; a constant is copied at once."""
    sizes = [prod(value.shape[k] for k in run) for run in runs]
    known = b.known_for(value, value.size)
    if known is not None:
        return b.constant(known.reshape(sizes))
    axes = iterators(value.rank)
    write = []
    for run in runs:
        total: Formula = 0
        for k in run:
            total = value.shape[k] * total + axes[k]
        write.append(total)
    return b.statement(value.shape, [Term(value, axes)], sizes, write, lambda x: x, hint=hint)


def _unflattened(flat: Value, shape: Sequence[int], runs: Sequence[tuple[range, range]]) -> Value:
    result = flat
    for number, (_, new) in reversed(list(enumerate(runs))):
        sizes = [shape[k] for k in new]
        result = split(result, number, sizes) if sizes else squeezed(result, [number])
    return result


def padded(
    b: Builder,
    value: Value,
    before: Sequence[int],
    after: Sequence[int],
    number: float | int = 0,
    hint: str = "padded",
) -> Value:
    """Return the value with ``number`` around it; a negative width cuts off (a view).

    ``p[i + before] += x[i]``; with the lowest number ``max=``; other numbers are added by a constant.
    """
    cut = _cut(value, before, after)
    low, high = [max(n, 0) for n in before], [max(n, 0) for n in after]
    if not any(low) and not any(high):
        return cut
    known = b.known_for(cut, prod(_grown(cut, low, high)))
    if known is not None:
        widths = list(zip(low, high, strict=True))
        return b.constant(np.pad(known, widths, constant_values=number))
    if number == 0:
        return placed(b, cut, _grown(cut, low, high), low, Combine.ADD, hint)
    combine = _neutral_for(number, cut.type)
    if combine is not None:
        return placed(b, cut, _grown(cut, low, high), low, combine, hint)
    inside = placed(b, cut, _grown(cut, low, high), low, Combine.ADD, f"{hint}_inside")
    return _with_border(b, inside, cut, low, number, hint)


def _with_border(
    b: Builder, inside: Value, cut: Value, low: Sequence[int], number: float | int, hint: str
) -> Value:
    """Add the border, a constant that is 0 inside, which keeps every bit there."""
    b.take_room(inside.size, inside.type.size)
    border = np.full(inside.shape, number, inside.type.dtype)
    border[tuple(slice(n, n + m) for n, m in zip(low, cut.shape, strict=True))] = 0
    outside = b.constant(border)
    add = _either if inside.type is ElementType.BOOL else scalar.add
    return mapped(b, add, inside, outside, hint=hint)


def _either(x: Expression, y: Expression) -> Expression:
    return scalar.logical(BinaryOp.OR, x, y)


def _neutral_for(number: float | int, kind: ElementType) -> Combine | None:
    """Return the reduction that starts from this number."""
    if kind is ElementType.BOOL:
        return None
    if number == kind.lowest:
        return Combine.MAXIMUM
    if number == kind.highest:
        return Combine.MINIMUM
    return Combine.MULTIPLY if number == 1 else None


def _cut(value: Value, before: Sequence[int], after: Sequence[int]) -> Value:
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if low < 0 or high < 0:
            start = max(-low, 0)
            value = sliced(value, axis, start, 1, max(0, value.shape[axis] - start - max(-high, 0)))
    return value


def _grown(value: Value, low: Sequence[int], high: Sequence[int]) -> list[int]:
    return [n + a + z for n, a, z in zip(value.shape, low, high, strict=True)]


def placed(
    b: Builder, value: Value, shape: Sequence[int], offset: Sequence[int], combine: Combine, hint: str
) -> Value:
    """Return a tensor that holds the value from ``offset`` on, and elsewhere what ``combine`` starts from."""
    axes = iterators(value.rank)
    write = [k + o for k, o in zip(axes, offset, strict=True)]
    return b.statement(value.shape, [Term(value, axes)], shape, write, lambda x: x, combine, hint)


def concatenated(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Return values one after another along an axis: each placed among zeros, and their sum."""
    full = [p for p in parts if p.size]
    if not full and len(parts) > 1:
        empty = [n if k != axis else sum(p.shape[k] for p in parts) for k, n in enumerate(parts[0].shape)]
        return b.constant(np.zeros(empty, parts[0].type.dtype))
    full = full or [parts[0]]
    if len(full) == 1:
        return full[0]
    length = sum(p.shape[axis] for p in full)
    shape = [length if k == axis else n for k, n in enumerate(full[0].shape)]
    refuse_if(any(_others(p, axis) != _others(full[0], axis) for p in full), "parts of different shapes")
    known = [b.known_for(p, prod(shape)) for p in full]
    if all(k is not None for k in known):
        return b.constant(np.concatenate([k for k in known if k is not None], axis))
    placed_parts, at = [], 0
    for number, part in enumerate(full):
        offset = [at if k == axis else 0 for k in range(part.rank)]
        placed_parts.append(placed(b, part, shape, offset, Combine.ADD, f"part{number}"))
        at += part.shape[axis]
    return _sum_of(b, placed_parts)


def _others(value: Value, axis: int) -> list[int]:
    return [n for k, n in enumerate(value.shape) if k != axis]


def _sum_of(b: Builder, parts: Sequence[Value]) -> Value:
    """Add parts of which at most one is not 0 anywhere."""
    add = _either if parts[0].type is ElementType.BOOL else scalar.add

    def total(*terms: Expression) -> Expression:
        found = terms[0]
        for term in terms[1:]:
            found = add(found, term)
        return found

    return mapped(b, total, *parts)


def stacked(b: Builder, parts: Sequence[Value], axis: int) -> Value:
    """Return values of one shape along a new axis."""
    return concatenated(b, [unsqueezed(p, [axis]) for p in parts], axis)


def tiled(b: Builder, value: Value, repeats: Sequence[int]) -> Value:
    """Return the value repeated along its axes: expanded (a view), then reshaped."""
    axes = [2 * k for k in range(value.rank)]
    wide = unsqueezed(value, axes)
    shape = [n for pair in zip(repeats, value.shape, strict=True) for n in pair]
    total = [r * n for r, n in zip(repeats, value.shape, strict=True)]
    if 0 in total:
        return filled(b, total, 0, value.type)
    return reshaped(b, expanded(wide, shape), total)


def runs_of(positions: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return positions cut into runs (start, step, length), each as long as possible."""
    runs: list[tuple[int, int, int]] = []
    k = 0
    while k < len(positions):
        step = positions[k + 1] - positions[k] if k + 1 < len(positions) else 1
        length = 1
        while k + length < len(positions) and positions[k + length] == positions[k] + length * step:
            length += 1
        runs.append((positions[k], step, length))
        k += length
    return runs


MOST_RUNS = 8
"""Affine runs that a gathering takes as slices; with more it is a contraction with a 0/1 matrix."""


def taken(b: Builder, value: Value, axis: int, positions: Sequence[int]) -> Value:
    """Return the slices of a value at positions of an axis, all known and inside."""
    if not positions:
        return filled(b, [0 if k == axis else n for k, n in enumerate(value.shape)], 0, value.type)
    count = value.size // max(1, value.shape[axis]) * len(positions)
    known = b.known_for(value, count)
    if known is not None:
        return b.constant(np.take(known, positions, axis))
    repeated = _repeated(value, axis, positions)
    if repeated is not None:
        return reshaped(b, *repeated)
    runs = runs_of(positions)
    if len(runs) <= MOST_RUNS:
        return concatenated(b, [sliced(value, axis, *run) for run in runs], axis)
    return _by_matrix(b, value, axis, positions)


def _repeated(value: Value, axis: int, positions: Sequence[int]) -> tuple[Value, list[int]] | None:
    """Return positions like 0 0 1 1 2 2 as a view of one more dimension, and the shape wanted."""
    count = len(positions)
    times = next((k for k, p in enumerate(positions) if p != positions[0]), count)
    if count % times or times == 1:
        return None
    firsts = positions[::times]
    steps = {y - x for x, y in pairwise(firsts)}
    if len(steps) > 1 or any(positions[k] != firsts[k // times] for k in range(count)):
        return None
    step = steps.pop() if steps else 1
    part = unsqueezed(sliced(value, axis, firsts[0], step, len(firsts)), [axis + 1])
    wide = [times if k == axis + 1 else n for k, n in enumerate(part.shape)]
    return expanded(part, wide), [count if k == axis else n for k, n in enumerate(value.shape)]


def _by_matrix(b: Builder, value: Value, axis: int, positions: Sequence[int]) -> Value:
    """Choose by a constant: ``y[j] += pos[j] == iota[i] ? x[i] : 0``, which no infinity disturbs."""
    from polyloom.frontends.graph.operations.indexing import chosen

    return chosen(b, value, axis, b.constant(np.asarray(positions, np.int32)))


MOST_PARTS = 10_000
"""Parts of an axis at most that become values of their own."""


def flipped(value: Value, axis: int) -> Value:
    """Return the value with an axis reversed, a view."""
    return sliced(value, axis, value.shape[axis] - 1, -1, value.shape[axis])


def rolled(b: Builder, value: Value, axis: int, shift: int) -> Value:
    """Return the value with the elements of an axis moved on by ``shift``, those at the end to its front."""
    size = value.shape[axis]
    cut = -shift % size if size else 0
    return concatenated(b, split_parts(value, axis, [cut, size - cut])[::-1], axis) if cut else value


def split_parts(value: Value, axis: int, sizes: Sequence[int]) -> list[Value]:
    """Return consecutive parts along an axis, as views. Raises ``Refused`` where sizes do not add up."""
    refuse_if(
        sum(sizes) != value.shape[axis] or min(sizes, default=0) < 0,
        f"parts of sizes {list(sizes)} of an axis of {value.shape[axis]}",
    )
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [sliced(value, axis, start, 1, size) for start, size in zip(starts, sizes, strict=True)]


def unstacked(value: Value, axis: int) -> list[Value]:
    """Return the slices along an axis, without the axis, as views. Raises ``Refused`` for too many."""
    refuse_if(
        value.shape[axis] > MOST_PARTS,
        f"{value.shape[axis]} parts; more than {MOST_PARTS} are not taken apart",
    )
    return [selected(value, axis, k) for k in range(value.shape[axis])]


def diagonal(value: Value, first: int, second: int) -> Value:
    """Return the diagonal of two axes as an axis in place of the first, a view."""
    rank = value.rank - 1
    size = min(value.shape[first], value.shape[second])
    kept = [k for k in range(value.rank) if k != second]
    new = dict(zip(kept, iterators(rank), strict=True))
    places = [new[first] if k == second else new[k] for k in range(value.rank)]
    return reindexed(value, [size if k == first else value.shape[k] for k in kept], places)


def pad_positions(size: int, before: int, after: int, mode: str) -> list[int]:
    """Return where elements of a padded axis come from (``reflect``, ``symmetric``, ``edge``, ``wrap``)."""
    refuse_if(size == 0, "padding of an axis without elements")
    places = range(-before, size + after)
    match mode:
        case "edge":
            return [min(max(p, 0), size - 1) for p in places]
        case "wrap":
            return [p % size for p in places]
        case "reflect":
            period = max(1, 2 * (size - 1))
            return [min(p % period, period - p % period) if size > 1 else 0 for p in places]
        case "symmetric":
            return [min(p % (2 * size), 2 * size - 1 - p % (2 * size)) for p in places]
        case _:
            raise Refused(f"padding mode `{mode}`")


def padded_by_mode(b: Builder, value: Value, before: Sequence[int], after: Sequence[int], mode: str) -> Value:
    """Return the value padded with its own elements, axis after axis."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if low or high:
            value = taken(b, value, axis, pad_positions(value.shape[axis], low, high, mode))
    return value


def with_rest(wanted: Sequence[int], size: int) -> list[int]:
    """Return a shape whose -1 is what is left of ``size``. Raises ``Refused``."""
    refuse_if(wanted.count(-1) > 1, "a shape with two open extents")
    known = prod(n for n in wanted if n != -1)
    if -1 in wanted and (known == 0 or size % known):
        raise Refused(f"{size} elements in the shape {list(wanted)}")
    return [size // known if n == -1 else n for n in wanted]


def slice_bounds(size: int, start: int, end: int, step: int) -> tuple[int, int]:
    """Return the first position and the number of positions of a slice.

    Bounds are clamped as Python does, but that a slice backwards from before the start has the first element
    (ONNX, Slice: there ``starts`` lies in [0, size - 1]).
    """
    refuse_if(step == 0, "a slice with the step 0")
    start = max(start, -size) if step < 0 else start
    positions = range(*slice(start, end if end >= -size or step > 0 else None, step).indices(size))
    return (positions[0] if len(positions) else 0), len(positions)


def permuted(x: Value, order: Sequence[int]) -> Value:
    """Return the value with its axes in an order that may count them from the end. Raises ``Refused``."""
    found = [n % x.rank if x.rank else n for n in order]
    refuse_if(sorted(found) != list(range(x.rank)), f"the order {list(order)} of {x.rank} axes")
    return transposed(x, found)


def repeated(b: Builder, x: Value, repeats: Sequence[int]) -> Value:
    """Return the value repeated along each of its axes. Raises ``Refused``."""
    odd = len(repeats) != x.rank or min(repeats, default=0) < 0
    refuse_if(odd, f"repeats {list(repeats)} of {x.rank} axes")
    check_constant([n * r for n, r in zip(x.shape, repeats, strict=True)], x.type.size)
    return tiled(b, x, repeats)


def steps(b: Builder, start: NDArray, limit: NDArray, delta: NDArray) -> Value:
    """Return ``start, start + delta, ...`` below ``limit``, numbers of one type. Raises ``Refused``."""
    refuse_if(delta == 0, "a range with the step 0")
    count = max(0, int(np.ceil((limit.item() - start.item()) / delta.item())))
    check_constant([count], start.dtype.itemsize)
    return b.constant((start + np.arange(count).astype(start.dtype) * delta).astype(start.dtype))
