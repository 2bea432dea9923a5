"""Scalar functions written short: what a statement computes at a point, as expressions of the IR."""

from __future__ import annotations

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Number,
    Operand,
    Select,
    Unary,
    UnaryOp,
    paired,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType


def as_bfloat16(element: Expression) -> Expression:
    """Return a float32 as bfloat16 stores it, rounded to nearest even; what is no float32 as it is."""
    return unary(UnaryOp.BFLOAT16, element) if element.type is ElementType.FLOAT32 else element


def _binary(op: BinaryFunction, a: Operand, b: Operand) -> Expression:
    return Binary(op, *paired(a, b))


def bits(op: BinaryFunction, a: Expression, b: Expression) -> Expression:
    """Return an operation on the bits of integers."""
    return Binary(op, a, b)


def add(a: Operand, b: Operand) -> Expression:
    """Return ``a + b``."""
    return _binary(BinaryOp.ADD, a, b)


def subtract(a: Operand, b: Operand) -> Expression:
    """Return ``a - b``."""
    return _binary(BinaryOp.SUBTRACT, a, b)


def multiply(a: Operand, b: Operand) -> Expression:
    """Return ``a * b``."""
    return _binary(BinaryOp.MULTIPLY, a, b)


def divide(a: Operand, b: Operand) -> Expression:
    """Return ``a / b``; of integers towards zero."""
    return _binary(BinaryOp.DIVIDE, a, b)


def power(a: Operand, b: Operand) -> Expression:
    """Return ``pow(a, b)``."""
    return _binary(BinaryOp.POWER, a, b)


def maximum(a: Operand, b: Operand) -> Expression:
    """Return the larger; NaN propagates."""
    return _binary(BinaryOp.MAXIMUM, a, b)


def minimum(a: Operand, b: Operand) -> Expression:
    """Return the smaller; NaN propagates."""
    return _binary(BinaryOp.MINIMUM, a, b)


def remainder(a: Operand, b: Operand) -> Expression:
    """Return the remainder with the sign of ``a``."""
    return _binary(BinaryOp.REMAINDER, a, b)


def logical(op: BinaryFunction, a: Expression, b: Expression) -> Expression:
    """Return ``a and b``, ``a or b``, or exclusive or, by choices: LAIR and the wafer have no other way."""
    match op:
        case BinaryOp.AND:
            return truth(Select(a, _digit(b), _ZERO))
        case BinaryOp.OR:
            return truth(Select(a, _ONE, _digit(b)))
        case _:
            return truth(Select(a, Select(b, _ZERO, _ONE), _digit(b)))


def negation(a: Expression) -> Expression:
    """Return ``not a``."""
    return truth(Select(a, _ZERO, _ONE))


_ZERO = Constant(0, ElementType.INT32)
_ONE = Constant(1, ElementType.INT32)


def _digit(a: Expression) -> Expression:
    return Select(a, _ONE, _ZERO)


def truth(a: Expression) -> Expression:
    """Return whether a number is not 0."""
    return Compare(CompareOp.NE, a, Constant(0, a.type))


def unary(op: UnaryFunction, a: Expression) -> Expression:
    """Return ``op(a)``."""
    return Unary(op, a)


def exp(a: Expression) -> Expression:
    """Return e to the power of ``a``."""
    return Unary(UnaryOp.EXP, a)


def log(a: Expression) -> Expression:
    """Return the natural logarithm."""
    return Unary(UnaryOp.LOG, a)


def sqrt(a: Expression) -> Expression:
    """Return the square root."""
    return Unary(UnaryOp.SQRT, a)


def rsqrt(a: Expression) -> Expression:
    """Return 1 / sqrt(a)."""
    return Unary(UnaryOp.RSQRT, a)


def tanh(a: Expression) -> Expression:
    """Return the hyperbolic tangent."""
    return Unary(UnaryOp.TANH, a)


def sigmoid(a: Expression) -> Expression:
    """Return 1 / (1 + exp(-a))."""
    return Unary(UnaryOp.SIGMOID, a)


def erf(a: Expression) -> Expression:
    """Return the error function."""
    return Unary(UnaryOp.ERF, a)


def negate(a: Expression) -> Expression:
    """Return ``-a``."""
    return Unary(UnaryOp.NEGATE, a)


def absolute(a: Expression) -> Expression:
    """Return the absolute value."""
    return a if a.type.value.startswith("u") else Unary(UnaryOp.ABS, a)


def square(a: Expression) -> Expression:
    """Return ``a * a``."""
    return Binary(BinaryOp.MULTIPLY, a, a)


def compare(op: CompareOp, a: Operand, b: Operand) -> Expression:
    """Return a truth value. Of truth values themselves the false one is the smaller."""
    left, right = paired(a, b)
    if left.type is not ElementType.BOOL:
        return Compare(op, left, right)
    match op:
        case CompareOp.EQ | CompareOp.NE:
            differ = logical(BinaryOp.BIT_XOR, left, right)
            return differ if op is CompareOp.NE else negation(differ)
        case CompareOp.LT | CompareOp.GE:
            less = logical(BinaryOp.AND, negation(left), right)
            return less if op is CompareOp.LT else negation(less)
        case CompareOp.GT | CompareOp.LE:
            return compare(op.turned, right, left)


def equal(a: Operand, b: Operand) -> Expression:
    """Return ``a == b``."""
    return compare(CompareOp.EQ, a, b)


def different(a: Operand, b: Operand) -> Expression:
    """Return ``a != b``."""
    return compare(CompareOp.NE, a, b)


def select(condition: Expression, then: Operand, otherwise: Operand) -> Expression:
    """Return ``condition ? then : otherwise``; of truth values too."""
    a, b = paired(then, otherwise)
    if a.type is not ElementType.BOOL:
        return Select(condition, a, b)
    return truth(Select(condition, _digit(a), _digit(b)))


def convert(a: Expression, kind: ElementType) -> Expression:
    """Return ``a`` in another type; a truth value is 0 or 1, and what is not 0 is true."""
    if a.type is kind:
        return a
    if kind is ElementType.BOOL:
        return truth(a)
    if a.type is ElementType.BOOL:
        return Select(a, Constant(1, kind), Constant(0, kind))
    if isinstance(a, Constant) and float(a.value).is_integer() and 0 <= a.value <= 100:
        return Constant(a.value, kind)
    return Convert(kind, a)


def number(value: Number, kind: ElementType) -> Expression:
    """Return a literal; 0 and 1 of type BOOL are comparisons that are false and true."""
    if kind is ElementType.BOOL:
        one = Constant(1, ElementType.INT32)
        return Compare(CompareOp.EQ if value else CompareOp.NE, one, one)
    return Constant(value, kind)
