"""What is counted: histograms, and what comes most often."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    BinaryOp,
    Combine,
    ElementType,
    Expression,
    Value,
    cast,
    expanded,
    filled,
    mapped,
    most_frequent,
    only,
    reduced,
    refuse_if,
    refused,
    reshaped,
    rows_combined,
    scalar,
    squeezed,
)
from polyloom.frontends.torch.call import Call, operations
from polyloom.frontends.torch.operations.scalars import itself


def _mode(c: Call) -> Sequence[Value]:
    """What comes most often along an axis, and where it comes last."""
    x = c.input()
    if x.rank == 0:
        return itself(c)
    at = c.axis("dim", x.rank, -1)
    refuse_if(x.shape[at] == 0, "what comes most often among no elements")
    digits = cast(c.b, x, ElementType.UINT8, "digits") if x.type is ElementType.BOOL else x
    value, place = most_frequent(c.b, digits, at, ElementType.INT64)
    found = cast(c.b, value, x.type), place
    return found if c.flag("keepdim") else [squeezed(v, [at]) for v in found]


def _histogram(c: Call) -> Sequence[Value]:
    """How many elements lie in each of equal bins from ``min`` to ``max``, or to the ends of the data."""
    x, bins, low, high = c.input(), c.integer("bins", 100), c.number("min", 0), c.number("max", 0)
    refuse_if(not x.type.is_float or bins < 1, f"{bins} bins of {x.type.value}")
    flat = reshaped(c.b, x, [x.size])
    found_ends = low == high and x.size
    ends = _ends(c, flat) if found_ends else [filled(c.b, (), n, x.type) for n in _apart(low, high)]
    wide = [expanded(end, flat.shape) for end in ends]
    places = mapped(c.b, lambda v, a, z: _bin(v, a, z, bins), flat, *wide, hint="bins")
    ones = filled(c.b, flat.shape, 1, x.type)
    return only(rows_combined(c.b, ones, places, bins, Combine.ADD))


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low - 1, high + 1) if low == high else (low, high)


def _ends(c: Call, flat: Value) -> list[Value]:
    """Return the least and the largest element, further apart by 1 on each side where they are equal."""
    least, most = (
        reduced(c.b, combine, flat, [0], keep=False, hint=combine.name.lower())
        for combine in (Combine.MINIMUM, Combine.MAXIMUM)
    )

    def moved(own: Expression, other: Expression, by: int) -> Expression:
        return scalar.select(scalar.equal(own, other), own + by, own)

    return [mapped(c.b, moved, least, most, -1), mapped(c.b, moved, most, least, 1)]


def _bin(x: Expression, low: Expression, high: Expression, bins: int) -> Expression:
    """Return the number of a bin, -1 of what is outside; the largest number is in the last one."""
    inside = scalar.logical(BinaryOp.AND, x >= low, x <= high)
    place = (scalar.select(inside, x, low) - low) * bins / (high - low)
    number = scalar.minimum(scalar.convert(place, ElementType.INT32), bins - 1)
    return scalar.select(inside, number, -1)


_OPEN = ("bincount", "nonzero", "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive")
"""Operations whose results have as many elements as data say."""

OPERATIONS = operations(
    {
        "mode": _mode,
        "histc": _histogram,
        **dict.fromkeys(_OPEN, refused("data decide how many elements the result has")),
    }
)
