"""Pooling of ONNX: averages and maxima over windows, and their inverse."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    From,
    Table,
    Value,
    Window,
    X,
    average_pool,
    check_constant,
    first_maximum,
    flat_positions,
    global_window,
    mapped,
    max_pool,
    mean,
    norm_parts,
    only,
    op,
    pooled,
    reduced,
    refuse_if,
    scalar,
    unpooled,
    with_ceiling,
)
from polyloom.frontends.onnx.operations.linear import window_of


def _window(c: Context, x: Value) -> Window:
    refuse_if(x.rank < 3, f"data of rank {x.rank}")
    window = window_of(c, x.shape[2:], c.numbers("kernel_shape"))
    refuse_if(
        max(window.dilations) > 1 and c.text("auto_pad", "NOTSET").startswith("SAME"),
        "SAME padding of dilated windows, which ONNX and onnxruntime work out in different ways",
    )
    return with_ceiling(window, x.shape[2:]) if c.integer("ceil_mode", 0) else window


def _max_pool(c: Context) -> Sequence[Value]:
    b, x = c.b, c.input()
    window = _window(c, x)
    found = max_pool(b, x, window)
    if len(c.node.outputs) < 2:
        return only(found)
    first = first_maximum(b, x, window, found)
    order = bool(c.integer("storage_order", 0))
    return found, flat_positions(b, first, window, x.shape, column_major=order)


def _max_unpool(c: Context) -> Sequence[Value]:
    """MaxUnpool: places are counted in the whole data; those of one plane are its own."""
    b, x, places = c.b, c.input(0), c.input(1)
    window = window_of(c, x.shape[2:], c.numbers("kernel_shape"))
    spatial = [
        (n - 1) * s + k - lo - hi
        for n, s, k, lo, hi in zip(
            x.shape[2:], window.strides, window.sizes, window.before, window.after, strict=True
        )
    ]
    shape = [*x.shape[:2], *spatial] if c.optional(2) is None else c.integers(2, "its shape")
    check_constant(shape, x.type.size)
    plane = prod(shape[2:])
    first = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * window.rank) * plane
    own = mapped(b, scalar.subtract, places, b.constant(first.astype(places.type.dtype)), hint="places")
    return only(unpooled(b, x, own, shape))


def _average_pool(c: Context) -> Sequence[Value]:
    x = c.input()
    window = _window(c, x)
    counted = window_of(c, x.shape[2:], c.numbers("kernel_shape"))
    return only(average_pool(c.b, x, window, counted if c.integer("count_include_pad", 0) else None))


def _lp_pool(c: Context, window: Window) -> Sequence[Value]:
    each, root = norm_parts(float(c.attribute("p", 2)))
    return only(mapped(c.b, root, pooled(c.b, c.input(), window, Combine.ADD, each, hint="sum")))


_SPACE = From(lambda c: range(2, c.input().rank))

OPERATIONS: Table = {
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
    "AveragePool": _average_pool,
    "LpPool": lambda c: _lp_pool(c, _window(c, c.input())),
    "GlobalAveragePool": op(mean, X, _SPACE, hint=""),
    "GlobalMaxPool": op(reduced, Combine.MAXIMUM, X, _SPACE),
    "GlobalLpPool": lambda c: _lp_pool(c, global_window(c.input().shape[2:])),
}
