"""md_homs whose output view depends on reduced dimensions: points meet in an element (a histogram).

The points that meet in one element combine in lexicographic order, starting from ``initial`` at the first
of them; elements that no point writes stay as they are. ``initial`` and ``finish`` see that first point.

Where the view is affine (``dx[w + r] += ...``) and starts from what the output holds, points are combined
into it box after box, without an array of all points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.evaluation.boxes import Box, Step, steps
from polyloom.ir.evaluation.combining import (
    Mask,
    Partial,
    combined,
    nothing,
    one_after_another,
    some_present,
    ufunc_of,
    with_neutral,
)
from polyloom.ir.evaluation.launches import Launch, Reads, store, terms, written_places
from polyloom.ir.expressions import Read
from polyloom.ir.host import Combiner, Order, View

NDArray = npt.NDArray[Any]


def scatter(launch: Launch, box: Box) -> None:
    """Carry out the points of a box. Errors: IndexError where an element does not exist."""
    access = in_place(launch)
    if access is not None:
        _combine_in_place(launch, access, box)
        return
    points = terms(launch, box)
    where = points.present & launch.holds(launch.node.written, box)
    reads = Reads(launch, box)
    places = [written_places(launch, view, reads, where) for view in launch.node.outputs]
    if not where.any():
        return
    first, group = groups(places[0], launch.arrays[launch.node.outputs[0].buffer].shape)
    proper = Partial(tuple(v[where] for v in points.values), where[where])
    result = _meeting(launch, proper, _start(reads, where, first), group)
    finished = _finished(launch, result, reads, where, first)
    for view, place, values in zip(launch.node.outputs, places, finished, strict=True):
        launch.arrays[view.buffer][tuple(p[first] for p in place)] = values


def in_place(launch: Launch) -> View | None:
    """Return the access by which points are combined into what the output holds; None where they are not."""
    node, combiner = launch.node, launch.outermost
    (output, *others), (start, *_), (finish, *_) = node.outputs, node.initial, node.finish
    combiners = {o.combiner for o in node.combine if o.combiner is not None}
    if others or combiner is None or len(combiners) > 1 or launch.dimensions(Order.PREFIX):
        return None
    if ufunc_of(combiner) is None or combiner.neutral[0] is None:
        return None
    starts = isinstance(start, Read) and node.inputs[start.position] == output
    return launch.affine(output) if starts and finish is None and node.written is None else None


def write_steps(access: View, box: Box) -> Iterator[Step]:
    """Yield boxes in which points of different kept dimensions write different elements, in order."""
    return steps(box, [index.coefficients for index in access.affine])


def _combine_in_place(launch: Launch, access: View, whole: Box) -> None:
    combiner, output = launch.outermost, launch.node.outputs[0]
    assert combiner is not None, launch.node.name
    function = ufunc_of(combiner)
    assert function is not None, launch.node.name
    for step in write_steps(access, whole):
        points = terms(launch, step.box)
        (values,) = with_neutral(combiner, points).values
        before = launch.read(output, Reads(launch, step.written))
        where = points.present
        if step.run is None:
            values = function(before, values)
        else:
            lines = np.moveaxis(values, step.run, 0)
            values = np.expand_dims(one_after_another(function, before.take(0, step.run), lines), step.run)
            where = some_present(points, [step.run])
        store(launch, output, step.written, values, where)


def groups(places: tuple[NDArray, ...], shape: tuple[int, ...]) -> tuple[NDArray, NDArray]:
    """Return the first point of each element that is written, and the element's number of each point."""
    flat = np.ravel_multi_index(places, shape)
    _, first, group = np.unique(flat, return_index=True, return_inverse=True)
    return first, group


def _meeting(launch: Launch, points: Partial, start: Partial, group: NDArray) -> Partial:
    """Combine the points of each element; without an operator the last one wins."""
    combiner = launch.outermost
    if combiner is None:
        return _last(points, start.present.size, group)
    function = ufunc_of(combiner)
    if function is None or not start.present.all():
        return _in_rounds(combiner, start, points, group, launch.names)
    total = start.values[0].copy()
    function.at(total, group, points.values[0])
    return Partial((total,), start.present)


def _last(points: Partial, count: int, group: NDArray) -> Partial:
    last = np.zeros(count, np.int64)
    np.maximum.at(last, group, np.arange(group.size))
    return Partial(tuple(v[last] for v in points.values), np.ones(count, np.bool_))


def _start(reads: Reads, where: Mask, first: NDArray) -> Partial:
    """Return what each element starts from."""
    node, combiner = reads.launch.node, reads.launch.outermost
    if combiner is None:
        return Partial((), np.ones(first.size, np.bool_))
    neutral = with_neutral(combiner, nothing(combiner, (first.size,)))
    if all(e is None for e in node.initial):
        return neutral
    pairs = zip(node.initial, neutral.values, strict=True)
    values = tuple(n if e is None else reads.launch.values(e, reads)[where][first] for e, n in pairs)
    return Partial(values, np.ones(first.size, np.bool_))


def _in_rounds(
    combiner: Combiner, start: Partial, points: Partial, group: NDArray, names: Mapping[str, int]
) -> Partial:
    """Combine the first points of all elements, then the second ones, and so on."""
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], np.arange(start.present.size))
    rank = np.empty(group.size, np.int64)
    rank[order] = np.arange(group.size) - begins[group[order]]
    total = start
    for turn in range(int(rank.max(initial=-1)) + 1):
        chosen = np.flatnonzero(rank == turn)
        total = _with_round(combiner, total, points, chosen, group[chosen], names)
    return total


def _with_round(
    combiner: Combiner,
    total: Partial,
    points: Partial,
    chosen: NDArray,
    to: NDArray,
    names: Mapping[str, int],
) -> Partial:
    right = Partial(tuple(v[chosen] for v in points.values), points.present[chosen])
    left = Partial(tuple(v[to] for v in total.values), total.present[to])
    result = combined(combiner, left, right, names)
    values = tuple(v.copy() for v in total.values)
    for target, found in zip(values, result.values, strict=True):
        target[to] = found
    present = total.present.copy()
    present[to] = result.present
    return Partial(values, present)


def _finished(
    launch: Launch, result: Partial, reads: Reads, where: Mask, first: NDArray
) -> tuple[NDArray, ...]:
    """Return the finishing maps of the results, each at the first point of its element."""
    if all(f is None for f in launch.node.finish):
        return result.values
    spread = []
    for values in result.values:
        at_points = np.zeros(where.shape, values.dtype)
        inside = np.zeros(int(where.sum()), values.dtype)
        inside[first] = values
        at_points[where] = inside
        spread.append(at_points)
    whole = Reads(launch, reads.box, spread)
    pairs = zip(launch.node.finish, result.values, strict=True)
    return tuple(v if f is None else launch.values(f, whole)[where][first] for f, v in pairs)
