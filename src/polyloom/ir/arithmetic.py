"""Scalar functions on arrays, each operation rounded to its element type.

- float16, float32: ``+ - * /`` and sqrt are rounded once; exp log tanh sigmoid erf pow rsqrt are computed
  in float64 and rounded once.
- Integers wrap; division goes towards zero, by zero gives 0; pow wraps, a negative exponent truncates.
- max and min propagate NaN.
- Conversion to float rounds to nearest even; float to integer goes towards zero, then wraps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    Read,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]
Function = Callable[..., NDArray]


def value(expression: Expression, reads: Sequence[NDArray], iterators: Callable[[int], NDArray]) -> NDArray:
    """Return an expression's value; ``reads`` one array per read, ``iterators`` a dimension's values."""
    match expression:
        case Read(position=k):
            return reads[k]
        case Constant(value=x, type=kind):
            return constant(x, kind)
        case Iterator(dimension=k, type=kind):
            return convert(iterators(k), kind)
        case Unary(op=op, operand=a):
            return unary(op, value(a, reads, iterators), a.type)
        case Binary(op=op, left=a, right=b):
            return binary(op, value(a, reads, iterators), value(b, reads, iterators), a.type)
        case Compare(op=op, left=a, right=b):
            return COMPARISONS[op](value(a, reads, iterators), value(b, reads, iterators))
        case Select(condition=c, then=a, otherwise=b):
            sides = value(a, reads, iterators), value(b, reads, iterators)
            return np.where(value(c, reads, iterators), *sides)
        case Convert(type=kind, operand=a):
            return convert(value(a, reads, iterators), kind)


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
        return np.trunc(a).astype(np.int64).astype(kind.dtype)
    return a.astype(kind.dtype)


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
}
_OF_INTEGERS: dict[UnaryOp, Function] = {
    UnaryOp.NEGATE: np.negative,
    UnaryOp.ABS: np.abs,
    UnaryOp.FLOOR: _same,
    UnaryOp.CEIL: _same,
    UnaryOp.ROUND: _same,
}


def unary(op: UnaryOp, a: NDArray, kind: ElementType) -> NDArray:
    """Return ``op(a)`` in the type of ``a``."""
    return (_UNARY if kind.is_float else _OF_INTEGERS)[op](a)


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
}


def binary(op: BinaryOp, a: NDArray, b: NDArray, kind: ElementType) -> NDArray:
    """Return ``a op b`` in the type of both."""
    if op is BinaryOp.DIVIDE:
        return np.true_divide(a, b) if kind.is_float else _divide_integers(a, b)
    if op is BinaryOp.POWER:
        return _power(a, b) if kind.is_float else _power_integers(a, b)
    result: NDArray = UFUNCS[op](a, b)
    return result


def _divide_integers(a: NDArray, b: NDArray) -> NDArray:
    """Divide towards zero; by zero gives 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    floor = a // divisor
    inexact = floor * divisor != a
    quotient = floor + (inexact & ((a < 0) != (divisor < 0))).astype(a.dtype)
    result: NDArray = np.where(b == 0, np.zeros_like(quotient), quotient)
    return result


def _power(a: NDArray, b: NDArray) -> NDArray:
    return np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def _power_integers(a: NDArray, b: NDArray) -> NDArray:
    """Multiply repeatedly with wrapping; a negative exponent gives 1 / a**-b, towards zero."""
    power = np.power(a.astype(np.int64), np.maximum(b, 0).astype(np.int64)).astype(a.dtype)
    odd_sign = np.where(b % 2 == 0, np.ones_like(a), a)
    inverse = np.where(np.abs(a) == 1, odd_sign, np.zeros_like(a))
    result: NDArray = np.where(b < 0, inverse, power).astype(a.dtype)
    return result
