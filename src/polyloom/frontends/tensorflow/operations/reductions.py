"""Reductions, positions of extremes, cumulative sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    ElementType,
    From,
    Operation,
    Table,
    Value,
    X,
    arg_extreme,
    axes,
    axis,
    cast,
    counted_before,
    cumulative,
    cumulative_log_sum,
    in_direction,
    mapped,
    mean,
    norm,
    only,
    op,
    ranked,
    reduced,
    reshaped,
    scalar,
    squeezed,
    value,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of


def _axes(c: Context) -> list[int]:
    """Return the axes that input 1 names; TensorFlow lets an axis be named twice in no case."""
    return axes(c.integers(1, "its axes"), c.input().rank)


def _keep(c: Context) -> bool:
    return bool(c.attribute("keep_dims", False))


def _reduction(combine: Combine) -> Operation:
    return op(reduced, combine, X, From(_axes), keep=From(_keep))


def _truth(c: Context, combine: Combine) -> Sequence[Value]:
    """All and any: the minimum and the maximum of 0 and 1."""
    numbers = cast(c.b, c.input(), ElementType.UINT8, "numbers")
    found = reduced(c.b, combine, numbers, _axes(c), keep=_keep(c), hint="found")
    return only(cast(c.b, found, ElementType.BOOL))


def _position(c: Context, *, largest: bool) -> Sequence[Value]:
    x = c.input()
    at = axis(c.whole(1, "its axis", 0), x.rank)
    kind = element_type_of(c, "output_type", ElementType.INT64)
    return only(squeezed(arg_extreme(c.b, x, at, largest=largest, last=False, kind=kind), [at]))


_CUMULATIVE: dict[str, Callable[..., Value]] = {
    "Cumsum": cumulative,
    "Cumprod": partial(cumulative, combine=Combine.MULTIPLY),
    "CumulativeLogsumexp": cumulative_log_sum,
}


def _cumulative(c: Context) -> Sequence[Value]:
    at, strict = axis(c.whole(1, "its axis"), c.input().rank), c.flag("exclusive")
    function = partial(_CUMULATIVE[c.node.op], strict=strict)
    return only(in_direction(c.b, c.input(), at, function, backwards=c.flag("reverse")))


def _half_squares(c: Context) -> Sequence[Value]:
    """L2Loss: half the sum of squares."""
    b, x = c.b, c.input()
    total = reduced(b, Combine.ADD, x, range(x.rank), scalar.square, keep=False, hint="squares")
    return only(mapped(b, lambda s: s * 0.5, total))


def _largest(c: Context) -> Sequence[Value]:
    """TopKV2: values and positions, along the last axis."""
    x = c.input()
    kind = element_type_of(c, "index_type", ElementType.INT32)
    return ranked(c.b, x, axis(-1, x.rank), c.whole(1, "its number"), largest=True, kind=kind)


def _counted(*, equal_too: bool) -> Operation:
    """LowerBound, UpperBound(rows, values): how many elements of a sorted row are below a value."""
    return op(
        counted_before,
        X,
        value(1),
        From(lambda c: element_type_of(c, "out_type", ElementType.INT32)),
        equal_too=equal_too,
    )


def _bucket(c: Context) -> Sequence[Value]:
    """Bucketize: between which of the attribute's boundaries an element lies."""
    b, x = c.b, c.input()
    edges = b.constant(np.asarray(c.attribute("boundaries", ()), np.float32))
    wide = cast(b, reshaped(b, x, [x.size]), ElementType.FLOAT32, "wide")
    found = counted_before(b, edges, wide, ElementType.INT32, equal_too=True)
    return only(reshaped(b, found, x.shape))


OPERATIONS: Table = {
    "EuclideanNorm": op(norm, X, From(_axes), 2, keep=From(_keep)),
    "TopKV2": _largest,
    "LowerBound": _counted(equal_too=False),
    "UpperBound": _counted(equal_too=True),
    "Bucketize": _bucket,
    "Sum": _reduction(Combine.ADD),
    "Prod": _reduction(Combine.MULTIPLY),
    "Max": _reduction(Combine.MAXIMUM),
    "Min": _reduction(Combine.MINIMUM),
    "Mean": op(mean, X, From(_axes), keep=From(_keep), hint=""),
    "All": partial(_truth, combine=Combine.MINIMUM),
    "Any": partial(_truth, combine=Combine.MAXIMUM),
    "ArgMax": partial(_position, largest=True),
    "ArgMin": partial(_position, largest=False),
    "Cumsum": _cumulative,
    "Cumprod": _cumulative,
    "CumulativeLogsumexp": _cumulative,
    "L2Loss": _half_squares,
}
