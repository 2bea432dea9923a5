"""Pooling and its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from polyloom.frontends.graph.core import (
    Context,
    ElementType,
    Table,
    Value,
    Window,
    average_pool,
    average_pool_gradient,
    cast,
    first_maximum,
    flat_positions,
    mapped,
    max_pool,
    max_pool_gradient,
    only,
    patches,
    refuse_if,
    reshaped,
    scalar,
    transposed,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of
from polyloom.frontends.tensorflow.operations.linear import (
    channels_first,
    channels_last,
    first,
    given_back,
    memory_order,
    spatial,
    window_of,
    window_of_sizes,
)


def _window(c: Context, shape: Sequence[int]) -> Window:
    """Return the window on data of the shape ``n, c, w...``."""
    return window_of(c, spatial(c, c.numbers("ksize")), shape[2:])


def _max_pool(c: Context) -> Sequence[Value]:
    b, x = c.b, channels_first(c, c.input())
    with b.stored(memory_order(c)):
        return only(given_back(c, max_pool(b, x, _window(c, x.shape))))


def _max_pool_with_places(c: Context) -> Sequence[Value]:
    """MaxPoolWithArgmax: places are counted in an image with its channels last."""
    b, x = c.b, channels_first(c, c.input())
    refuse_if(x.rank != 4, f"an image of rank {x.rank}")
    window = _window(c, x.shape)
    kind = element_type_of(c, "Targmax", ElementType.INT64)
    with b.stored(memory_order(c)):
        maxima = max_pool(b, x, window)
        inside = first_maximum(b, x, window, maxima)
        plane = flat_positions(b, inside, window, (1, 1, *x.shape[2:]), column_major=False)
        channels = x.shape[1]
        own = np.arange(channels, dtype=np.int64).reshape(1, -1, 1, 1)
        if c.attribute("include_batch_in_index", False):
            own = own + np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * prod(x.shape[1:])
        numbers = b.constant(own)
        places = mapped(b, lambda p, k: scalar.add(scalar.multiply(p, channels), k), plane, numbers)
    return given_back(c, maxima), cast(b, given_back(c, places), kind)


def _max_pool_with_places_gradient(c: Context) -> Sequence[Value]:
    """MaxPoolGradWithArgmax(x, dy, places)."""
    b, x, dy = c.b, channels_first(c, c.input(0)), channels_first(c, c.input(1))
    window = _window(c, x.shape)
    with b.stored(memory_order(c)):
        return only(given_back(c, max_pool_gradient(b, x, max_pool(b, x, window), dy, window)))


def _average_pool(c: Context) -> Sequence[Value]:
    b, x = c.b, channels_first(c, c.input())
    with b.stored(memory_order(c)):
        return only(given_back(c, average_pool(b, x, _window(c, x.shape), None)))


def _max_pool_gradient(c: Context) -> Sequence[Value]:
    """MaxPoolGrad(x, y, dy): dy goes to the first maximum of its window."""
    b = c.b
    x, y, dy = (channels_first(c, c.input(k)) for k in range(3))
    with b.stored(memory_order(c)):
        return only(given_back(c, max_pool_gradient(b, x, y, dy, _window(c, x.shape))))


def _average_pool_gradient(c: Context) -> Sequence[Value]:
    """AvgPoolGrad(shape of x, dy)."""
    b, dy = c.b, channels_first(c, c.input(1))
    given = c.integers(0, "the shape of the result")
    refuse_if(len(given) != dy.rank, f"a shape of rank {len(given)} for data of rank {dy.rank}")
    shape = [given[k] for k in first(dy.rank)] if channels_last(c) else given
    with b.stored(memory_order(c)):
        return only(given_back(c, average_pool_gradient(b, shape, dy, _window(c, shape))))


def _patches(c: Context) -> Sequence[Value]:
    """ExtractImagePatches: windows as channels, ``y[n][i][j][r][s][c] = x[n][i + r][j + s][c]``."""
    b, x = c.b, channels_first(c, c.input())
    refuse_if(x.rank != 4, f"an image of rank {x.rank}")
    sizes, strides, rates = (c.numbers(n) for n in ("ksizes", "strides", "rates"))
    window = window_of_sizes(c, [spatial(c, n) for n in (sizes, strides, rates)], x.shape[2:])
    seen = transposed(patches(b, x, window), (0, 4, 5, 2, 3, 1))
    return only(reshaped(b, seen, (*seen.shape[:3], prod(window.sizes) * x.shape[1])))


OPERATIONS: Table = {
    "ExtractImagePatches": _patches,
    "MaxPool": _max_pool,
    "MaxPoolWithArgmax": _max_pool_with_places,
    "MaxPoolGradWithArgmax": _max_pool_with_places_gradient,
    "MaxPool3D": _max_pool,
    "AvgPool": _average_pool,
    "AvgPool3D": _average_pool,
    "MaxPoolGrad": _max_pool_gradient,
    "MaxPool3DGrad": _max_pool_gradient,
    "AvgPoolGrad": _average_pool_gradient,
    "AvgPool3DGrad": _average_pool_gradient,
}
