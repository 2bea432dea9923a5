"""Matrix products, convolutions and their gradients.

TensorFlow keeps channels last (``NHWC``) unless told otherwise and filters as ``r..., c, k``; the operations
see both as views in the order of ``frontends/graph/operations/convolution`` and store what they make as
TensorFlow does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from polyloom.frontends.graph.core import (
    Combine,
    Context,
    From,
    Operation,
    Refused,
    Table,
    Value,
    Window,
    X,
    convolution,
    determinant,
    einsum,
    filter_gradient,
    inverse,
    maps,
    matrix_product,
    matrix_turned,
    only,
    op,
    padded,
    parse_einsum,
    reduced,
    refuse_if,
    same_padding,
    scalar,
    transposed,
    transposed_convolution,
    unsqueezed,
)
from polyloom.frontends.tensorflow.operations import depthwise


def channels_last(c: Context) -> bool:
    """Tell whether the channels are the last axis (``NHWC``, ``NDHWC``), and not axis 1."""
    return not c.text("data_format", "NHWC").startswith("NC")


def last(rank: int) -> list[int]:
    """Return the order of axes that puts axis 1 last."""
    return [0, *range(2, rank), 1]


def first(rank: int) -> list[int]:
    """Return the order of axes that puts the last axis where axis 1 is."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_first(c: Context, x: Value) -> Value:
    """Return data as ``x[n][c][w...]``, a view."""
    return transposed(x, first(x.rank)) if channels_last(c) and x.rank > 2 else x


def given_back(c: Context, y: Value) -> Value:
    """Return data in the layout of the node, a view."""
    return transposed(y, last(y.rank)) if channels_last(c) and y.rank > 2 else y


def memory_order(c: Context) -> Any:
    """Return the order in which data are stored."""
    return last if channels_last(c) else range


def laid_out(function: Callable[..., Value | Sequence[Value]], *positions: int) -> Operation:
    """Return an operation of images, the inputs at ``positions``, whose results are stored as they are."""

    def operation(c: Context) -> Sequence[Value]:
        images = [channels_first(c, c.input(k)) for k in positions]
        with c.b.stored(memory_order(c)):
            found = function(c, *images)
        return [given_back(c, y) for y in (only(found) if isinstance(found, Value) else found)]

    return operation


def filters_of(w: Value) -> Value:
    """Return filters ``r..., c, k`` as ``k, c, r...``, a view."""
    return transposed(w, [w.rank - 1, w.rank - 2, *range(w.rank - 2)])


def filters_last(rank: int) -> list[int]:
    """Return the order in which filters ``k, c, r...`` are stored: ``r..., c, k``."""
    return [*range(2, rank), 1, 0]


