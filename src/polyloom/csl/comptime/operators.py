"""Operators on values that are known."""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable
from typing import Any

from polyloom.csl import types, values
from polyloom.csl.comptime.conversion import convert
from polyloom.csl.comptime.faults import fault
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

MOST_BITS = 4096
"""The most bits of a ``comptime_int``."""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": python.eq,
    "!=": python.ne,
    "<": python.lt,
    ">": python.gt,
    "<=": python.le,
    ">=": python.ge,
}


def unary(operator: str, value: Value, span: Span) -> Value:
    """Return ``-a``, ``!a`` or ``~a``. Errors: ``csl-operand``."""
    type_ = value.type
    if isinstance(value, values.Scalar):
        if operator == "!" and type_ == types.BOOL:
            return values.boolean(not value.value)
        if operator == "-" and types.is_number(type_):
            return _number(type_, -value.value, span)
        if operator == "~" and isinstance(type_, types.Integer):
            return _number(type_, ~value.value, span)
        if operator == "~" and type_ == types.COMPTIME_INT:
            return values.integer(~value.value)
    wanted = {"!": "`bool`", "-": "a number", "~": "an integer"}[operator]
    raise fault(
        "csl-operand", f"`{operator}` takes {wanted}, this is `{type_}`", span, helps=[f"give it {wanted}"]
    )


def peer(a: Type, b: Type) -> Type | None:
    """Return the type in which two operands meet, or ``None``.

    Literals take the other operand's type; nothing else converts.
    """
    if a == b:
        return a
    for one, other in ((a, b), (b, a)):
        if one == types.COMPTIME_INT and types.is_number(other):
            return other
        if one == types.COMPTIME_FLOAT and isinstance(other, types.Float):
            return other
        if one == types.ENUM_LITERAL and isinstance(other, types.Enum):
            return other
    return None


def binary(operator: str, left: Value, right: Value, span: Span) -> Value:
    """Return ``left operator right`` (not ``and`` and ``or``).

    Integers of a fixed width wrap; division rounds towards zero, and a remainder has the dividend's sign.
    Errors: ``csl-operand``, ``csl-zero``, ``csl-range``.
    """
    if operator in ("<<", ">>"):
        return _shift(operator, left, right, span)
    meeting = peer(left.type, right.type)
    if meeting is None:
        raise operands(operator, left.type, right.type, span)
    a, b = convert(left, meeting, span), convert(right, meeting, span)
    if operator in _COMPARISONS:
        return _compared(operator, a, b, span)
    if not (isinstance(a, values.Scalar) and isinstance(b, values.Scalar) and types.is_number(meeting)):
        raise operands(operator, left.type, right.type, span)
    if isinstance(a.value, float):
        if operator in ("&", "|", "^", "%"):
            raise operands(operator, left.type, right.type, span)
        return _number(meeting, _float_result(operator, a.value, b.value), span)
    return _number(meeting, _integer_result(operator, a.value, b.value, span), span)


def operands(operator: str, left: Type, right: Type, span: Span) -> Exception:
    """Return the error of two types that an operator does not take."""
    helps = ["convert one of them with `@as`"] if types.is_number(left) and types.is_number(right) else []
    return fault(
        "csl-operand",
        f"`{operator}` does not take `{left}` and `{right}`",
        span,
        helps=helps or ["give both operands one type that has this operator"],
    )


def _number(type_: Type, value: Any, span: Span) -> Value:
    if isinstance(type_, types.Integer):
        return values.Scalar(type_, type_.wrapped(value))
    if isinstance(value, float):
        return values.Scalar(type_, values.rounded(value, type_))
    if value.bit_length() > MOST_BITS:
        raise fault(
            "csl-range",
            f"a `comptime_int` of more than {MOST_BITS} bits",
            span,
            helps=["use numbers that a machine can hold"],
        )
    return values.Scalar(type_, value)


def _compared(operator: str, a: Value, b: Value, span: Span) -> Value:
    if isinstance(a, values.Scalar) and isinstance(b, values.Scalar):
        if types.is_number(a.type) or operator in ("==", "!="):
            return values.boolean(_COMPARISONS[operator](a.value, b.value))
    elif operator in ("==", "!="):
        return values.boolean(_COMPARISONS[operator](a, b))
    elif isinstance(a, values.EnumValue) and isinstance(b, values.EnumValue):
        return values.boolean(_COMPARISONS[operator](a.value, b.value))
    raise operands(operator, a.type, b.type, span)


def _shift(operator: str, left: Value, right: Value, span: Span) -> Value:
    if not (_is_integer(left) and _is_integer(right)):
        raise operands(operator, left.type, right.type, span)
    assert isinstance(left, values.Scalar)
    assert isinstance(right, values.Scalar)
    most = left.type.bits - 1 if isinstance(left.type, types.Integer) else MOST_BITS
    if not 0 <= right.value <= most:
        raise fault(
            "csl-range",
            f"`{left.type}` is shifted by {right.value}",
            span,
            helps=[f"shift it by 0 to {most}"],
        )
    result = left.value << right.value if operator == "<<" else left.value >> right.value
    return _number(left.type, result, span)


def _is_integer(value: Value) -> bool:
    return isinstance(value.type, types.Integer) or value.type == types.COMPTIME_INT


def _float_result(operator: str, a: float, b: float) -> float:
    if operator == "/":
        if b == 0.0:
            return (
                math.nan if a == 0.0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
            )
        return a / b
    return a + b if operator == "+" else a - b if operator == "-" else a * b


def _integer_result(operator: str, a: int, b: int, span: Span) -> int:
    if operator in ("/", "%"):
        if b == 0:
            raise fault("csl-zero", "division by zero", span, helps=["divide by another number"])
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - quotient * b
    functions: dict[str, Callable[[int, int], int]] = {
        "+": python.add,
        "-": python.sub,
        "*": python.mul,
        "&": python.and_,
        "|": python.or_,
        "^": python.xor,
    }
    return functions[operator](a, b)
