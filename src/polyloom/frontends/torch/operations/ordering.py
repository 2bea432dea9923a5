"""Order: sorting, the first elements, the middle one, places in sorted rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    Combine,
    ElementType,
    Expression,
    From,
    Value,
    X,
    arg_extreme,
    at,
    cast,
    counted_before,
    filled,
    flag,
    gathered_elements,
    integer,
    is_nan,
    mapped,
    middle_of_numbers,
    of_rank,
    only,
    op,
    ranked,
    reduced,
    refuse_if,
    reshaped,
    scalar,
    squeezed,
)
from polyloom.frontends.torch.call import Call, operations
from polyloom.frontends.torch.operations.promotion import common_type
from polyloom.frontends.torch.operations.scalars import itself, scalars_stay


def _of_rank(c: Call) -> Sequence[Value]:
    x = c.input()
    if x.rank == 0:
        refuse_if(c.integer("k") != 1, f"element {c.integer('k')} of 1")
        return itself(c)
    return _element_in_order(c, x, c.axis("dim", x.rank, -1), c.integer("k") - 1)


def _median(c: Call) -> Sequence[Value]:
    """The middle element in order, of two the smaller; along an axis with its position."""
    x = c.input()
    if c.given("dim") and x.rank == 0:
        return itself(c)
    if c.given("dim"):
        at = c.axis("dim", x.rank)
        found = _middle(c, x, at)
        return found if c.flag("keepdim") else [squeezed(v, [at]) for v in found]
    if x.size == 0 and x.type.is_float:
        return only(filled(c.b, (), math.nan, x.type))
    flat = reshaped(c.b, x, [x.size])
    return only(squeezed(_middle(c, flat, 0)[0], [0]))


def _middle(c: Call, x: Value, at: int) -> tuple[Value, Value]:
    """Return the middle element along an axis, which stays, and its position; NaN where there is one."""
    found, place = of_rank(c.b, x, at, (x.shape[at] - 1) // 2, ElementType.INT64)
    if not x.type.is_float:
        return found, place
    most = reduced(c.b, Combine.MAXIMUM, x, [at], hint="max")
    first = arg_extreme(c.b, x, at, largest=True, last=False, kind=ElementType.INT64)

    def function(m: Expression, nan: Expression, other: Expression) -> Expression:
        return scalar.select(is_nan(m), nan, other)

    return mapped(c.b, function, most, most, found), mapped(
        c.b, function, most, first, place, hint="position"
    )


def _nan_median(c: Call) -> Sequence[Value]:
    """The middle element of those that are not NaN."""
    x = c.input()
    if not x.type.is_float or x.size == 0:
        return _median(c)
    if c.given("dim") and x.rank == 0:
        return itself(c)
    if not c.given("dim"):
        flat = reshaped(c.b, x, [x.size])
        return only(squeezed(middle_of_numbers(c.b, flat, 0, ElementType.INT64)[0], [0]))
    at = c.axis("dim", x.rank)
    found = middle_of_numbers(c.b, x, at, ElementType.INT64)
    return found if c.flag("keepdim") else [squeezed(v, [at]) for v in found]


def _element_in_order(c: Call, x: Value, at: int, rank: int) -> Sequence[Value]:
    found = of_rank(c.b, x, at, rank, ElementType.INT64)
    return found if c.flag("keepdim") else [squeezed(v, [at]) for v in found]


def _searched(c: Call) -> Sequence[Value]:
    """``searchsorted``: where values belong in sorted rows, or all of them in one row."""
    equal_too, rows = c.flag("right") or c.text("side", "left") == "right", c.input("sorted_sequence")
    if c.given("sorter"):
        rows = gathered_elements(c.b, rows, rows.rank - 1, c.input("sorter"))
    return only(_placed_in_order(c, rows, equal_too=equal_too))


def _bucket(c: Call) -> Sequence[Value]:
    return only(_placed_in_order(c, c.input("boundaries"), equal_too=c.flag("right")))


def _placed_in_order(c: Call, rows: Value, *, equal_too: bool) -> Value:
    kind = common_type(c, "self", "boundaries" if "boundaries" in c.arguments else "sorted_sequence")
    values, rows = c.operand("self", kind), cast(c.b, rows, kind)
    one = rows.rank == 1
    listed = reshaped(c.b, values, [values.size]) if one else values
    found = counted_before(c.b, rows, listed, c.type, equal_too=equal_too)
    return reshaped(c.b, found, values.shape) if one else found


_of_axis = op(ranked, X, at("dim", -1), integer("k"), largest=flag("largest", True), kind=ElementType.INT64)


def _top(c: Call) -> Sequence[Value]:
    if c.input().rank:
        return _of_axis(c)
    c.flag("largest", True)  # no matter: there is one
    if c.integer("k") == 0:
        return [filled(c.b, (0,), 0, kind) for kind in (c.type, ElementType.INT64)]
    refuse_if(c.integer("k") != 1, f"{c.integer('k')} of 1 element")
    return itself(c)


_sorted = scalars_stay(
    op(
        ranked,
        X,
        at("dim", -1),
        From(lambda c: c.input().shape[c.axis("dim", c.input().rank, -1)]),
        largest=flag("descending"),
        kind=ElementType.INT64,
    )
)

OPERATIONS = operations(
    {
        "topk": _top,
        "sort": _sorted,
        "argsort": lambda c: _sorted(c)[1:],
        "median": _median,
        "nanmedian": _nan_median,
        "kthvalue": _of_rank,
        "bucketize": _bucket,
        "searchsorted": _searched,
    }
)
