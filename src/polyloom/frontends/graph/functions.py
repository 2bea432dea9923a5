"""Scalar functions of neural networks, as expressions of the IR."""

from __future__ import annotations

import math

from polyloom.frontends.graph import scalar
from polyloom.ir.expressions import BinaryOp, CompareOp, Expression, UnaryOp


def floor_remainder(a: Expression, b: Expression) -> Expression:
    """Return the remainder with the sign of ``b``."""
    rest = scalar.remainder(a, b)
    if a.type.value.startswith("u"):
        return rest
    signs = scalar.logical(
        BinaryOp.BIT_XOR, scalar.compare(CompareOp.LT, rest, 0), scalar.compare(CompareOp.LT, b, 0)
    )
    wrong = scalar.logical(BinaryOp.AND, scalar.compare(CompareOp.NE, rest, 0), signs)
    return scalar.select(wrong, scalar.add(rest, b), rest)


def sign(x: Expression) -> Expression:
    """Return -1, 0 or 1; NaN stays."""
    positive = scalar.select(scalar.compare(CompareOp.GT, x, 0), scalar.number(1, x.type), 0)
    if x.type.value.startswith("u"):
        return positive
    found = scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.number(-1, x.type), positive)
    return scalar.select(is_nan(x), x, found) if x.type.is_float else found


def is_nan(x: Expression) -> Expression:
    """Tell whether ``x`` is not equal to itself."""
    return scalar.compare(CompareOp.NE, x, x)


def is_extreme(x: Expression, extreme: Expression) -> Expression:
    """Tell whether ``x`` is the largest or smallest of its elements, which is NaN where one of them is."""
    same = scalar.compare(CompareOp.EQ, x, extreme)
    return scalar.logical(BinaryOp.OR, same, is_nan(x)) if x.type.is_float else same


def is_finite(x: Expression) -> Expression:
    """Tell whether ``x - x`` is 0: of infinities and NaN it is NaN."""
    return scalar.compare(CompareOp.EQ, scalar.subtract(x, x), 0)


def is_infinite(x: Expression) -> Expression:
    """Tell whether ``x`` is neither finite nor NaN."""
    return scalar.logical(BinaryOp.AND, scalar.negation(is_finite(x)), scalar.negation(is_nan(x)))


def is_negative(x: Expression) -> Expression:
    """Tell whether the sign of ``x`` is set, also of -0."""
    below = scalar.compare(CompareOp.LT, x, 0)
    if not x.type.is_float:
        return below
    zero = scalar.compare(CompareOp.EQ, x, 0)
    return scalar.select(zero, scalar.compare(CompareOp.LT, scalar.divide(1, x), 0), below)


def times_log(a: Expression, b: Expression) -> Expression:
    """Return ``a * log(b)``, 0 where ``a`` is 0."""
    found = scalar.multiply(a, scalar.log(b))
    return scalar.select(scalar.compare(CompareOp.EQ, a, 0), scalar.number(0, a.type), found)


def divided_or_zero(a: Expression, b: Expression) -> Expression:
    """Return ``a / b``, 0 where ``b`` is 0."""
    return scalar.select(scalar.equal(b, 0), scalar.number(0, a.type), a / b)


def relu(x: Expression) -> Expression:
    """Return ``max(x, 0)``."""
    return scalar.maximum(x, 0)


def softplus(x: Expression) -> Expression:
    """Return ``log(exp(x) + 1)``, without overflow, and right where it is small."""
    small = scalar.exp(scalar.negate(scalar.absolute(x)))
    return scalar.add(scalar.maximum(x, 0), log1p(small))


def expm1(x: Expression) -> Expression:
    """Return ``exp(x) - 1`` as ``2 t / (1 - t)`` with ``t = tanh(x / 2)`` near 0, where nothing cancels."""
    half = scalar.tanh(scalar.multiply(x, 0.5))
    near = scalar.divide(scalar.multiply(half, 2), scalar.subtract(1, half))
    small = scalar.compare(CompareOp.LT, scalar.absolute(x), 0.5)
    return scalar.select(small, near, scalar.subtract(scalar.exp(x), 1))


def log1p(x: Expression) -> Expression:
    """Return ``log(1 + x)`` as ``2 atanh(x / (2 + x))`` by its series near 0, where nothing cancels."""
    s = scalar.divide(x, scalar.add(x, 2))
    z = scalar.square(s)
    total: Expression = scalar.number(1 / 15, x.type)
    for n in (13, 11, 9, 7, 5, 3, 1):
        total = scalar.add(scalar.multiply(total, z), 1 / n)
    near = scalar.multiply(scalar.multiply(s, total), 2)
    small = scalar.compare(CompareOp.LT, scalar.absolute(x), 0.25)
    return scalar.select(small, near, scalar.log(scalar.add(x, 1)))


