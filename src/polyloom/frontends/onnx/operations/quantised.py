"""Quantised arithmetic: scales, zero points, rounding to a range."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyloom.frontends.graph.core import (
    BinaryOp,
    Builder,
    Combine,
    Context,
    ElementType,
    Expression,
    Table,
    UnaryOp,
    Value,
    axis,
    cast,
    convolution,
    expanded,
    mapped,
    matrix_product,
    only,
    padded,
    reduced,
    refuse_if,
    reshaped,
    scalar,
    sliced,
    split,
    squeezed,
    unsqueezed,
    with_bias,
)
from polyloom.frontends.graph.functions import as_small_float
from polyloom.frontends.onnx import narrow
from polyloom.frontends.onnx.operations.elementwise import type_of
from polyloom.frontends.onnx.operations.linear import less_zero, window_of
from polyloom.ir.scalar_functions.small_floats import FloatFormat

_QUANTISED = (
    ElementType.UINT8,
    ElementType.INT8,
    ElementType.UINT16,
    ElementType.INT16,
    ElementType.INT32,
)


def rounded(
    x: Expression, zero: Expression | None, kind: ElementType, limits: tuple[int, int] | None = None
) -> Expression:
    """Return ``x`` rounded to nearest even, plus a zero point, within limits, or the range of ``kind``."""
    whole = np.iinfo(kind.value)
    low, high = limits or (int(whole.min), int(whole.max))
    found = scalar.unary(UnaryOp.ROUND, x)
    if zero is not None:
        found = scalar.add(found, scalar.convert(zero, x.type))
    return scalar.convert(scalar.maximum(scalar.minimum(found, high), low), kind)


def _spread(scale: Value, x: Value, at: int, block: int) -> Value:
    """Return a scale or zero point for every element: one for all, one per slice, or one per block."""
    if scale.size == 1:
        return expanded(squeezed(scale, list(range(scale.rank))), x.shape)
    if block and scale.rank == x.rank:
        refuse_if(x.shape[at] != block * scale.shape[at], f"blocks of {block} along an axis of {x.shape[at]}")
        shape = (*scale.shape[: at + 1], block, *scale.shape[at + 1 :])
        return expanded(unsqueezed(scale, [at + 1]), shape)
    refuse_if(
        scale.rank != 1 or scale.shape[0] != x.shape[at],
        f"a scale of shape {list(scale.shape)} for axis {at} of {list(x.shape)}",
    )
    return expanded(unsqueezed(scale, [k for k in range(x.rank) if k != at]), x.shape)


def _blocked(x: Value, at: int, block: int) -> Value:
    return split(x, at, (x.shape[at] // block, block))


def _parts(c: Context, x: Value) -> tuple[Value, Value, Value | None, bool]:
    """Return data, scale and zero point of one shape; whether the data are cut into blocks."""
    scale, zero = c.input(1), c.optional(2)
    block = c.integer("block_size", 0)
    at = axis(c.integer("axis", 1), x.rank) if x.rank and scale.size > 1 else 0
    blocks = bool(block) and scale.rank == x.rank and scale.size > 1
    if blocks:
        # the last block may be full in part
        missing = max(block * scale.shape[at] - x.shape[at], 0)
        refuse_if(missing >= block, f"{scale.shape[at]} blocks of {block} along an axis of {x.shape[at]}")
        after = [missing if k == at else 0 for k in range(x.rank)]
        x = padded(c.b, x, [0] * x.rank, after) if missing else x
    spread = _spread(scale, x, at, block)
    zeros = None if zero is None else _spread(zero, x, at, block)
    return (_blocked(x, at, block) if blocks else x), spread, zeros, blocks


def _whole(c: Context, found: Value, blocks: bool) -> Sequence[Value]:
    """Return what was computed in blocks in the shape of the data."""
    if not blocks:
        return only(found)
    shape = c.input(0).shape
    at = axis(c.integer("axis", 1), len(shape))
    joined = (*shape[:at], found.shape[at] * found.shape[at + 1], *shape[at + 1 :])
    return only(sliced(reshaped(c.b, found, joined), at, 0, 1, shape[at]))


def _quantize(c: Context) -> Sequence[Value]:
    zero = c.optional(2)
    stated = c.integer("output_dtype", 0)
    kind = zero.type if zero is not None else type_of(stated) if stated else ElementType.UINT8
    refuse_if(kind not in _QUANTISED, f"quantisation to {kind.value}")
    return _quantized(c, kind, lambda v, z: rounded(v, z, kind))


def _quantized(
    c: Context, kind: ElementType, function: Callable[[Expression, Expression | None], Expression]
) -> Sequence[Value]:
    """Return the function of ``x / scale`` and of the zero point, which is of type ``kind``."""
    x = c.input(0)
    data, scale, zeros, blocks = _parts(c, x)
    wide = ElementType.FLOAT64 if kind is ElementType.INT32 or not x.type.is_float else ElementType.FLOAT32

    def of_ratio(v: Expression, s: Expression, z: Expression | None) -> Expression:
        return function(scalar.convert(v, wide) / scalar.convert(s, wide), z)

    return _whole(c, mapped(c.b, of_ratio, data, scale, zeros), blocks)


def _quantize_narrow(c: Context) -> Sequence[Value]:
    """QuantizeLinear to integers of 2 and 4 bits, and to floats of 4 and 8, in types that hold them."""
    number, saturate = c.integer(narrow.KIND, 0), bool(c.integer("saturate", 1))
    if number in narrow.FLOATS:
        form = narrow.FLOATS[number]
        # a zero point of these formats is 0
        return _quantized(c, ElementType.FLOAT32, lambda v, _: _as_small_float(v, form, saturate))
    bits, signed = narrow.INTEGERS[number]
    kind, low = (ElementType.INT8, -(1 << bits - 1)) if signed else (ElementType.UINT8, 0)
    limits = low, low + (1 << bits) - 1
    return _quantized(c, kind, lambda v, z: rounded(v, z, kind, limits))


def _as_small_float(x: Expression, form: FloatFormat, saturate: bool) -> Expression:
    """Return a number of any type as a narrow float, in float32."""
    wide = (
        ElementType.FLOAT32 if x.type in (ElementType.FLOAT16, ElementType.FLOAT32) else ElementType.FLOAT64
    )
    return scalar.convert(as_small_float(scalar.convert(x, wide), form, saturate), ElementType.FLOAT32)


def _cast_narrow(c: Context) -> Sequence[Value]:
    """Cast to floats of 4 and 8 bits, in float32, and to integers of 2 and 4, in 8 bits, which hold them."""
    number, saturate = c.integer(narrow.KIND, 0), bool(c.integer("saturate", 1))
    if number in narrow.FLOATS:
        form = narrow.FLOATS[number]
        return only(mapped(c.b, lambda v: _as_small_float(v, form, saturate), c.input(0)))
    bits, signed = narrow.INTEGERS[number]
    return only(mapped(c.b, lambda v: _lowest_bits(v, bits, signed=signed), c.input(0)))


def _lowest_bits(x: Expression, bits: int, *, signed: bool) -> Expression:
    """Return the lowest bits of an integer, or of what a float is without its fraction."""
    whole = scalar.convert(x, ElementType.INT32 if x.type.is_float else x.type)
    lowest = scalar.bits(
        BinaryOp.BIT_AND,
        scalar.convert(whole, ElementType.INT32),
        scalar.number((1 << bits) - 1, ElementType.INT32),
    )
    if not signed:
        return scalar.convert(lowest, ElementType.UINT8)
    half = scalar.number(1 << bits - 1, ElementType.INT32)
    return scalar.convert(scalar.bits(BinaryOp.BIT_XOR, lowest, half) - half, ElementType.INT8)


def _dequantize(c: Context) -> Sequence[Value]:
    x, stated = c.input(0), c.integer("output_dtype", 0)
    data, scale, zeros, blocks = _parts(c, x)
    kind = type_of(stated) if stated else scale.type
    centred_type = ElementType.FLOAT32 if x.type.is_float else ElementType.INT32

    def function(v: Expression, s: Expression, z: Expression | None) -> Expression:
        whole = scalar.convert(v, centred_type)
        centred = whole if z is None else whole - scalar.convert(z, centred_type)
        return scalar.convert(scalar.convert(centred, scale.type) * s, kind)

    return _whole(c, mapped(c.b, function, data, scale, zeros), blocks)


def _dynamic_quantize(c: Context) -> Sequence[Value]:
    """DynamicQuantizeLinear: the range of the data, widened to hold 0, as uint8."""
    b, x = c.b, c.input()
    over = list(range(x.rank))
    low = reduced(b, Combine.MINIMUM, x, over, keep=False, hint="low")
    high = reduced(b, Combine.MAXIMUM, x, over, keep=False, hint="high")

    scale = mapped(
        b, lambda h, m: (scalar.maximum(h, 0) - scalar.minimum(m, 0)) / 255, high, low, hint="scale"
    )
    byte = ElementType.UINT8
    zero = mapped(
        b, lambda m, s: rounded((0 - scalar.minimum(m, 0)) / s, None, byte), low, scale, hint="zero"
    )
    y = mapped(b, lambda v, s, z: rounded(v / s, z, byte), x, scale, zero)
    return y, scale, zero


def _requantised(b: Builder, total: Value, scales: Sequence[Value], zero: Value, at: int) -> Value:
    """Return integers times ``scales[0] * scales[1] / scales[2]``, rounded to the zero point's type."""
    kind = zero.type
    spread = [cast(b, _spread(s, total, at, 0), ElementType.FLOAT32, "scale") for s in scales]

    def function(t: Expression, x: Expression, w: Expression, y: Expression, z: Expression) -> Expression:
        return rounded(scalar.convert(t, ElementType.FLOAT32) * (x * w / y), z, kind)

    return mapped(b, function, total, *spread, _spread(zero, total, at, 0))


def _qlinear_matmul(c: Context) -> Sequence[Value]:
    b = c.b
    left = less_zero(c, c.input(0), c.input(2), -2)
    right = less_zero(c, c.input(3), c.input(5), -1)
    total = matrix_product(b, left, right, "sum")
    return only(_requantised(b, total, [c.input(1), c.input(4), c.input(6)], c.input(7), total.rank - 1))


def _qlinear_conv(c: Context) -> Sequence[Value]:
    b = c.b
    x = less_zero(c, c.input(0), c.input(2), None)
    w = less_zero(c, c.input(3), c.input(5), 0)
    window = window_of(c, x.shape[2:], w.shape[2:])
    total = convolution(b, x, w, window, c.integer("group", 1), hint="sum")
    total = with_bias(b, total, c.optional(8), hint="biased")
    return only(_requantised(b, total, [c.input(1), c.input(4), c.input(6)], c.input(7), 1))


NARROW: Table = {"QuantizeNarrow": _quantize_narrow, "CastNarrow": _cast_narrow}
"""Of ``narrow.DOMAIN``."""

OPERATIONS: Table = {
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "QLinearMatMul": _qlinear_matmul,
    "QLinearConv": _qlinear_conv,
}
