"""Gathering, one-hot, scattering and segments: positions that are known, or data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.core import (
    Builder,
    Combine,
    Context,
    ElementType,
    From,
    Operation,
    Table,
    Value,
    X,
    axis,
    check_constant,
    filled,
    gathered,
    gathered_nd,
    integer,
    mapped,
    one_hot,
    only,
    op,
    refuse_if,
    reshaped,
    rows_combined,
    rows_updated,
    scalar,
    selected,
    transposed,
    tuples_merged,
    unsqueezed,
    updated_at,
    value,
)

NDArray = npt.NDArray[Any]


def _gather(c: Context) -> Sequence[Value]:
    x, positions = c.input(0), c.input(1)
    at = axis(c.whole(2, "its axis", 0), x.rank)
    batch = c.integer("batch_dims", 0)
    if batch:
        return only(_gathered_in_batches(c, x, positions, at, axis(batch, positions.rank + 1)))
    known = c.b.known(positions)
    if known is not None and known.ndim == 0:
        return only(selected(x, at, int(known)))
    return only(gathered(c.b, x, positions, at))


def _gathered_in_batches(c: Context, x: Value, positions: Value, at: int, batch: int) -> Value:
    """``y[n][z][p][w] = x[n][z][positions[n][p]][w]``; the first ``batch`` axes of both are one."""
    refuse_if(at < batch, f"axis {at} of data with {batch} axes of images")
    first = transposed(x, [*range(batch), at, *(k for k in range(batch, x.rank) if k != at)])
    found = gathered_nd(c.b, first, unsqueezed(positions, [positions.rank]), batch)
    inner = list(range(batch, positions.rank))
    outer = list(range(positions.rank, positions.rank + at - batch))
    rest = range(positions.rank + at - batch, found.rank)
    return transposed(found, [*range(batch), *outer, *inner, *rest])


def _one_hot(c: Context) -> Sequence[Value]:
    b, positions = c.b, c.input(0)
    size = c.whole(1, "its depth")
    check_constant([*positions.shape, size], c.input(2).type.size)
    at = axis(c.integer("axis", -1), positions.rank + 1)
    return only(one_hot(b, positions, size, at, c.input(2), c.input(3)))


def _where(c: Context) -> Sequence[Value]:
    """Where: the positions of what is not 0, which must be known: how many there are decides the shape."""
    found = np.argwhere(c.known(0, "its input, on which its result's shape depends,"))
    return only(c.b.constant(found.astype(np.int64)))


# -- scattering


def _scatter_nd(c: Context) -> Sequence[Value]:
    """ScatterNd(positions, updates, shape): sums of updates, elsewhere 0."""
    positions, updates, shape = c.input(0), c.input(1), c.integers(2, "its shape")
    check_constant(shape, updates.type.size)
    depth = positions.shape[-1] if positions.rank else 0
    at = tuples_merged(c.b, positions, shape[:depth])
    return only(reshaped(c.b, rows_combined(c.b, updates, at, prod(shape[:depth]), Combine.ADD), shape))


Update = Callable[[Builder, Value, Value, Value, Combine | None], Value]


def _updated(function: Update, combine: Combine | None, *, negated: bool = False) -> Operation:
    """TensorScatter...(x, positions, updates), ResourceScatter...(variable, rows' positions, rows)."""
    negative = From(lambda c: mapped(c.b, scalar.negate, c.input(2), hint="negated"))
    return op(function, X, value(1), negative if negated else value(2), combine)


# -- segments: rows with one number are combined


def _unsorted(c: Context, combine: Combine) -> Sequence[Value]:
    """UnsortedSegment...(rows, numbers, count): of no rows what the reduction starts from."""
    count, rows = c.whole(2, "the number of segments"), c.input(0)
    check_constant([count, *rows.shape[c.input(1).rank :]], rows.type.size)
    return only(_segments(c, combine, count, _lowest(combine, rows.type)))


def _segments(c: Context, combine: Combine, count: int, none: float | int | None) -> Value:
    rows, numbers = c.input(0), c.input(1)
    if none is None:
        return rows_combined(c.b, rows, numbers, count, combine)
    found = rows_combined(c.b, rows, numbers, count, combine)
    held = rows_combined(
        c.b, filled(c.b, numbers.shape, 1, ElementType.UINT8), numbers, count, Combine.MAXIMUM, 0
    )
    wide = unsqueezed(held, list(range(1, found.rank)))
    return mapped(c.b, lambda h, v: scalar.select(scalar.truth(h), v, none), wide, found)


def _lowest(combine: Combine, kind: ElementType) -> float | int | None:
    """Return what a segment without rows is where the reduction starts from infinity."""
    if not kind.is_float or combine not in (Combine.MAXIMUM, Combine.MINIMUM):
        return None
    largest = float(np.finfo(str(kind.value)).max)
    return -largest if combine is Combine.MAXIMUM else largest


def _sorted(c: Context, combine: Combine) -> Sequence[Value]:
    """Segment...(rows, numbers): so many segments as the last number says; of no rows 0 (1 of products)."""
    extreme = combine in (Combine.MAXIMUM, Combine.MINIMUM)
    return only(_segments(c, combine, _last_number(c), 0 if extreme else None))


def _last_number(c: Context) -> int:
    found = c.known(1, "the numbers of its segments")
    refuse_if(found.ndim != 1 or not found.size, f"numbers of segments of shape {list(found.shape)}")
    check_constant([int(found[-1]) + 1], c.input().type.size)
    return int(found[-1]) + 1


def _segment_mean(c: Context) -> Sequence[Value]:
    b, rows, numbers, count = c.b, c.input(0), c.input(1), _last_number(c)
    total = rows_combined(b, rows, numbers, count, Combine.ADD)
    held = rows_combined(b, filled(b, numbers.shape, 1, rows.type), numbers, count, Combine.ADD)
    wide = unsqueezed(held, list(range(1, total.rank)))
    return only(mapped(b, lambda s, n: s / scalar.maximum(n, 1), total, wide))


_gather_nd = op(gathered_nd, X, value(1), integer("batch_dims", 0))

OPERATIONS: Table = {
    "Gather": _gather,
    "GatherV2": _gather,
    "ResourceGather": _gather,
    "GatherNd": _gather_nd,
    "ResourceGatherNd": _gather_nd,
    "OneHot": _one_hot,
    "Where": _where,
    "ScatterNd": _scatter_nd,
    "TensorScatterUpdate": _updated(updated_at, None),
    "TensorScatterAdd": _updated(updated_at, Combine.ADD),
    "TensorScatterSub": _updated(updated_at, Combine.ADD, negated=True),
    "TensorScatterMax": _updated(updated_at, Combine.MAXIMUM),
    "TensorScatterMin": _updated(updated_at, Combine.MINIMUM),
    "ResourceScatterUpdate": _updated(rows_updated, None),
    "ResourceScatterAdd": _updated(rows_updated, Combine.ADD),
    "ResourceScatterSub": _updated(rows_updated, Combine.ADD, negated=True),
    "SegmentSum": partial(_sorted, combine=Combine.ADD),
    "SegmentProd": partial(_sorted, combine=Combine.MULTIPLY),
    "SegmentMax": partial(_sorted, combine=Combine.MAXIMUM),
    "SegmentMin": partial(_sorted, combine=Combine.MINIMUM),
    "SegmentMean": _segment_mean,
    "UnsortedSegmentSum": partial(_unsorted, combine=Combine.ADD),
    "UnsortedSegmentProd": partial(_unsorted, combine=Combine.MULTIPLY),
    "UnsortedSegmentMax": partial(_unsorted, combine=Combine.MAXIMUM),
    "UnsortedSegmentMin": partial(_unsorted, combine=Combine.MINIMUM),
}
