"""Conversions between C's arithmetic types, written into expressions; constants are converted at once.

Source: ISO C99, 6.3.1.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from polyloom.frontends.c.scope.types import Scalar, common, promoted, value_range
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Select,
    Unary,
    UnaryOp,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType

BOOL = ElementType.BOOL
INT32 = ElementType.INT32


def converted(expression: Expression, element: ElementType) -> Expression:
    """Return the expression's value in another type; a truth value becomes 1 or 0."""
    if expression.type is element:
        return expression
    if expression.type is BOOL:
        return Select(expression, Constant(1, element), Constant(0, element))
    if isinstance(expression, Constant):
        return constant_as(expression, element)
    return Convert(element, expression)


def stored(expression: Expression, target: Scalar) -> Expression:
    """Return the expression's value as an object of a type holds it. ``_Bool`` holds whether it is not 0."""
    if target.boolean:
        return converted(truth_of(expression), target.element)
    return converted(expression, target.element)


def constant_as(constant: Constant, element: ElementType) -> Constant:
    """Return a number as another type holds it."""
    if not element.is_float:
        whole = int(constant.value) if isfinite(constant.value) else 0  # C says nothing of the others
        return Constant(wrapped(whole, element), element)
    value = float(constant.value)
    if element is ElementType.FLOAT64:
        return Constant(value, element)
    with np.errstate(over="ignore"):
        return Constant(float(np.asarray(value, element.dtype)), element)


def wrapped(value: int, element: ElementType) -> int:
    """Return the value modulo 2 to the type's bits, as the type holds it."""
    low, high = value_range(element)
    return (value - low) % (high - low + 1) + low


def arithmetic(expression: Expression) -> Expression:
    """Return an operand after integer promotion. Source: C99, 6.3.1.1."""
    return converted(expression, promoted(expression.type))


def operation(op: BinaryFunction, left: Expression, right: Expression) -> Expression:
    """Return ``left op right`` in their common type; shifts have the left one's."""
    if op in (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT):
        first = arithmetic(left)
        return Binary(op, first, converted(right, first.type))
    element = common(left.type, right.type)
    return Binary(op, converted(left, element), converted(right, element))


def comparison(op: CompareOp, left: Expression, right: Expression) -> Expression:
    """Return ``left op right``, a truth value, compared in their common type."""
    element = common(left.type, right.type)
    return Compare(op, converted(left, element), converted(right, element))


def negated(expression: Expression) -> Expression:
    """Return ``-expression``; of a constant, the constant."""
    operand = arithmetic(expression)
    if isinstance(operand, Constant):
        value = -operand.value
        return Constant(value if operand.type.is_float else wrapped(int(value), operand.type), operand.type)
    return Unary(UnaryOp.NEGATE, operand)


def truth_of(expression: Expression) -> Expression:
    """Return whether a value is not 0."""
    if expression.type is BOOL:
        return expression
    match expression:
        case Select(condition=condition, then=Constant(value=1), otherwise=Constant(value=0)):
            return condition
        case _:
            return Compare(CompareOp.NE, expression, Constant(0, expression.type))


def no(expression: Expression) -> Expression:
    """Return the opposite of a truth value."""
    match expression:
        case Unary(op=UnaryOp.NOT, operand=operand):
            return operand
        case Compare(op=op, left=left, right=right) if op.is_equality or not left.type.is_float:
            return Compare(op.opposite, left, right)
        case _:
            return Unary(UnaryOp.NOT, expression)


def both(left: Expression | None, right: Expression | None) -> Expression | None:
    """Return ``left and right``; None is no condition."""
    if left is None or right is None:
        return right if left is None else left
    return Binary(BinaryOp.AND, left, right)
