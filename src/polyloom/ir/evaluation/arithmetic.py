"""Scalar functions on arrays, each operation rounded to its element type.

- float16, float32: ``+ - * / %`` and sqrt are rounded once; exp log tanh sigmoid erf pow rsqrt and the
  other functions of analysis are computed in float64 and rounded once.
- Integers wrap; division goes towards zero, by zero gives 0, and so does the remainder; pow wraps, a
  negative exponent truncates. A shift counts modulo the number of bits.
- max and min propagate NaN; fmax and fmin ignore it.
- Conversion to float rounds to nearest even; float to integer goes towards zero, then wraps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]
Function = Callable[..., NDArray]
_NO_PARAMETERS: Mapping[str, int] = MappingProxyType({})


def value(
    expression: Expression,
    reads: Sequence[NDArray],
    iterators: Callable[[int], NDArray],
    parameters: Mapping[str, int] = _NO_PARAMETERS,
) -> NDArray:
    """Return an expression's value; ``reads`` one array per read, ``iterators`` a dimension's values."""

    def inner(part: Expression) -> NDArray:
        return value(part, reads, iterators, parameters)

    match expression:
        case Read(position=k):
            return reads[k]
        case Constant(value=x, type=kind):
            return constant(x, kind)
        case Iterator(dimension=k, type=kind):
            return convert(iterators(k), kind)
        case ParameterValue(name=name, type=kind):
            return constant(parameters[name], kind)
        case Unary(op=op, operand=a):
            return unary(op, inner(a), a.type)
        case Binary(op=op, left=a, right=b):
            return binary(op, inner(a), inner(b), a.type)
        case Compare(op=op, left=a, right=b):
            return COMPARISONS[op](inner(a), inner(b))
        case Select(condition=c, then=a, otherwise=b):
            return np.where(inner(c), inner(a), inner(b))
        case Convert(type=kind, operand=a):
            return convert(inner(a), kind)


def constant(number: float | int, kind: ElementType) -> NDArray:
    """Return a literal, rounded to its type; a large integer wraps."""
    if kind.is_float:
        return np.asarray(number, dtype=np.float64).astype(kind.dtype)
    return np.asarray(_wrapped_int64(int(number)), dtype=np.int64).astype(kind.dtype)


def _wrapped_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def convert(a: NDArray, kind: ElementType) -> NDArray:
    """Return the array in another type."""
    if a.dtype.kind == "f" and not kind.is_float:
        return _whole(np.trunc(a), kind)
    return a.astype(kind.dtype)


def _whole(a: NDArray, kind: ElementType) -> NDArray:
    """Return floats that are integers in an integer type; uint64 also has what int64 has not."""
    if kind is not ElementType.UINT64:
        return a.astype(np.int64).astype(kind.dtype)
    half = np.float64(2.0**63)
    high = a.astype(np.float64) >= half
    low = np.where(high, a.astype(np.float64) - half, a).astype(np.int64).astype(np.uint64)
    return np.where(high, low + np.uint64(2**63), low).astype(np.uint64)


def _in_float64(function: Callable[[NDArray], NDArray]) -> Function:
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


def _erf(a: NDArray) -> NDArray:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a), dtype=np.float64)


def _same(a: NDArray) -> NDArray:
    return a


_UNARY: dict[UnaryOp, Function] = {
    UnaryOp.NEGATE: np.negative,
    UnaryOp.EXP: _in_float64(np.exp),
    UnaryOp.LOG: _in_float64(np.log),
    UnaryOp.SQRT: np.sqrt,
    UnaryOp.RSQRT: _in_float64(lambda a: 1 / np.sqrt(a)),
    UnaryOp.TANH: _in_float64(np.tanh),
    UnaryOp.SIGMOID: _in_float64(lambda a: 1 / (1 + np.exp(-a))),
    UnaryOp.ERF: _in_float64(_erf),
    UnaryOp.ABS: np.abs,
    UnaryOp.FLOOR: np.floor,
    UnaryOp.CEIL: np.ceil,
    UnaryOp.ROUND: np.rint,
    UnaryOp.TRUNC: np.trunc,
    UnaryOp.SIN: _in_float64(np.sin),
    UnaryOp.COS: _in_float64(np.cos),
    UnaryOp.TAN: _in_float64(np.tan),
    UnaryOp.ASIN: _in_float64(np.arcsin),
    UnaryOp.ACOS: _in_float64(np.arccos),
    UnaryOp.ATAN: _in_float64(np.arctan),
    UnaryOp.SINH: _in_float64(np.sinh),
    UnaryOp.COSH: _in_float64(np.cosh),
    UnaryOp.EXP2: _in_float64(np.exp2),
    UnaryOp.LOG2: _in_float64(np.log2),
    UnaryOp.LOG10: _in_float64(np.log10),
    UnaryOp.CBRT: _in_float64(np.cbrt),
}
_OF_INTEGERS: dict[UnaryOp, Function] = {
    UnaryOp.NEGATE: np.negative,
    UnaryOp.ABS: np.abs,
    UnaryOp.FLOOR: _same,
    UnaryOp.CEIL: _same,
    UnaryOp.ROUND: _same,
    UnaryOp.TRUNC: _same,
    UnaryOp.COMPLEMENT: np.invert,
}


def unary(op: UnaryOp, a: NDArray, kind: ElementType) -> NDArray:
    """Return ``op(a)`` in the type of ``a``."""
    if op is UnaryOp.NOT:
        return np.logical_not(a)
    return (_UNARY if kind.is_float else _OF_INTEGERS)[op](a)


def takes_integers(op: UnaryOp) -> bool:
    """Tell whether integers have an operation; floats have all but the complement."""
    return op in _OF_INTEGERS


COMPARISONS: dict[CompareOp, Function] = {
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
}

UFUNCS: dict[BinaryOp, np.ufunc] = {
    BinaryOp.ADD: np.add,
    BinaryOp.SUBTRACT: np.subtract,
    BinaryOp.MULTIPLY: np.multiply,
    BinaryOp.MAXIMUM: np.maximum,
    BinaryOp.MINIMUM: np.minimum,
    BinaryOp.FMAX: np.fmax,
    BinaryOp.FMIN: np.fmin,
    BinaryOp.BIT_AND: np.bitwise_and,
    BinaryOp.BIT_OR: np.bitwise_or,
    BinaryOp.BIT_XOR: np.bitwise_xor,
    BinaryOp.AND: np.logical_and,
    BinaryOp.OR: np.logical_or,
}


def binary(op: BinaryOp, a: NDArray, b: NDArray, kind: ElementType) -> NDArray:
    """Return ``a op b`` in the type of both."""
    if op in UFUNCS:
        result: NDArray = UFUNCS[op](a, b)
        return result
    return (_OF_TWO_FLOATS if kind.is_float else _OF_TWO_INTEGERS)[op](a, b)


def _divide_integers(a: NDArray, b: NDArray) -> NDArray:
    """Divide towards zero; by zero gives 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    floor = a // divisor
    inexact = floor * divisor != a
    quotient = floor + (inexact & ((a < 0) != (divisor < 0))).astype(a.dtype)
    result: NDArray = np.where(b == 0, np.zeros_like(quotient), quotient)
    return result


