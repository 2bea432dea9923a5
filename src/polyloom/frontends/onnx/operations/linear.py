"""Contractions and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.frontends.graph.core import (
    Context,
    ElementType,
    Expression,
    Refused,
    Table,
    Value,
    Window,
    X,
    cast,
    convolution,
    determinant,
    einsum,
    expanded,
    mapped,
    matrix_product,
    only,
    op,
    parse_einsum,
    refuse_if,
    same_padding,
    scalar,
    squeezed,
    transposed,
    transposed_convolution,
    unsqueezed,
    value,
    with_bias,
)


def window_of(c: Context, spatial: Sequence[int], sizes: Sequence[int]) -> Window:
    """Return the window that the attributes describe, with automatic padding worked out."""
    rank = len(spatial)
    _check_kernel(c, sizes)
    strides = c.numbers("strides", (1,) * rank)
    dilations = c.numbers("dilations", (1,) * rank)
    pads = c.numbers("pads", (0,) * (2 * rank))
    window = Window(tuple(sizes), strides, dilations, pads[:rank], pads[rank:])
    refuse_if(
        len(pads) != 2 * rank or window.rank != rank,
        f"{len(pads)} pads and {window.rank} sizes for {rank} dimensions",
    )
    window.check()
    mode = c.text("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        lower = mode == "SAME_LOWER"
        both = [same_padding(spatial[k], strides[k], window.reach(k), lower=lower) for k in range(rank)]
        return replace(window, before=tuple(p[0] for p in both), after=tuple(p[1] for p in both))
    if mode == "VALID":
        return replace(window, before=(0,) * rank, after=(0,) * rank)
    return window


def _check_kernel(c: Context, sizes: Sequence[int]) -> None:
    stated = c.numbers("kernel_shape", tuple(sizes))
    refuse_if(stated != tuple(sizes), f"`kernel_shape` says {list(stated)}, the filters are {list(sizes)}")


def _conv(c: Context) -> Sequence[Value]:
    x, w = c.input(0), c.input(1)
    refuse_if(x.rank < 3 or w.rank != x.rank, f"data of rank {x.rank} and filters of rank {w.rank}")
    window = window_of(c, x.shape[2:], w.shape[2:])
    hint = "" if c.optional(2) is None else "sum"
    result = convolution(c.b, x, w, window, c.integer("group", 1), hint=hint)
    return only(with_bias(c.b, result, c.optional(2)))


def _conv_transpose(c: Context) -> Sequence[Value]:
    y, w = c.input(0), c.input(1)
    refuse_if(y.rank < 3 or w.rank != y.rank, f"data of rank {y.rank} and filters of rank {w.rank}")
    rank = y.rank - 2
    strides = c.numbers("strides", (1,) * rank)
    extra = c.numbers("output_padding", (0,) * rank)
    _check_kernel(c, w.shape[2:])
    base = Window(tuple(w.shape[2:]), strides, c.numbers("dilations", (1,) * rank), (0,) * rank, (0,) * rank)
    base.check()
    full = [(y.shape[2 + k] - 1) * strides[k] + base.reach(k) + extra[k] for k in range(rank)]
    before, shape = _transposed_shape(c, y, full)
    window = replace(base, before=before, after=(0,) * rank)
    result = transposed_convolution(c.b, y, w, window, c.integer("group", 1), shape)
    return only(with_bias(c.b, result, c.optional(2)))


def _transposed_shape(c: Context, y: Value, full: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before, and the spatial shape of a transposed convolution."""
    rank = len(full)
    mode = c.text("auto_pad", "NOTSET")
    pads = c.numbers("pads", (0,) * (2 * rank))
    if c.attribute("output_shape") is None and mode in ("NOTSET", "VALID"):
        refuse_if(len(pads) != 2 * rank, f"{len(pads)} pads for {rank} dimensions")
        return pads[:rank], tuple(full[k] - pads[k] - pads[rank + k] for k in range(rank))
    strides = c.numbers("strides", (1,) * rank)
    natural = tuple(y.shape[2 + k] * strides[k] for k in range(rank))
    shape = c.numbers("output_shape", natural)[-rank:]
    if c.attribute("output_shape") is None and any(n > m for n, m in zip(shape, full, strict=True)):
        raise Refused(f"`auto_pad` gives {list(shape)} elements, its windows reach {list(full)}")
    total = [max(0, full[k] - shape[k]) for k in range(rank)]
    return tuple(t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total), shape


def _gemm(c: Context) -> Sequence[Value]:
    b, left, right = c.b, c.input(0), c.input(1)
    refuse_if(left.rank != 2 or right.rank != 2, f"matrices of ranks {left.rank} and {right.rank}")
    left = transposed(left, (1, 0)) if c.integer("transA", 0) else left
    right = transposed(right, (1, 0)) if c.integer("transB", 0) else right
    alpha, beta, more = c.number("alpha", 1.0), c.number("beta", 1.0), c.optional(2)
    hint = "product" if alpha != 1.0 or more is not None else ""
    found = matrix_product(b, left, right, hint)
    if alpha == 1.0 and more is None:
        return only(found)

    def function(p: Expression, q: Expression | None) -> Expression:
        total = p if alpha == 1.0 else p * alpha
        return total if q is None else total + (q if beta == 1.0 else q * beta)

    return only(mapped(b, function, found, more and expanded(more, found.shape)))


def _einsum(c: Context) -> Sequence[Value]:
    labels, output, values = parse_einsum(c.text("equation"), c.inputs)
    return only(einsum(c.b, labels, output, values))


def less_zero(c: Context, value: Value, zero: Value | None, axis: int | None) -> Value:
    """Return integers as int32, less their zero point; one per slice along ``axis`` if it is a vector."""
    b = c.b
    wide = cast(b, value, ElementType.INT32, "wide")
    if zero is None:
        return wide
    point = cast(b, zero, ElementType.INT32, "zero")
    if point.size == 1:
        point = expanded(squeezed(point, range(point.rank)), value.shape)
    elif point.rank == 1 and axis is not None:
        point = unsqueezed(point, [k for k in range(value.rank) if k != axis % value.rank])
    return mapped(b, scalar.subtract, wide, point, hint="centred")


def _matmul_integer(c: Context) -> Sequence[Value]:
    left = less_zero(c, c.input(0), c.optional(2), -2)
    right = less_zero(c, c.input(1), c.optional(3), -1)
    return only(matrix_product(c.b, left, right))


def _conv_integer(c: Context) -> Sequence[Value]:
    x = less_zero(c, c.input(0), c.optional(2), None)
    w = less_zero(c, c.input(1), c.optional(3), 0)
    window = window_of(c, x.shape[2:], w.shape[2:])
    return only(convolution(c.b, x, w, window, c.integer("group", 1)))


OPERATIONS: Table = {
    "Det": op(determinant, X),
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
    "MatMul": op(matrix_product, X, value(1)),
    "Einsum": _einsum,
    "MatMulInteger": _matmul_integer,
    "ConvInteger": _conv_integer,
}
