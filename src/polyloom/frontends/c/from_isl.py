"""Affine functions as expressions, for values that no text of the source says."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import islpy as isl

from polyloom.frontends.c.convert import converted
from polyloom.frontends.c.extents import written
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    ParameterValue,
    Select,
)
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops_tree import IntExpression, Name, Number, Operation

Types = Callable[[str], ElementType]
_WIDE = ElementType.INT64


def expression_of(function: isl.PwAff, types: Types, element: ElementType) -> Expression:
    """Return the value of an affine function in a type; it is computed in 64 bits.

    ``types``: those of the parameters. KeyError for operators that the IR has not.
    """
    return converted(_value(written(function), types), element)


def _value(expression: IntExpression, types: Types) -> Expression:
    match expression:
        case Number(value=value):
            return Constant(value, _WIDE)
        case Name(name=name):
            return converted(ParameterValue(name, types(name)), _WIDE)
        case Operation(operator="?", operands=(condition, then, otherwise)):
            return Select(_value(condition, types), _value(then, types), _value(otherwise, types))
        case Operation(operator="-", operands=(only,)):
            return Binary(BinaryOp.SUBTRACT, Constant(0, _WIDE), _value(only, types))
        case Operation(operator="floor", operands=(dividend, divisor)):
            return _floor(_value(dividend, types), _value(divisor, types))
        case Operation(operator=operator, operands=operands):
            return reduce(lambda a, b: _operation(operator, a, b), [_value(o, types) for o in operands])


def _operation(operator: str, left: Expression, right: Expression) -> Expression:
    if operator in _COMPARISONS:
        return Compare(_COMPARISONS[operator], left, right)
    return Binary(_OPERATORS[operator], left, right)


def _floor(dividend: Expression, divisor: Expression) -> Expression:
    """Return the quotient, rounded down; isl's divisors are positive."""
    quotient = Binary(BinaryOp.DIVIDE, dividend, divisor)
    rest = Binary(BinaryOp.REMAINDER, dividend, divisor)
    below = Binary(BinaryOp.SUBTRACT, quotient, Constant(1, _WIDE))
    return Select(Compare(CompareOp.LT, rest, Constant(0, _WIDE)), below, quotient)


_COMPARISONS = {op.value: op for op in CompareOp}
_OPERATORS = {
    "+": BinaryOp.ADD,
    "-": BinaryOp.SUBTRACT,
    "*": BinaryOp.MULTIPLY,
    "/": BinaryOp.DIVIDE,
    "%": BinaryOp.REMAINDER,
    "min": BinaryOp.MINIMUM,
    "max": BinaryOp.MAXIMUM,
    "and": BinaryOp.AND,
    "or": BinaryOp.OR,
}
