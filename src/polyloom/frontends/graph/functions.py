"""Scalar functions of neural networks, as expressions of the IR."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from polyloom.frontends.graph import scalar
from polyloom.ir.expressions import BinaryOp, CompareOp, Expression, UnaryOp
from polyloom.ir.scalar_functions.small_floats import FloatFormat
from polyloom.ir.types import ElementType


def rounded_once(function: Callable[..., Expression]) -> Callable[..., Expression]:
    """Return a function that computes halves in float32 and rounds its result once, as frameworks do.

    x * 0.5 * (erf(x / sqrt(2)) + 1)  becomes  half(v * 0.5 * (erf(v / sqrt(2)) + 1)), v = float(x)
    """

    @wraps(function)
    def computed(x: Expression, *others: Any, **named: Any) -> Expression:
        if x.type is not ElementType.FLOAT16:
            return function(x, *others, **named)
        return scalar.convert(function(*map(_wide, (x, *others)), **named), ElementType.FLOAT16)

    return computed


def _wide(operand: Any) -> Any:
    is_half = getattr(operand, "type", None) is ElementType.FLOAT16
    return scalar.convert(operand, ElementType.FLOAT32) if is_half else operand


def floor_remainder(a: Expression, b: Expression) -> Expression:
    """Return the remainder with the sign of ``b``."""
    rest = scalar.remainder(a, b)
    if a.type.value.startswith("u"):
        return rest
    return scalar.select(_of_other_sign(a, b), rest + b, rest)


def _of_other_sign(a: Expression, b: Expression) -> Expression:
    """Tell whether the remainder of ``a`` is not 0 and has not the sign of ``b``."""
    rest = scalar.remainder(a, b)
    signs = scalar.logical(BinaryOp.BIT_XOR, rest < 0, b < 0)
    return scalar.logical(BinaryOp.AND, scalar.different(rest, 0), signs)


def floor_quotient(a: Expression, b: Expression) -> Expression:
    """Return the quotient of integers rounded down: one less where a remainder has another sign."""
    if a.type.value.startswith("u"):
        return a / b
    return a / b - scalar.select(_of_other_sign(a, b), scalar.number(1, a.type), 0)


def shifted(x: Expression, n: Expression, *, left: bool) -> Expression:
    """Return bits moved; by as many as there are, or by less than none, all go out and only signs come in."""
    moved = scalar.bits(BinaryOp.SHIFT_LEFT if left else BinaryOp.SHIFT_RIGHT, x, n)
    fits = scalar.compare(CompareOp.LT, n, 8 * x.type.size)
    out = scalar.number(0, x.type)
    if not x.type.value.startswith("u"):
        fits = scalar.logical(BinaryOp.AND, fits, scalar.compare(CompareOp.GE, n, 0))
        signs = scalar.select(scalar.compare(CompareOp.LT, x, 0), scalar.number(-1, x.type), 0)
        out = out if left else signs
    return scalar.select(fits, moved, out)


def power(a: Expression, b: Expression) -> Expression:
    """Return ``pow(a, b)``; of integers by float64, which holds every result below 2^53."""
    if a.type.is_float:
        return scalar.power(a, b)
    wide = (scalar.convert(x, ElementType.FLOAT64) for x in (a, b))
    return scalar.convert(scalar.power(*wide), a.type)


def sign(x: Expression) -> Expression:
    """Return -1, 0 or 1; NaN stays."""
    positive = scalar.select(x > 0, scalar.number(1, x.type), 0)
    if x.type.value.startswith("u"):
        return positive
    found = scalar.select(x < 0, scalar.number(-1, x.type), positive)
    return scalar.select(is_nan(x), x, found) if x.type.is_float else found


def is_nan(x: Expression) -> Expression:
    """Tell whether ``x`` is not equal to itself."""
    return scalar.different(x, x)


def is_extreme(x: Expression, extreme: Expression) -> Expression:
    """Tell whether ``x`` is the largest or smallest of its elements, which is NaN where one of them is."""
    same = scalar.equal(x, extreme)
    return scalar.logical(BinaryOp.OR, same, is_nan(x)) if x.type.is_float else same


def is_finite(x: Expression) -> Expression:
    """Tell whether ``x - x`` is 0: of infinities and NaN it is NaN."""
    return scalar.equal(x - x, 0)


def is_infinite(x: Expression) -> Expression:
    """Tell whether ``x`` is neither finite nor NaN."""
    return scalar.logical(BinaryOp.AND, scalar.negation(is_finite(x)), scalar.negation(is_nan(x)))


def is_negative(x: Expression) -> Expression:
    """Tell whether the sign of ``x`` is set, also of -0."""
    return scalar.select(scalar.equal(x, 0), 1 / x < 0, x < 0) if x.type.is_float else x < 0


def unless_zero(x: Expression, found: Expression) -> Expression:
    """Return what is found, 0 where ``x`` is 0."""
    return scalar.select(scalar.equal(x, 0), scalar.number(0, found.type), found)


@rounded_once
def times_log(a: Expression, b: Expression) -> Expression:
    """Return ``a * log(b)``, 0 where ``a`` is 0."""
    return unless_zero(a, a * scalar.log(b))


def relu(x: Expression) -> Expression:
    """Return ``max(x, 0)``."""
    return scalar.maximum(x, 0)


@rounded_once
def softplus(x: Expression) -> Expression:
    """Return ``log(exp(x) + 1)``, without overflow, and right where it is small."""
    return scalar.maximum(x, 0) + log1p(scalar.exp(-scalar.absolute(x)))


@rounded_once
def expm1(x: Expression) -> Expression:
    """Return ``exp(x) - 1`` as ``2 t / (1 - t)`` with ``t = tanh(x / 2)`` near 0, where nothing cancels."""
    half = scalar.tanh(x * 0.5)
    return scalar.select(scalar.absolute(x) < 0.5, half * 2 / (1 - half), scalar.exp(x) - 1)


@rounded_once
def log1p(x: Expression) -> Expression:
    """Return ``log(1 + x)`` as ``2 atanh(x / (2 + x))`` by its series near 0, where nothing cancels."""
    s = x / (x + 2)
    total: Expression = scalar.number(1 / 15, x.type)
    for n in (13, 11, 9, 7, 5, 3, 1):
        total = total * scalar.square(s) + 1 / n
    return scalar.select(scalar.absolute(x) < 0.25, s * total * 2, scalar.log(x + 1))


def leaky(x: Expression, slope: Expression | float) -> Expression:
    """Return ``x``, times the slope where it is negative."""
    return scalar.select(x < 0, x * slope, x)


@rounded_once
def elu(x: Expression, alpha: float, scale: float = 1.0, inner: float = 1.0) -> Expression:
    """Return ``scale * (x > 0 ? x : alpha * (exp(x / inner) - 1))``."""
    negative = expm1(x if inner == 1.0 else x / inner) * alpha
    found = scalar.select(x > 0, x, negative)
    return found if scale == 1.0 else found * scale


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def selu(x: Expression) -> Expression:
    """Return ELU with the two numbers that keep mean 0 and variance 1."""
    return elu(x, SELU_ALPHA, SELU_SCALE)


def clipped(x: Expression, low: Expression | float, high: Expression | float) -> Expression:
    """Return ``min(max(x, low), high)``."""
    return scalar.minimum(scalar.maximum(x, low), high)


@rounded_once
def silu(x: Expression) -> Expression:
    """Return ``x * sigmoid(x)``."""
    return x * scalar.sigmoid(x)


@rounded_once
def mish(x: Expression) -> Expression:
    """Return ``x * tanh(softplus(x))``."""
    return x * scalar.tanh(softplus(x))


@rounded_once
def softsign(x: Expression) -> Expression:
    """Return ``x / (|x| + 1)``."""
    return x / (scalar.absolute(x) + 1)


@rounded_once
def sigmoid_gradient(g: Expression, y: Expression) -> Expression:
    """Return ``g * y * (1 - y)``, of the result ``y``."""
    return g * y * (1 - y)


@rounded_once
def tanh_gradient(g: Expression, y: Expression) -> Expression:
    """Return ``g * (1 - y * y)``, of the result ``y``."""
    return g * (1 - scalar.square(y))


@rounded_once
def hard_sigmoid(x: Expression, alpha: float, beta: float) -> Expression:
    """Return ``max(0, min(1, alpha * x + beta))``."""
    return scalar.maximum(scalar.minimum(x * alpha + beta, 1), 0)


@rounded_once
def gelu(x: Expression, *, tanh: bool) -> Expression:
    """Return ``x * Phi(x)``, or its approximation by tanh."""
    if not tanh:
        return x * 0.5 * (scalar.erf(x / math.sqrt(2)) + 1)
    inner = (x + scalar.square(x) * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * 0.5 * (scalar.tanh(inner) + 1)


@rounded_once
def asinh(x: Expression) -> Expression:
    """Return the inverse of sinh: odd, so that nothing cancels."""
    a = scalar.absolute(x)
    square = scalar.square(a)
    found = _or_log(a, log1p(a + square / (scalar.sqrt(square + 1) + 1)))
    return scalar.select(x < 0, -found, found)


@rounded_once
def acosh(x: Expression) -> Expression:
    """Return the inverse of cosh; NaN below 1, from the first root."""
    above = x - 1
    return _or_log(x, log1p(above + scalar.sqrt(above) * scalar.sqrt(above + 2)))


def _or_log(x: Expression, found: Expression) -> Expression:
    """Return ``log(2 x)`` for numbers whose square may overflow, and for which it is the same."""
    large = 1 / math.sqrt(np.finfo(x.type.value).eps)
    return scalar.select(x > large, scalar.log(x) + math.log(2), found)


@rounded_once
def atanh(x: Expression) -> Expression:
    """Return the inverse of tanh: odd, so that nothing cancels."""
    a = scalar.absolute(x)
    found = log1p(a * 2 / (1 - a)) * 0.5
    return scalar.select(x < 0, -found, found)


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


def as_small_float(x: Expression, form: FloatFormat, saturate: bool) -> Expression:
    """Return a float32 or float64 rounded to nearest even among the values of a narrow format.

    What lies beyond the largest is that where it saturates, else infinite, or NaN where there is no infinity.
    """
    kind, size = x.type, scalar.absolute(x)
    step: Expression = scalar.number(form.step(form.lowest), kind)
    for exponent in range(form.lowest + 1, form.highest + 1):
        reached = scalar.compare(CompareOp.GE, size, scalar.number(2.0**exponent, kind))
        step = scalar.select(reached, scalar.number(form.step(exponent), kind), step)
    found = scalar.unary(UnaryOp.ROUND, x / step) * step
    if not form.has_negative_zero:
        found = scalar.select(scalar.equal(found, 0), scalar.number(0, kind), found)
    beyond = form.largest if saturate else form.overflow
    low = scalar.compare(CompareOp.LT, found, scalar.number(-form.largest, kind))
    high = scalar.compare(CompareOp.GT, found, scalar.number(form.largest, kind))
    found = scalar.select(low, scalar.number(-beyond, kind), found)
    return scalar.select(high, scalar.number(beyond, kind), found)