def leaky(x: Expression, slope: Expression | float) -> Expression:
    """Return ``x``, times the slope where it is negative."""
    return scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.multiply(x, slope), x)


def elu(x: Expression, alpha: float, scale: float = 1.0, inner: float = 1.0) -> Expression:
    """Return ``scale * (x > 0 ? x : alpha * (exp(x / inner) - 1))``."""
    argument = x if inner == 1.0 else scalar.divide(x, inner)
    negative = scalar.multiply(scalar.subtract(scalar.exp(argument), 1), alpha)
    found = scalar.select(scalar.compare(CompareOp.GT, x, 0), x, negative)
    return found if scale == 1.0 else scalar.multiply(found, scale)


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(x: Expression) -> Expression:
    """Return ELU with the two numbers that keep mean 0 and variance 1."""
    return elu(x, SELU_ALPHA, SELU_SCALE)


def clipped(x: Expression, low: Expression | float, high: Expression | float) -> Expression:
    """Return ``min(max(x, low), high)``."""
    return scalar.minimum(scalar.maximum(x, low), high)


def silu(x: Expression) -> Expression:
    """Return ``x * sigmoid(x)``."""
    return scalar.multiply(x, scalar.sigmoid(x))


def mish(x: Expression) -> Expression:
    """Return ``x * tanh(softplus(x))``."""
    return scalar.multiply(x, scalar.tanh(softplus(x)))


def softsign(x: Expression) -> Expression:
    """Return ``x / (|x| + 1)``."""
    return scalar.divide(x, scalar.add(scalar.absolute(x), 1))


def sigmoid_gradient(g: Expression, y: Expression) -> Expression:
    """Return ``g * y * (1 - y)``, of the result ``y``."""
    return scalar.multiply(scalar.multiply(g, y), scalar.subtract(1, y))


def tanh_gradient(g: Expression, y: Expression) -> Expression:
    """Return ``g * (1 - y * y)``, of the result ``y``."""
    return scalar.multiply(g, scalar.subtract(1, scalar.square(y)))


def hard_sigmoid(x: Expression, alpha: float, beta: float) -> Expression:
    """Return ``max(0, min(1, alpha * x + beta))``."""
    return scalar.maximum(scalar.minimum(scalar.add(scalar.multiply(x, alpha), beta), 1), 0)


def gelu(x: Expression, *, tanh: bool) -> Expression:
    """Return ``x * Phi(x)``, or its approximation by tanh."""
    if not tanh:
        phi = scalar.add(scalar.erf(scalar.divide(x, math.sqrt(2))), 1)
        return scalar.multiply(scalar.multiply(x, 0.5), phi)
    cube = scalar.multiply(scalar.multiply(scalar.square(x), x), 0.044715)
    inner = scalar.multiply(scalar.add(x, cube), math.sqrt(2 / math.pi))
    return scalar.multiply(scalar.multiply(x, 0.5), scalar.add(scalar.tanh(inner), 1))


def asinh(x: Expression) -> Expression:
    """Return the inverse of sinh: odd, so that nothing cancels."""
    a = scalar.absolute(x)
    found = scalar.log(scalar.add(a, scalar.sqrt(scalar.add(scalar.square(a), 1))))
    return scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.negate(found), found)


def acosh(x: Expression) -> Expression:
    """Return the inverse of cosh."""
    return scalar.log(scalar.add(x, scalar.sqrt(scalar.subtract(scalar.square(x), 1))))


def atanh(x: Expression) -> Expression:
    """Return the inverse of tanh."""
    quotient = scalar.divide(scalar.add(x, 1), scalar.subtract(1, x))
    return scalar.multiply(scalar.log(quotient), 0.5)


NAMED_ALIKE = {
    op.name.capitalize(): (lambda x, op=op: scalar.unary(op, x))
    for op in (
        UnaryOp.FLOOR,
        UnaryOp.CEIL,
        UnaryOp.ROUND,
        UnaryOp.SIN,
        UnaryOp.COS,
        UnaryOp.TAN,
        UnaryOp.ASIN,
        UnaryOp.ACOS,
        UnaryOp.ATAN,
        UnaryOp.SINH,
        UnaryOp.COSH,
    )
}
"""Functions of one operator that have the same name in ONNX and TensorFlow."""
