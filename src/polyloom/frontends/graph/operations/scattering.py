"""Elements combined with others at positions along an axis: scatter, index_put, segments.

Positions that are known choose slices, others are compared with 0, 1, 2, ...: dense work.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Function,
    Refused,
    Term,
    Value,
    iterators,
    refuse_if,
    scalar,
    selected,
    sliced,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.indexing import chosen, gathered_elements, wrapped
from polyloom.frontends.graph.operations.movement import (
    MOST_RUNS,
    concatenated,
    padded,
    reshaped,
    runs_of,
    taken,
)
from polyloom.frontends.graph.operations.reductions import iota
from polyloom.ir.reductions import neutral

REDUCTIONS = {
    "add": Combine.ADD,
    "mul": Combine.MULTIPLY,
    "max": Combine.MAXIMUM,
    "min": Combine.MINIMUM,
}
_OPERATORS = {
    Combine.ADD: scalar.add,
    Combine.MULTIPLY: scalar.multiply,
    Combine.MAXIMUM: scalar.maximum,
    Combine.MINIMUM: scalar.minimum,
}


def merged_positions(b: Builder, parts: Sequence[Value], sizes: Sequence[int]) -> Value:
    """Return positions in several axes, broadcast to each other, as one in these axes merged.

    Negative ones are counted from the end.
    """
    inside = [wrapped(b, part, size) for part, size in zip(parts, sizes, strict=True)]
    strides = [prod(sizes[k + 1 :]) for k in range(len(sizes))]

    def total(*terms: Expression) -> Expression:
        found = terms[-1]
        for term, stride in zip(terms[:-1], strides[:-1], strict=True):
            found = scalar.add(found, scalar.multiply(term, stride))
        return found

    return inside[0] if len(inside) == 1 else mapped(b, total, *inside, hint="positions")


def tuples_merged(b: Builder, positions: Value, sizes: Sequence[int]) -> Value:
    """Return positions, of which the last axis holds one for each of several axes, as one position.

    Raises ``Refused``.
    """
    refuse_if(
        positions.rank == 0 or positions.shape[-1] != len(sizes) or not sizes,
        f"positions of shape {list(positions.shape)} in {len(sizes)} axes",
    )
    parts = [selected(positions, positions.rank - 1, k) for k in range(len(sizes))]
    return merged_positions(b, parts, sizes)


def gathered(b: Builder, value: Value, positions: Value, axis: int = 0) -> Value:
    """Return the slices of an axis at positions, slices where these are known. Raises ``Refused``."""
    known, size = b.known_few(positions), value.shape[axis]
    if known is None:
        return chosen(b, value, axis, positions)
    if known.size and not 0 <= known.min() <= known.max() < size:
        raise Refused(f"a position outside {size} elements")
    found = taken(b, value, axis, [int(n) for n in known.reshape(-1)])
    return reshaped(b, found, (*value.shape[:axis], *known.shape, *value.shape[axis + 1 :]))


def gathered_nd(b: Builder, value: Value, positions: Value, batch: int = 0) -> Value:
    """Return the slices at positions of several axes, which the last axis of ``positions`` holds.

    ``batch``: the first axes of both are one; they become part of the positions. Raises ``Refused``.
    """
    depth = positions.shape[-1] if positions.rank else 0
    refuse_if(
        batch < 0 or not 1 <= batch + depth <= value.rank or positions.rank <= batch,
        f"positions of shape {list(positions.shape)} in the shape {list(value.shape)}",
    )
    refuse_if(
        positions.shape[:batch] != value.shape[:batch],
        f"positions of shape {list(positions.shape)} for images {list(value.shape[:batch])}",
    )
    at = tuples_merged(b, positions, value.shape[batch : batch + depth])
    size = prod(value.shape[batch : batch + depth])
    if batch:
        at = _in_batches(b, at, batch, size)
    whole = reshaped(b, value, (prod(value.shape[: batch + depth]), *value.shape[batch + depth :]), "flat")
    return gathered(b, whole, at)


def _in_batches(b: Builder, positions: Value, batch: int, size: int) -> Value:
    """Return positions in axes merged with the ``batch`` axes before them."""
    images = positions.shape[:batch]
    starts = np.arange(prod(images)).reshape(images) * size
    first = b.constant(starts.astype(positions.type.dtype))
    wide = unsqueezed(first, list(range(batch, positions.rank)))
    return mapped(b, scalar.add, positions, wide, hint="positions")


def rows_combined(
    b: Builder, rows: Value, positions: Value, size: int, combine: Combine, none: int | None = None
) -> Value:
    """Return ``y[k][z] combine= positions[p] == k ? rows[p][z] : none``; ``p`` may be several axes.

    A row that no position names is ``none``; without it, what the reduction starts from.
    """
    count = positions.rank
    refuse_if(
        rows.shape[:count] != positions.shape, f"positions {list(positions.shape)} of rows {list(rows.shape)}"
    )
    axes = iterators(rows.rank + 1)
    p, rest, k = axes[:count], axes[count:-1], axes[-1]
    terms = [Term(positions, p), Term(iota(b, size, positions.type), (k,)), Term(rows, axes[:-1])]
    shape = [size, *rows.shape[count:]]
    return b.statement(
        [*rows.shape, size], terms, shape, (k, *rest), _where_equal(combine, none), combine, "rows"
    )


def _where_equal(combine: Combine, none: int | None) -> Function:
    def function(p: Expression, k: Expression, v: Expression) -> Expression:
        otherwise = neutral(combine, v.type) if none is None else none
        return scalar.select(scalar.compare(CompareOp.EQ, p, k), v, scalar.number(otherwise, v.type))

    return function


def rows_updated(b: Builder, value: Value, positions: Value, rows: Value, combine: Combine | None) -> Value:
    """Return the value with rows at positions of axis 0 combined with its own.

    Without ``combine`` they replace these; of several for one row the last counts. Raises ``Refused``.
    """
    refuse_if(
        rows.shape != (*positions.shape, *value.shape[1:]) or rows.type is not value.type,
        f"{rows.type.value} {list(rows.shape)} in {value.type.value} {list(value.shape)}",
    )
    size = value.shape[0]
    if combine is not None:
        return mapped(b, _OPERATORS[combine], value, rows_combined(b, rows, positions, size, combine))
    flat = reshaped(b, positions, [positions.size])
    rows = reshaped(b, rows, [positions.size, *value.shape[1:]])
    known = b.known_few(flat)
    if known is not None:
        if known.size and not 0 <= known.min() <= known.max() < size:
            raise Refused(f"a position outside {size} elements")
        return _replaced(b, value, rows, [int(n) for n in known])
    numbers = iota(b, flat.size, ElementType.INT32)
    last = rows_combined(b, numbers, flat, size, Combine.MAXIMUM, -1)
    return _where_hit(b, last, value, rows)


def updated_at(b: Builder, x: Value, positions: Value, updates: Value, combine: Combine | None) -> Value:
    """Return ``x`` with elements or slices at positions of its first axes replaced, or combined with others.

    The last axis of ``positions`` holds one for each of these axes. Raises ``Refused``.
    """
    depth = positions.shape[-1] if positions.rank else 0
    at = tuples_merged(b, positions, x.shape[:depth])
    flat = reshaped(b, x, (prod(x.shape[:depth]), *x.shape[depth:]), "flat")
    return reshaped(b, rows_updated(b, flat, at, updates, combine), x.shape)


def _where_hit(b: Builder, last: Value, value: Value, rows: Value) -> Value:
    """Return ``last[k] >= 0 ? rows[last[k]][z] : value[k][z]``."""
    new = chosen(b, rows, 0, last, "new")
    hit = unsqueezed(last, list(range(1, value.rank)))
    return mapped(b, _if_hit, hit, new, value)


def _if_hit(n: Expression, new: Expression, old: Expression) -> Expression:
    return scalar.select(scalar.compare(CompareOp.GE, n, 0), new, old)


def _replaced(b: Builder, value: Value, rows: Value, positions: Sequence[int]) -> Value:
    """Replace rows at known positions: few runs as slices of both, many by what is chosen."""
    last = np.full(value.shape[0], -1)
    for number, position in enumerate(positions):
        last[position] = number
    runs = _runs(last)
    if len(runs) <= MOST_RUNS:
        parts = [sliced(rows if new else value, 0, *run) for new, run in runs]
        return concatenated(b, parts, 0)
    return _where_hit(b, b.constant(last.astype(np.int32)), value, rows)


def _runs(last: npt.NDArray[np.int64]) -> list[tuple[bool, tuple[int, int, int]]]:
    """Return runs of rows, each of the new ones or of the old ones."""
    edges = np.flatnonzero(np.diff((last >= 0).astype(int))) + 1
    found = []
    for part in np.split(np.arange(len(last)), edges):
        new = bool(len(part)) and bool(last[part[0]] >= 0)
        found += [(new, run) for run in runs_of([int(n) for n in (last[part] if new else part)])]
    return found


def elements_updated(
    b: Builder, value: Value, axis: int, positions: Value, updates: Value, combine: Combine | None
) -> Value:
    """Return the value with ``y[positions[i][j]][j]`` combined with ``updates[i][j]`` (axis 0).

    Without ``combine`` these are replaced, the last counts. Positions and updates have one shape, along other
    axes at most the value's. Raises ``Refused``.
    """
    refuse_if(
        positions.shape != updates.shape or positions.rank != value.rank or updates.type is not value.type,
        f"updates {list(updates.shape)} at positions {list(positions.shape)}",
    )
    refuse_if(
        any(n > m for k, (n, m) in enumerate(zip(positions.shape, value.shape, strict=True)) if k != axis),
        f"positions {list(positions.shape)} in data {list(value.shape)}",
    )
    inside = wrapped(b, positions, value.shape[axis])
    if combine is not None:
        found = _elements(b, value, axis, inside, updates, combine)
        return mapped(b, _OPERATORS[combine], value, found)
    count = updates.shape[axis]
    others = [k for k in range(value.rank) if k != axis]
    numbers = unsqueezed(iota(b, count, ElementType.INT32), others)
    last = _elements(b, value, axis, inside, numbers, Combine.MAXIMUM, -1)
    room = [
        0 if k == axis else n - m for k, (n, m) in enumerate(zip(value.shape, updates.shape, strict=True))
    ]
    new = gathered_elements(b, padded(b, updates, [0] * value.rank, room), axis, last)
    return mapped(b, _if_hit, last, new, value)


def _elements(
    b: Builder,
    value: Value,
    axis: int,
    positions: Value,
    updates: Value,
    combine: Combine,
    none: int | None = None,
) -> Value:
    """Return ``y[k][j] combine= positions[i][j] == k ? updates[i][j] : none``, of the value's shape."""
    axes = iterators(value.rank + 1)
    own, k = axes[:-1], axes[-1]
    places = [0 if n == 1 else own[a] for a, n in enumerate(updates.shape)]
    size = value.shape[axis]
    terms = [Term(positions, own), Term(iota(b, size, positions.type), (k,)), Term(updates, tuple(places))]
    write = tuple(k if a == axis else own[a] for a in range(value.rank))
    domain = [*positions.shape, size]
    return b.statement(domain, terms, value.shape, write, _where_equal(combine, none), combine, "combined")
