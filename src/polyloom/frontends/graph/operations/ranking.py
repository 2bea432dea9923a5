"""Order as counting: the rank of an element is how many come before it, so sorting is dense affine work.

r[i] += before(x[j], x[i]) ? 1 : 0;    y[k] += r[i] == k ? x[i] : 0
"""

from __future__ import annotations

from polyloom.frontends.graph.basis import (
    BinaryOp,
    Builder,
    Combine,
    CompareOp,
    ElementType,
    Expression,
    Term,
    Value,
    expanded,
    is_extreme,
    is_nan,
    iterators,
    refuse_if,
    scalar,
    sliced,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.reductions import iota, reduced
from polyloom.ir.reductions import neutral


def ranked(
    b: Builder, x: Value, axis: int, count: int, *, largest: bool, kind: ElementType
) -> tuple[Value, Value]:
    """Return the first ``count`` elements along an axis in order, and their positions.

    Of equal elements the first comes first; NaN is larger than every number. Raises ``Refused``.
    """
    size = x.shape[axis]
    refuse_if(not 0 <= count <= size, f"it asks for {count} of {size} elements; there must be 0 to {size}")
    return _at_places(b, x, axis, _first(b, size, count), largest=largest, kind=kind)


def of_rank(b: Builder, x: Value, axis: int, rank: int, kind: ElementType) -> tuple[Value, Value]:
    """Return the element with ``rank`` smaller ones along an axis, which stays, and its position."""
    size = x.shape[axis]
    refuse_if(not 0 <= rank < size, f"element {rank} of {size} in order")
    places = sliced(iota(b, size, ElementType.INT32), 0, rank, 1, 1)
    return _at_places(b, x, axis, places, largest=False, kind=kind)


def middle_of_numbers(b: Builder, x: Value, axis: int, kind: ElementType) -> tuple[Value, Value]:
    """Return the middle element of those that are not NaN along an axis, which stays, and its position.

    Of two the smaller; where all are NaN the first.
    """
    ranks = _ranks(b, x, axis, largest=False)

    def counted(v: Expression) -> Expression:
        return scalar.select(is_nan(v), scalar.number(0, ElementType.INT32), 1)

    count = reduced(b, Combine.ADD, x, [axis], counted, hint="count")
    half = mapped(b, lambda n: scalar.maximum(n - 1, 0) / 2, count, hint="middle")
    others = [k for k in range(x.rank) if k != axis]
    numbers = expanded(unsqueezed(iota(b, x.shape[axis], kind), others), x.shape)

    def chosen(v: Expression, rank: Expression, wanted: Expression) -> Expression:
        return scalar.select(scalar.equal(rank, wanted), v, scalar.number(0, v.type))

    at_rank = [ranks, expanded(half, x.shape)]
    place = reduced(b, Combine.ADD, [numbers, *at_rank], [axis], chosen, hint="position")
    return reduced(b, Combine.ADD, [x, *at_rank], [axis], chosen), place


def most_frequent(b: Builder, x: Value, axis: int, kind: ElementType) -> tuple[Value, Value]:
    """Return what comes most often along an axis, of several the least, and where it comes last."""
    wide = (*x.shape[: axis + 1], *x.shape[axis:])
    pair = [expanded(unsqueezed(x, [axis + 1]), wide), expanded(unsqueezed(x, [axis]), wide)]

    def alike(v: Expression, w: Expression) -> Expression:
        return scalar.select(scalar.equal(v, w), scalar.number(1, ElementType.INT32), 0)

    counts = reduced(b, Combine.ADD, pair, [axis + 1], alike, keep=False, hint="counts")
    most = expanded(reduced(b, Combine.MAXIMUM, counts, [axis], hint="most"), x.shape)

    def if_most(v: Expression, n: Expression, most: Expression) -> Expression:
        none = scalar.number(neutral(Combine.MINIMUM, v.type), v.type)
        return scalar.select(scalar.equal(n, most), v, none)

    found = reduced(b, Combine.MINIMUM, [x, counts, most], [axis], if_most)
    numbers = expanded(
        unsqueezed(iota(b, x.shape[axis], kind), [k for k in range(x.rank) if k != axis]), x.shape
    )

    def last(v: Expression, found: Expression, k: Expression) -> Expression:
        return scalar.select(is_extreme(v, found), k, -1)

    operands = [x, expanded(found, x.shape), numbers]
    return found, reduced(b, Combine.MAXIMUM, operands, [axis], last, hint="position")


def counted_before(b: Builder, rows: Value, values: Value, kind: ElementType, *, equal_too: bool) -> Value:
    """Return how many elements of rows are before a value: ``y[n][m] += x[n][k] < v[n][m] ? 1 : 0``.

    ``equal_too``: those that are equal count. Rows and values have the same axes but the last. NaN is larger
    than every number.
    """
    refuse_if(
        rows.rank < 1 or values.rank < 1 or rows.shape[:-1] != values.shape[:-1],
        f"rows {list(rows.shape)} and values {list(values.shape)}",
    )
    refuse_if(rows.type is not values.type, f"rows of {rows.type.value} and values of {values.type.value}")
    shape = (*values.shape, rows.shape[-1])
    last = values.rank
    operands = [
        expanded(unsqueezed(rows, [last - 1]), shape),
        expanded(unsqueezed(values, [last]), shape),
    ]

    def before(row: Expression, value: Expression) -> Expression:
        counts = _as_large(row, value) if equal_too else scalar.negation(_as_large(value, row))
        return scalar.select(counts, scalar.number(1, kind), 0)

    return reduced(b, Combine.ADD, operands, [last], before, keep=False)


def _first(b: Builder, size: int, count: int) -> Value:
    return sliced(iota(b, size, ElementType.INT32), 0, 0, 1, count)


def _at_places(
    b: Builder, x: Value, axis: int, places: Value, *, largest: bool, kind: ElementType
) -> tuple[Value, Value]:
    """Return the elements that stand at places in the order of an axis, and their positions."""
    ranks = _ranks(b, x, axis, largest=largest)
    others = [k for k in range(x.rank) if k != axis]
    numbers = expanded(unsqueezed(iota(b, x.shape[axis], kind), others), x.shape)
    positions = _at_ranks(b, numbers, ranks, axis, places, "positions")
    return _at_ranks(b, x, ranks, axis, places, ""), positions


def _ranks(b: Builder, x: Value, axis: int, *, largest: bool) -> Value:
    """Return how many elements of an axis come before each."""
    axes = iterators(x.rank + 1)
    own, j = axes[:-1], axes[-1]
    other = tuple(j if k == axis else own[k] for k in range(x.rank))
    numbers = iota(b, x.shape[axis], ElementType.INT32)

    def before(x: Expression, y: Expression, i: Expression, j: Expression) -> Expression:
        low, high = (x, y) if largest else (y, x)
        tied = scalar.logical(BinaryOp.AND, _as_large(low, high), scalar.compare(CompareOp.LT, j, i))
        smaller = scalar.negation(_as_large(high, low))
        first = scalar.logical(BinaryOp.OR, smaller, tied)
        return scalar.select(first, scalar.number(1, ElementType.INT32), 0)

    terms = [Term(x, own), Term(x, other), Term(numbers, (own[axis],)), Term(numbers, (j,))]
    return b.statement((*x.shape, x.shape[axis]), terms, x.shape, own, before, Combine.ADD, "ranks")


def _as_large(low: Expression, high: Expression) -> Expression:
    """Tell whether ``low <= high``, where NaN is larger than every number."""
    found = scalar.compare(CompareOp.LE, low, high)
    return scalar.logical(BinaryOp.OR, found, is_nan(high)) if high.type.is_float else found


def _at_ranks(b: Builder, x: Value, ranks: Value, axis: int, places: Value, hint: str) -> Value:
    """Return the elements whose ranks are ``places``."""
    axes = iterators(x.rank + 1)
    own, k = axes[:-1], axes[-1]
    write = tuple(k if a == axis else own[a] for a in range(x.rank))

    def chosen(v: Expression, rank: Expression, k: Expression) -> Expression:
        return scalar.select(scalar.compare(CompareOp.EQ, rank, k), v, scalar.number(0, v.type))

    terms = [Term(x, own), Term(ranks, own), Term(places, (k,))]
    shape = [places.size if a == axis else n for a, n in enumerate(x.shape)]
    return b.statement((*x.shape, places.size), terms, shape, write, chosen, Combine.ADD, hint)
