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
    transposed,
)
from polyloom.frontends.tensorflow.operations.elementwise import element_type_of
from polyloom.frontends.tensorflow.operations.linear import (
    channels_first,
    laid_out,
    sizes_of,
    spatial,
    window_of,
    window_of_sizes,
)


def _window(c: Context, shape: Sequence[int]) -> Window:
    """Return the window on data of the shape ``n, c, w...``."""
    return window_of(c, spatial(c, c.numbers("ksize")), shape[2:])


def _max_pool_with_places(c: Context, x: Value) -> Sequence[Value]:
    """MaxPoolWithArgmax: places are counted in an image with its channels last."""
    b, channels = c.b, x.shape[1]
    refuse_if(x.rank != 4, f"an image of rank {x.rank}")
    window = _window(c, x.shape)
    maxima = max_pool(b, x, window)
    inside = first_maximum(b, x, window, maxima)
    plane = flat_positions(b, inside, window, (1, 1, *x.shape[2:]), column_major=False)
    own = np.arange(channels, dtype=np.int64).reshape(1, -1, 1, 1)
    if c.attribute("include_batch_in_index", False):
        own = own + np.arange(x.shape[0]).reshape(-1, 1, 1, 1) * prod(x.shape[1:])
    places = mapped(b, lambda p, k: p * channels + k, plane, b.constant(own))
    return maxima, cast(b, places, element_type_of(c, "Targmax", ElementType.INT64))


def _patches(c: Context) -> Sequence[Value]:
    """ExtractImagePatches: windows as channels, ``y[n][i][j][r][s][c] = x[n][i + r][j + s][c]``."""
    b, x = c.b, channels_first(c, c.input())
    refuse_if(x.rank != 4, f"an image of rank {x.rank}")
    sizes, strides, rates = (c.numbers(n) for n in ("ksizes", "strides", "rates"))
    window = window_of_sizes(c, [spatial(c, n) for n in (sizes, strides, rates)], x.shape[2:])
    seen = transposed(patches(b, x, window), (0, 4, 5, 2, 3, 1))
    return only(reshaped(b, seen, (*seen.shape[:3], prod(window.sizes) * x.shape[1])))


def _average_gradient(c: Context, dy: Value) -> Value:
    shape = sizes_of(c, dy)
    return average_pool_gradient(c.b, shape, dy, _window(c, shape))


def _places_gradient(c: Context, x: Value, dy: Value) -> Value:
    """MaxPoolGradWithArgmax(x, dy, places): the places are found anew."""
    window = _window(c, x.shape)
    return max_pool_gradient(c.b, x, max_pool(c.b, x, window), dy, window)


_MAX_POOL = laid_out(lambda c, x: max_pool(c.b, x, _window(c, x.shape)), 0)
_AVERAGE_POOL = laid_out(lambda c, x: average_pool(c.b, x, _window(c, x.shape), None), 0)
_MAX_POOL_GRADIENT = laid_out(
    lambda c, x, y, dy: max_pool_gradient(c.b, x, y, dy, _window(c, x.shape)), 0, 1, 2
)

OPERATIONS: Table = {
    "ExtractImagePatches": _patches,
    **dict.fromkeys(("MaxPool", "MaxPool3D"), _MAX_POOL),
    "MaxPoolWithArgmax": laid_out(_max_pool_with_places, 0),
    "MaxPoolGradWithArgmax": laid_out(_places_gradient, 0, 1),
    **dict.fromkeys(("AvgPool", "AvgPool3D"), _AVERAGE_POOL),
    **dict.fromkeys(("MaxPoolGrad", "MaxPool3DGrad"), _MAX_POOL_GRADIENT),
    **dict.fromkeys(("AvgPoolGrad", "AvgPool3DGrad"), laid_out(_average_gradient, 1)),
}
