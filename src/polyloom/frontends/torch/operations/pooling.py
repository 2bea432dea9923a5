"""Pooling, also adaptive, and its gradients. Data without a batch get one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from polyloom.frontends.graph.core import (
    Combine,
    Value,
    Window,
    along,
    average_pool,
    average_pool_gradient,
    check_constant,
    columns_added,
    first_maximum,
    flat_positions,
    mapped,
    max_pool,
    max_pool_gradient,
    maxima_of_parts,
    only,
    patches,
    places_in_parts,
    pooled,
    refuse_if,
    reshaped,
    scalar,
    squeezed,
    unpooled,
    unsqueezed,
    with_ceiling,
)
from polyloom.frontends.torch.call import Call, operations


def _images(x: Value, rank: int) -> Value:
    refuse_if(x.rank not in (rank + 1, rank + 2), f"data of rank {x.rank} for a window of {rank} axes")
    return x if x.rank == rank + 2 else unsqueezed(x, [0])


def _in_batches(
    c: Call, function: Callable[..., Sequence[Value]], rank: int, names: Sequence[str]
) -> Sequence[Value]:
    """Lower an operation of images; where they have no batch the results have none."""
    found = function(c, *(_images(c.input(name), rank) for name in names))
    return found if c.input().rank == rank + 2 else [squeezed(v, [0]) for v in found]


def _window(c: Call, rank: int) -> Window:
    """Return the window without the padding that ``ceil_mode`` brings."""
    sizes = c.spatial("kernel_size", rank, 1)
    strides = c.numbers("stride", ()) or sizes
    strides = strides * rank if len(strides) == 1 else strides
    pads = c.spatial("padding", rank, 0)
    window = Window(sizes, strides, c.spatial("dilation", rank, 1), pads, pads)
    window.check()
    return window


def _ceiled(c: Call, x: Value) -> Window:
    window = _window(c, x.rank - 2)
    return with_ceiling(window, x.shape[2:]) if c.flag("ceil_mode") else window


def _counted(c: Call, x: Value) -> Window | None:
    """Return the window whose padding counts in means."""
    return _window(c, x.rank - 2) if c.flag("count_include_pad", True) else None


def _max_pool(c: Call, x: Value) -> Sequence[Value]:
    """Max pooling; with two results the second is the position in the plane."""
    window = _ceiled(c, x)
    found = max_pool(c.b, x, window)
    return only(found) if c.results == 1 else (found, _places(c, x, window, found))


def _places(c: Call, x: Value, window: Window, found: Value) -> Value:
    first = first_maximum(c.b, x, window, found, last_nan=True)
    return flat_positions(c.b, first, window, (1, 1, *x.shape[2:]), column_major=False)


def _max_pool_gradient(c: Call, x: Value, dy: Value) -> Sequence[Value]:
    window = _ceiled(c, x)
    return only(max_pool_gradient(c.b, x, max_pool(c.b, x, window), dy, window, last_nan=True))


def _max_unpool(c: Call, x: Value, places: Value) -> Sequence[Value]:
    shape = (*x.shape[:2], *c.numbers("output_size")[2 - x.rank :])
    check_constant(shape, x.type.size)
    return only(unpooled(c.b, x, places, shape))


# -- patches: windows as columns of a matrix


def _to_columns(c: Call) -> Sequence[Value]:
    """im2col: ``y[n][c, r, s][i, j]``."""
    x = _images(c.input(), 2)
    found = patches(c.b, x, _window(c, 2))
    shape = (x.shape[0], prod(found.shape[1:4]), prod(found.shape[4:]))
    return only(_without_batch(c, reshaped(c.b, found, shape)))


def _from_columns(c: Call) -> Sequence[Value]:
    """col2im: what columns hold of an element is added."""
    x, window, shape = c.input(), _window(c, 2), c.spatial("output_size", 2, 1)
    x = x if x.rank == 3 else unsqueezed(x, [0])
    check_constant(shape, x.type.size)
    return only(_without_batch(c, columns_added(c.b, x, shape, window)))


def _without_batch(c: Call, found: Value) -> Value:
    """Return columns of an image, or an image of columns, without a batch where the operand has none."""
    has_batch = c.input().rank == (4 if found.rank == 3 else 3)
    return found if has_batch else squeezed(found, [0])


def _average_pool(c: Call, x: Value) -> Sequence[Value]:
    window = _ceiled(c, x)
    if not c.given("divisor_override"):
        return only(average_pool(c.b, x, window, _counted(c, x)))
    c.flag("count_include_pad", True)  # no matter: the divisor is given
    total = pooled(c.b, x, window, Combine.ADD, hint="sum")
    return only(mapped(c.b, scalar.divide, total, c.integer("divisor_override")))


def _average_pool_gradient(c: Call, x: Value, dy: Value) -> Sequence[Value]:
    refuse_if(c.given("divisor_override"), "a gradient with a divisor of its own")
    return only(average_pool_gradient(c.b, x.shape, dy, _ceiled(c, x), _counted(c, x)))


# -- adaptive: position i of n sees the elements floor(i * m / n) to ceil((i + 1) * m / n)


def _even(x: Value, shape: Sequence[int]) -> Window | None:
    """Return the window that cuts data into equal parts; None where the parts are of several sizes."""
    pairs = list(zip(x.shape[2:], shape, strict=True))
    if any(n < 1 or m % n for m, n in pairs):
        return None
    sizes = tuple(m // n for m, n in pairs)
    zero, one = (0,) * len(sizes), (1,) * len(sizes)
    return Window(sizes, sizes, one, zero, zero)


def _shape(c: Call, x: Value) -> tuple[int, ...]:
    given: tuple[int | None, ...] = c.attribute("output_size")
    rank, listed = x.rank - 2, given if isinstance(given, tuple) else (given,)
    refuse_if(len(listed) not in (1, rank), f"{len(listed)} sizes of {rank} axes")
    listed = listed if len(listed) == rank else listed * rank
    return tuple(x.shape[2 + k] if n is None else int(n) for k, n in enumerate(listed))


def _adaptive_average(c: Call, x: Value) -> Sequence[Value]:
    """Means of parts; of several sizes they are a product with a constant matrix along each axis."""
    shape = _shape(c, x)
    window = _even(x, shape)
    if window is not None:
        return only(average_pool(c.b, x, window, None))
    for k, new in enumerate(shape):
        hint = "" if k == len(shape) - 1 else f"axis{k}"
        x = along(c.b, x, 2 + k, _shares(x.shape[2 + k], new), hint)
    return only(x)


def _shares(old: int, new: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    refuse_if(new < 1, f"{new} parts")
    found = np.zeros((new, old))
    for i in range(new):
        first, last = i * old // new, -(-(i + 1) * old // new)
        found[i, first:last] = 1 / (last - first)
    return found


def _adaptive_max(c: Call, x: Value) -> Sequence[Value]:
    shape = _shape(c, x)
    window = _even(x, shape)
    if window is not None:
        found = max_pool(c.b, x, window)
        return found, _places(c, x, window, found)
    parts = [_shares(old, new) > 0 for old, new in zip(x.shape[2:], shape, strict=True)]
    found = maxima_of_parts(c.b, x, parts)
    return found, places_in_parts(c.b, x, found, parts, last_nan=True)


def _adaptive_max_gradient(c: Call, x: Value, dy: Value, places: Value) -> Sequence[Value]:
    """Each gradient goes to the place of its maximum; parts overlap, so they are added."""
    return only(unpooled(c.b, dy, places, x.shape, Combine.ADD))


def _adaptive_gradient(c: Call, x: Value, dy: Value) -> Sequence[Value]:
    window = _even(x, dy.shape[2:])
    if window is not None:
        return only(average_pool_gradient(c.b, x.shape, dy, window))
    for k, new in enumerate(dy.shape[2:]):
        dy = along(c.b, dy, 2 + k, _shares(x.shape[2 + k], new).T)
    return only(dy)


_OPERANDS: dict[str, tuple[Any, ...]] = {
    "max_pool{}d": (_max_pool,),
    "max_pool{}d_with_indices": (_max_pool,),
    "max_pool{}d_with_indices_backward": (_max_pool_gradient, "grad_output"),
    "max_unpool{}d": (_max_unpool, "indices"),
    "avg_pool{}d": (_average_pool,),
    "avg_pool{}d_backward": (_average_pool_gradient, "grad_output"),
    "adaptive_avg_pool{}d": (_adaptive_average,),
    "_adaptive_avg_pool{}d": (_adaptive_average,),
    "adaptive_max_pool{}d": (_adaptive_max,),
    "adaptive_max_pool{}d_backward": (_adaptive_max_gradient, "grad_output", "indices"),
    "_adaptive_avg_pool{}d_backward": (_adaptive_gradient, "grad_output"),
}
"""What lowers an operation, and which of its operands are images beside ``self``."""

OPERATIONS = operations(
    {
        pattern.format(n): partial(_in_batches, function=function, rank=n, names=("self", *names))
        for pattern, (function, *names) in _OPERANDS.items()
        for n in (1, 2, 3)
    }
    | {"im2col": _to_columns, "col2im": _from_columns}
)
