"""Pooling, also adaptive, and its gradients. Data without a batch get one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

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
from polyloom.frontends.torch.call import Call, Lowering, operations


def _images(x: Value, rank: int) -> Value:
    refuse_if(x.rank not in (rank + 1, rank + 2), f"data of rank {x.rank} for a window of {rank} axes")
    return x if x.rank == rank + 2 else unsqueezed(x, [0])


def _given(c: Call, found: Value, rank: int) -> Value:
    """Return a result without a batch where the data have none."""
    return found if c.input().rank == rank + 2 else squeezed(found, [0])


def _window(c: Call, rank: int) -> Window:
    """Return the window without the padding that ``ceil_mode`` brings."""
    sizes = c.spatial("kernel_size", rank, 1)
    strides = c.numbers("stride", ()) or sizes
    strides = strides * rank if len(strides) == 1 else strides
    pads = c.spatial("padding", rank, 0)
    window = Window(sizes, strides, c.spatial("dilation", rank, 1), pads, pads)
    window.check()
    return window


def _ceiled(c: Call, window: Window, shape: Sequence[int]) -> Window:
    return with_ceiling(window, shape) if c.flag("ceil_mode") else window


def _max_pool(rank: int) -> Lowering:
    """Return max pooling; with two results the second is the position in the plane."""

    def lowering(c: Call) -> Sequence[Value]:
        x = _images(c.input(), rank)
        window = _ceiled(c, _window(c, rank), x.shape[2:])
        found = max_pool(c.b, x, window)
        if c.results == 1:
            return only(_given(c, found, rank))
        return _given(c, found, rank), _given(c, _places(c, x, window, found), rank)

    return lowering


def _places(c: Call, x: Value, window: Window, found: Value) -> Value:
    first = first_maximum(c.b, x, window, found)
    return flat_positions(c.b, first, window, (1, 1, *x.shape[2:]), column_major=False)


def _max_pool_gradient(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x, dy = _images(c.input(), rank), _images(c.input("grad_output"), rank)
        window = _ceiled(c, _window(c, rank), x.shape[2:])
        maxima = max_pool(c.b, x, window)
        return only(_given(c, max_pool_gradient(c.b, x, maxima, dy, window), rank))

    return lowering


def _max_unpool(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x, places = _images(c.input(), rank), _images(c.input("indices"), rank)
        shape = (*x.shape[:2], *c.numbers("output_size")[-rank:])
        check_constant(shape, x.type.size)
        return only(_given(c, unpooled(c.b, x, places, shape), rank))

    return lowering


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


def _average_pool(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x = _images(c.input(), rank)
        plain = _window(c, rank)
        window = _ceiled(c, plain, x.shape[2:])
        if c.given("divisor_override"):
            divisor = c.integer("divisor_override")
            total = pooled(c.b, x, window, Combine.ADD, hint="sum")
            return only(_given(c, mapped(c.b, lambda v: scalar.divide(v, divisor), total), rank))
        counted = plain if c.flag("count_include_pad", True) else None
        return only(_given(c, average_pool(c.b, x, window, counted), rank))

    return lowering


def _average_pool_gradient(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x, dy = _images(c.input(), rank), _images(c.input("grad_output"), rank)
        refuse_if(c.given("divisor_override"), "a gradient with a divisor of its own")
        plain = _window(c, rank)
        window = _ceiled(c, plain, x.shape[2:])
        counted = plain if c.flag("count_include_pad", True) else None
        return only(_given(c, average_pool_gradient(c.b, x.shape, dy, window, counted), rank))

    return lowering


# -- adaptive: position i of n sees the elements floor(i * m / n) to ceil((i + 1) * m / n)


def _even(x: Value, shape: Sequence[int]) -> Window | None:
    """Return the window that cuts data into equal parts; None where the parts are of several sizes."""
    pairs = list(zip(x.shape[2:], shape, strict=True))
    if any(n < 1 or m % n for m, n in pairs):
        return None
    sizes = tuple(m // n for m, n in pairs)
    zero, one = (0,) * len(sizes), (1,) * len(sizes)
    return Window(sizes, sizes, one, zero, zero)


def _shape(c: Call, x: Value, rank: int) -> tuple[int, ...]:
    given: tuple[int | None, ...] = c.attribute("output_size")
    listed = given if isinstance(given, tuple) else (given,) * rank
    refuse_if(len(listed) not in (1, rank), f"{len(listed)} sizes of {rank} axes")
    listed = listed if len(listed) == rank else listed * rank
    return tuple(x.shape[2 + k] if n is None else int(n) for k, n in enumerate(listed))


def _adaptive_average(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x = _images(c.input(), rank)
        shape = _shape(c, x, rank)
        window = _even(x, shape)
        found = _by_matrices(c, x, shape) if window is None else average_pool(c.b, x, window, None)
        return only(_given(c, found, rank))

    return lowering


def _by_matrices(c: Call, x: Value, shape: Sequence[int]) -> Value:
    """Return means of parts of several sizes: a product with a constant matrix along each axis."""
    for k, new in enumerate(shape):
        hint = "" if k == len(shape) - 1 else f"axis{k}"
        x = along(c.b, x, 2 + k, _shares(x.shape[2 + k], new), hint)
    return x


def _shares(old: int, new: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    refuse_if(new < 1, f"{new} parts")
    found = np.zeros((new, old))
    for i in range(new):
        first, last = i * old // new, -(-(i + 1) * old // new)
        found[i, first:last] = 1 / (last - first)
    return found


def _adaptive_max(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x = _images(c.input(), rank)
        shape = _shape(c, x, rank)
        window = _even(x, shape)
        if window is None:
            parts = [_shares(old, new) > 0 for old, new in zip(x.shape[2:], shape, strict=True)]
            found = maxima_of_parts(c.b, x, parts)
            places = places_in_parts(c.b, x, found, parts)
        else:
            found = max_pool(c.b, x, window)
            places = _places(c, x, window, found)
        return _given(c, found, rank), _given(c, places, rank)

    return lowering


def _adaptive_max_gradient(rank: int) -> Lowering:
    """Each gradient goes to the place of its maximum; parts overlap, so they are added."""

    def lowering(c: Call) -> Sequence[Value]:
        x, dy, places = (_images(c.input(n), rank) for n in ("self", "grad_output", "indices"))
        return only(_given(c, unpooled(c.b, dy, places, x.shape, Combine.ADD), rank))

    return lowering


def _adaptive_gradient(rank: int) -> Lowering:
    def lowering(c: Call) -> Sequence[Value]:
        x, dy = _images(c.input(), rank), _images(c.input("grad_output"), rank)
        window = _even(x, dy.shape[2:])
        if window is not None:
            return only(_given(c, average_pool_gradient(c.b, x.shape, dy, window), rank))
        for k, new in enumerate(dy.shape[2:]):
            dy = along(c.b, dy, 2 + k, _shares(x.shape[2 + k], new).T)
        return only(_given(c, dy, rank))

    return lowering


def _for_ranks(pattern: str, make: Callable[[int], Lowering]) -> dict[str, Lowering]:
    return {pattern.format(n): make(n) for n in (1, 2, 3)}


OPERATIONS = operations(
    {
        **_for_ranks("max_pool{}d", _max_pool),
        **_for_ranks("max_pool{}d_with_indices", _max_pool),
        **_for_ranks("max_pool{}d_with_indices_backward", _max_pool_gradient),
        **_for_ranks("max_unpool{}d", _max_unpool),
        "im2col": _to_columns,
        "col2im": _from_columns,
        **_for_ranks("avg_pool{}d", _average_pool),
        **_for_ranks("avg_pool{}d_backward", _average_pool_gradient),
        **_for_ranks("adaptive_avg_pool{}d", _adaptive_average),
        **_for_ranks("_adaptive_avg_pool{}d", _adaptive_average),
        **_for_ranks("adaptive_max_pool{}d", _adaptive_max),
        **_for_ranks("adaptive_max_pool{}d_backward", _adaptive_max_gradient),
        **_for_ranks("_adaptive_avg_pool{}d_backward", _adaptive_gradient),
    }
)
