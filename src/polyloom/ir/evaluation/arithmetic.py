"""Scalar functions on arrays, each operation rounded to its element type.

What each function does stands in the table, ``ir/scalar_functions``. Conversion to float rounds to nearest
even; float to integer goes towards zero, then wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.expressions import (
    Binary,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Unary,
)
from polyloom.ir.procedures.variables import assignments
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]
_NO_PARAMETERS: Mapping[str, int] = MappingProxyType({})
_NOTHING: Mapping[Local, NDArray] = MappingProxyType({})


def value(
    expression: Expression,
    reads: Sequence[NDArray],
    iterators: Callable[[int], NDArray],
    parameters: Mapping[str, int] = _NO_PARAMETERS,
    known: Mapping[Local, NDArray] = _NOTHING,
) -> NDArray:
    """Return an expression's value; ``reads`` one array per read, ``iterators`` a dimension's values.

    ``known``: variables of steps. Errors: NotImplementedError of branches and loops among these, which go
    point by point (``python_text``).
    """

    def inner(part: Expression) -> NDArray:
        return value(part, reads, iterators, parameters, known)

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
        case Local():
            return known[expression] if expression in known else constant(0, expression.type)
        case Procedure(body=body, result=result):
            own = dict(known)
            for step in assignments(body):
                own[step.local] = value(step.value, reads, iterators, parameters, own)
            return own[result]


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


def unary(op: UnaryFunction, a: NDArray, kind: ElementType) -> NDArray:
    """Return ``op(a)`` in the type of ``a``."""
    return op.form(kind).numpy(a)


def binary(op: BinaryFunction, a: NDArray, b: NDArray, kind: ElementType) -> NDArray:
    """Return ``a op b`` in the type of both."""
    return op.form(kind).numpy(a, b)


COMPARISONS: dict[CompareOp, Callable[[NDArray, NDArray], NDArray]] = {
    CompareOp.LT: np.less,
    CompareOp.LE: np.less_equal,
    CompareOp.GT: np.greater,
    CompareOp.GE: np.greater_equal,
    CompareOp.EQ: np.equal,
    CompareOp.NE: np.not_equal,
}
