"""The meaning of one md_hom, in NumPy: ``out_view . md_hom(f, (op_1, ..., op_d)) . inp_view``.

Results of kept points are computed box by box and stored at the end, so inputs are read before any output
is written. The dimensions of a box combine from the last to the first, each by its own operator; where all
that reduce have one operator, points combine in lexicographic order, as in the sequential program.
Serial dimensions are walked point by point, through memory.

Source: md_poly, Sec. 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.boxes import LARGEST_BOX, Box, cut
from polyloom.ir.evaluation.combining import (
    Mask,
    Partial,
    combined,
    nothing,
    one_after_another,
    reduced,
    scanned,
    some_present,
    ufunc_of,
    with_neutral,
)
from polyloom.ir.evaluation.launches import Launch, Reads, store, terms
from polyloom.ir.evaluation.scatter import in_place, scatter
from polyloom.ir.host import Combiner, Index, MdHom, Order

NDArray = npt.NDArray[Any]

LARGEST_CHUNK = 2**16
"""Points up to which a box takes several values of reduced dimensions."""


def run_md_hom(
    node: MdHom, arrays: Mapping[str, NDArray], names: Mapping[str, int], box: Box | None = None
) -> None:
    """Carry out an md_hom: its output buffers among ``arrays`` change.

    ``box``: some of its kept points, with all points of the dimensions that are not ``++``.
    """
    launch = Launch(node, arrays, names)
    for whole in boxes_in_order(launch, box):
        _run_box(launch, whole)


def boxes_in_order(launch: Launch, box: Box | None) -> Iterator[Box]:
    """Yield boxes that are carried out one after another: one for each serial point, else that given.

    Where there are serial points, or none is given, they are the whole domain.
    """
    serial = launch.dimensions(Order.SERIAL)
    if box is not None and not serial:
        yield box
        return
    for point in product(*(range(launch.extents[k]) for k in serial)):
        at = dict(zip(serial, point, strict=True))
        yield tuple(range(at[k], at[k] + 1) if k in at else range(n) for k, n in enumerate(launch.extents))


def _run_box(launch: Launch, whole: Box) -> None:
    """Carry out the points of a box, whose serial dimensions have one value."""
    if scatters(launch):
        if all(whole):
            scatter(launch, whole)
        return
    stores = [(box, *_results(launch, box)) for box in kept_boxes(launch, whole)]
    for box, values, where in stores:
        for output, found in zip(launch.node.outputs, values, strict=True):
            store(launch, output, box, found, where)


def scatters(launch: Launch) -> bool:
    """Whether points that reduced dimensions tell apart may write different elements.

    And whether points that a guard excludes may have no element, where the others add to what is there.
    """
    if launch.node.guard is not None and in_place(launch) is not None:
        return True
    reduced_axes = launch.dimensions(Order.POINTWISE)
    indices = [index for view in launch.node.outputs for index in view.indices]
    return any(not isinstance(i, Index) or any(i.coefficients[k] for k in reduced_axes) for i in indices)


def kept_boxes(launch: Launch, whole: Box) -> Iterator[Box]:
    """Yield boxes of kept points; reduced dimensions have length 1, prefix dimensions stay whole."""
    reduced_axes = launch.dimensions(Order.POINTWISE)
    room = max(1, LARGEST_BOX // max(1, prod(len(whole[k]) for k in launch.dimensions(Order.PREFIX))))
    ranges: list[list[range]] = []
    for k in reversed(range(len(whole))):
        splits = launch.node.combine[k].order is Order.CONCATENATE
        size = max(1, min(len(whole[k]), room)) if splits else max(1, len(whole[k]))
        room = max(1, room // size) if splits else room
        ranges.append([range(1)] if k in reduced_axes else cut(whole[k], size))
    yield from product(*reversed(ranges))


def _results(launch: Launch, kept: Box) -> tuple[tuple[NDArray, ...], Mask]:
    """Return the finished values of a box of kept points, and which of them are stored."""
    node = launch.node
    result = combined_at(launch, kept)
    reads = Reads(launch, kept, result.values)
    pairs = zip(node.finish, result.values, strict=True)
    values = tuple(v if f is None else launch.values(f, reads) for f, v in pairs)
    if len(values) > 1:  # of a swap they are the elements themselves, which the first store changes
        values = tuple(v.copy() for v in values)
    return values, result.present & launch.holds(node.written, kept)


def combined_at(launch: Launch, kept: Box) -> Partial:
    """Return what the points above a box of kept points combine to, before it is finished."""
    result = combined_points(launch, kept, start_of(launch, kept))
    combiner = launch.outermost
    return result if combiner is None else with_neutral(combiner, result)


def start_of(launch: Launch, kept: Box) -> Partial | None:
    """Return what the reduction starts from at kept points; None where it starts from nothing."""
    combiner = launch.outermost
    given = launch.node.initial
    if combiner is None or all(e is None for e in given):
        return None
    reads = Reads(launch, kept)
    shape = tuple(map(len, kept))
    neutral = with_neutral(combiner, nothing(combiner, shape)).values
    pairs = zip(given, neutral, strict=True)
    values = tuple(n if e is None else launch.values(e, reads) for e, n in pairs)
    return Partial(values, np.ones(shape, np.bool_))


def combined_points(launch: Launch, kept: Box, start: Partial | None) -> Partial:
    """Return what the points above a box of kept points combine to."""
    reduced_axes = launch.dimensions(Order.POINTWISE)
    combiners = {launch.node.combine[k].combiner for k in reduced_axes}
    scans = launch.dimensions(Order.PREFIX)
    if not scans and len(combiners) == 1:
        (combiner,) = combiners
        assert combiner is not None
        return _in_order(launch, kept, combiner, start)
    points = terms(
        launch, tuple(range(launch.extents[k]) if k in reduced_axes else r for k, r in enumerate(kept))
    )
    for k in reversed(range(len(kept))):
        points = along(launch, points, k)
    outermost = launch.outermost
    if start is None or outermost is None:
        return points
    return combined(outermost, start, points, launch.names)


def along(launch: Launch, points: Partial, dimension: int) -> Partial:
    """Combine points along a dimension by its operator; ``++`` leaves them as they are."""
    operator = launch.node.combine[dimension]
    if operator.combiner is None:
        return points
    if operator.order is Order.PREFIX:
        return scanned(operator.combiner, points, dimension, launch.names)
    if points.present.shape[dimension] == 0:
        shape = tuple(1 if k == dimension else n for k, n in enumerate(points.present.shape))
        return with_neutral(operator.combiner, nothing(operator.combiner, shape))
    return reduced(operator.combiner, points, dimension, launch.names)


def _in_order(launch: Launch, kept: Box, combiner: Combiner, start: Partial | None) -> Partial:
    """Combine points of one operator one after another, chunks of them at a time."""
    reduced_axes = launch.dimensions(Order.POINTWISE)
    function = ufunc_of(combiner) if combiner.neutral[0] is not None else None
    total = start
    for chunk in chunks([launch.extents[k] for k in reduced_axes], max(1, prod(map(len, kept)))):
        at = dict(zip(reduced_axes, chunk, strict=True))
        box = tuple(at.get(k, r) for k, r in enumerate(kept))
        points = terms(launch, box)
        if function is None:
            total = _next(launch, combiner, total, points, kept)
        else:
            total = _next_of(combiner, function, total, points, reduced_axes)
    return nothing(combiner, shape_of(kept)) if total is None else total


def _next(launch: Launch, combiner: Combiner, total: Partial | None, points: Partial, kept: Box) -> Partial:
    """Return the total with the points of a box, by an operator of any kind."""
    reduced_axes = launch.dimensions(Order.POINTWISE)
    before = None if total is None else as_line(total, reduced_axes)
    result = reduced(combiner, as_line(points, reduced_axes), 0, launch.names, before)
    return Partial(tuple(v.reshape(shape_of(kept)) for v in result.values), _shaped(result, kept))


def _next_of(
    combiner: Combiner,
    function: np.ufunc,
    total: Partial | None,
    points: Partial,
    reduced_axes: Sequence[int],
) -> Partial:
    """Return the total with the points of a box, by a function of NumPy."""
    (values,) = with_neutral(combiner, points).values
    lines = line(values, reduced_axes)
    before = None if total is None else total.values[0].reshape(lines.shape[1:])
    result = one_after_another(function, before, lines)
    present = some_present(points, reduced_axes)
    present = present if total is None else present | total.present
    return Partial((result.reshape(present.shape),), present)


def shape_of(box: Box) -> tuple[int, ...]:
    """Return the lengths of a box."""
    return tuple(map(len, box))


def _shaped(result: Partial, box: Box) -> Mask:
    return result.present.reshape(shape_of(box))


def as_line(points: Partial, reduced_axes: Sequence[int]) -> Partial:
    """Bring the reduced dimensions together as the first axis, in lexicographic order."""
    return Partial(tuple(line(v, reduced_axes) for v in points.values), line(points.present, reduced_axes))


def line(array: NDArray, reduced_axes: Sequence[int]) -> NDArray:
    """Return an array whose first axis is the reduced dimensions, in lexicographic order."""
    moved = np.moveaxis(array, reduced_axes, range(len(reduced_axes)))
    return moved.reshape(-1, *moved.shape[len(reduced_axes) :])


def chunks(extents: Sequence[int], width: int) -> Iterator[Box]:
    """Yield boxes that cover a rectangle in lexicographic order, of about LARGEST_CHUNK / width points."""
    room = max(1, LARGEST_CHUNK // width)
    ranges: list[list[range]] = []
    for n in reversed(extents):
        size = max(1, min(n, room))
        room = room // n if size == n else 1
        ranges.append(cut(range(n), size))
        room = max(1, room)
    yield from product(*reversed(ranges))