def _remainder_of_integers(a: NDArray, b: NDArray) -> NDArray:
    """Return C's ``%``: the sign is that of ``a``; by zero it gives 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, divisor)).astype(a.dtype)


def _shift(function: np.ufunc) -> Function:
    """Return a shift that counts modulo the number of bits, as OpenCL does (C leaves it undefined)."""
    return lambda a, b: function(a, b & b.dtype.type(8 * a.dtype.itemsize - 1))


def _both_in_float64(function: Callable[[NDArray, NDArray], NDArray]) -> Function:
    return lambda a, b: function(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _power_integers(a: NDArray, b: NDArray) -> NDArray:
    """Multiply repeatedly with wrapping; a negative exponent gives 1 / a**-b, towards zero."""
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    power = np.power(a.astype(wide), np.maximum(b, 0).astype(wide)).astype(a.dtype)
    odd_sign = np.where(b % 2 == 0, np.ones_like(a), a)
    inverse = np.where(np.abs(a) == 1, odd_sign, np.zeros_like(a))
    result: NDArray = np.where(b < 0, inverse, power).astype(a.dtype)
    return result


def _power(a: NDArray, b: NDArray) -> NDArray:
    """Return C's ``pow``; for one exponent of 0.5 NumPy alone takes the root, even of -0."""
    bases, exponents = (np.array(x, ndmin=1) for x in np.broadcast_arrays(a, b))
    found: NDArray = np.power(bases, exponents).reshape(np.broadcast_shapes(a.shape, b.shape))
    return found


_OF_TWO_FLOATS: dict[BinaryOp, Function] = {
    BinaryOp.DIVIDE: np.true_divide,
    BinaryOp.POWER: _both_in_float64(_power),
    BinaryOp.REMAINDER: np.fmod,
    BinaryOp.ATAN2: _both_in_float64(np.arctan2),
    BinaryOp.HYPOT: _both_in_float64(np.hypot),
}
_OF_TWO_INTEGERS: dict[BinaryOp, Function] = {
    BinaryOp.DIVIDE: _divide_integers,
    BinaryOp.POWER: _power_integers,
    BinaryOp.REMAINDER: _remainder_of_integers,
    BinaryOp.SHIFT_LEFT: _shift(np.left_shift),
    BinaryOp.SHIFT_RIGHT: _shift(np.right_shift),
}