def spatial(c: Context, numbers: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers that are about spatial axes, of one for each axis. Raises ``Refused``."""
    refuse_if(len(numbers) < 3, f"{len(numbers)} numbers for the axes of an image")
    at = 1 if channels_last(c) else 2
    kept = tuple(numbers[at : at + len(numbers) - 2])
    refuse_if(
        any(n != 1 for n in (numbers[0], numbers[-1] if channels_last(c) else numbers[1])),
        "a stride, window or dilation over images or channels",
    )
    return kept


def window_of(c: Context, sizes: Sequence[int], shape: Sequence[int]) -> Window:
    """Return a node's window on data of a spatial ``shape``. Raises ``Refused``."""
    strides = spatial(c, c.numbers("strides"))
    dilations = spatial(c, c.numbers("dilations", (1,) * (len(sizes) + 2)))
    return window_of_sizes(c, (sizes, strides, dilations), shape)


def window_of_sizes(c: Context, numbers: Sequence[Sequence[int]], shape: Sequence[int]) -> Window:
    """Return the window of ``(sizes, strides, dilations)``, with the node's padding. Raises ``Refused``."""
    sizes, strides, dilations = (tuple(n) for n in numbers)
    rank = len(shape)
    refuse_if(
        {len(sizes), len(strides), len(dilations)} != {rank},
        f"a window of {len(sizes)} axes on data of {rank}",
    )
    padding = c.text("padding", "VALID")
    if padding == "SAME":
        reach = [d * (n - 1) + 1 for n, d in zip(sizes, dilations, strict=True)]
        pads = [same_padding(n, s, r) for n, s, r in zip(shape, strides, reach, strict=True)]
    elif padding == "EXPLICIT":
        pads = _explicit(c, rank)
    elif padding == "VALID":
        pads = [(0, 0)] * rank
    else:
        raise Refused(f"padding `{padding}`")
    before, after = (tuple(p[k] for p in pads) for k in range(2))
    return Window(tuple(sizes), strides, dilations, before, after)


def _explicit(c: Context, rank: int) -> list[tuple[int, int]]:
    given = c.numbers("explicit_paddings")
    refuse_if(len(given) != 2 * rank + 4, f"{len(given)} explicit paddings of {rank} spatial axes")
    at = 2 if channels_last(c) else 4
    return [(given[k], given[k + 1]) for k in range(at, at + 2 * rank, 2)]


def _convolution(c: Context, x: Value) -> Value:
    w = filters_of(c.input(1))
    _check(x, w)
    window = window_of(c, w.shape[2:], x.shape[2:])
    return convolution(c.b, x, w, window, x.shape[1] // w.shape[1])


def _check(x: Value, w: Value) -> None:
    refuse_if(
        x.rank != w.rank or x.rank < 3 or w.shape[1] == 0,
        f"data of rank {x.rank} and filters of rank {w.rank}",
    )


def _input_gradient(c: Context, dy: Value) -> Value:
    """``dx[n][c][s*o + d*r] += dy[n][k][o] * w[k][c][r]``, also the transposed convolution."""
    w = filters_of(c.input(1))
    _check(dy, w)
    _, channels, *space = sizes_of(c, dy)
    groups = channels // w.shape[1]
    refuse_if(channels != groups * w.shape[1], f"{channels} channels, {w.shape[1]} of the filters")
    return transposed_convolution(c.b, dy, w, window_of(c, w.shape[2:], space), groups, space)


def sizes_of(c: Context, dy: Value) -> list[int]:
    """Return the shape of data that input 0 states as ``n, c, w...``. Raises ``Refused``."""
    given = c.integers(0, "the shape of the result")
    refuse_if(len(given) == dy.rank - 2, "a shape without images and channels")
    refuse_if(len(given) != dy.rank, f"a shape of rank {len(given)} for data of rank {dy.rank}")
    return [given[k] for k in first(dy.rank)] if channels_last(c) else given


def _filter_gradient(c: Context) -> Sequence[Value]:
    """``dw[k][c][r] += x[n][c][s*o + d*r] * dy[n][k][o]``."""
    b, x, dy = c.b, channels_first(c, c.input(0)), channels_first(c, c.input(2))
    sizes = c.integers(1, "the shape of the filters")
    refuse_if(
        len(sizes) != x.rank or x.rank != dy.rank or sizes[-2] == 0,
        f"filters of rank {len(sizes)} for data of rank {x.rank}",
    )
    window = window_of(c, sizes[:-2], x.shape[2:])
    groups = x.shape[1] // sizes[-2]
    with b.stored(memory_order(c)):
        inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    zero = (0,) * window.rank
    plain = Window(window.sizes, window.strides, window.dilations, zero, zero)
    shape = (sizes[-1], sizes[-2], *sizes[:-2])
    with b.stored(filters_last):
        dw = filter_gradient(b, inside, dy, plain, groups, shape)
    return only(transposed(dw, filters_last(dw.rank)))


# -- depthwise: filters r, r, c, m make channel c * M + m of the result


def _depthwise(c: Context, x: Value) -> Value:
    w = c.input(1)
    _check_depthwise(x, w)
    return depthwise.forward(c.b, x, w, window_of(c, w.shape[:2], x.shape[2:]))


def _check_depthwise(x: Value, w: Value) -> None:
    refuse_if(
        x.rank != 4 or w.rank != 4 or x.shape[1] != w.shape[2],
        f"data {list(x.shape)} and filters {list(w.shape)}",
    )


def _depthwise_input_gradient(c: Context, dy: Value) -> Value:
    w, space = c.input(1), sizes_of(c, dy)[2:]
    return depthwise.input_gradient(c.b, dy, w, window_of(c, w.shape[:2], space), space)


def _depthwise_filter_gradient(c: Context) -> Sequence[Value]:
    b, x, dy = c.b, channels_first(c, c.input(0)), channels_first(c, c.input(2))
    sizes = c.integers(1, "the shape of the filters")
    refuse_if(
        len(sizes) != 4 or x.rank != 4 or sizes[2] != x.shape[1], f"data {list(x.shape)} and filters {sizes}"
    )
    window = window_of(c, sizes[:2], x.shape[2:])
    with b.stored(memory_order(c)):
        inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    return only(depthwise.filter_gradient(b, inside, dy, window, sizes))


# -- matrices


def _matrix(value: Value, *, transpose: bool) -> Value:
    refuse_if(value.rank < 2, f"a matrix of rank {value.rank}")
    return matrix_turned(value) if transpose else value


def _product(c: Context, left: str, right: str) -> Sequence[Value]:
    """A matrix product; ``left`` and ``right``: the attributes that tell what is transposed."""
    refuse_if(
        c.attribute("Tout", c.input(0).type) is not c.input(0).type,
        "a product of another type than its factors",
    )
    one, two = (_matrix(c.input(k), transpose=c.flag(name)) for k, name in enumerate((left, right)))
    return only(matrix_product(c.b, one, two))


_BATCHED = partial(_product, left="adj_x", right="adj_y")


def _einsum(c: Context) -> Sequence[Value]:
    labels, output, values = parse_einsum(c.text("equation"), c.inputs)
    return only(einsum(c.b, labels, output, values))


def _others(c: Context) -> list[int]:
    """Return all axes but that of the channels."""
    rank = c.input().rank
    return [k for k in range(rank) if k != (rank - 1 if channels_last(c) else 1)]


def _inverse(c: Context) -> Sequence[Value]:
    found = inverse(c.b, c.input())
    return only(matrix_turned(found) if c.attribute("adjoint", False) else found)


OPERATIONS: Table = {
    "MatrixDeterminant": op(determinant, X),
    "MatrixInverse": _inverse,
    "MatMul": partial(_product, left="transpose_a", right="transpose_b"),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _BATCHED),
    "Einsum": _einsum,
    "Conv2D": laid_out(_convolution, 0),
    "Conv3D": laid_out(_convolution, 0),
    "Conv2DBackpropInput": laid_out(_input_gradient, 2),
    "Conv3DBackpropInputV2": laid_out(_input_gradient, 2),
    "Conv2DBackpropFilter": _filter_gradient,
    "Conv3DBackpropFilterV2": _filter_gradient,
    "DepthwiseConv2dNative": laid_out(_depthwise, 0),
    "DepthwiseConv2dNativeBackpropInput": laid_out(_depthwise_input_gradient, 2),
    "DepthwiseConv2dNativeBackpropFilter": _depthwise_filter_gradient,
    "BiasAdd": maps(scalar.add, X, From(lambda c: unsqueezed(c.input(1), _others(c)))),
    "BiasAddGrad": op(reduced, Combine.ADD, X, From(_others), keep=False),
}
