"""Expressions with other leaves, and integer expressions as expressions of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

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
    Select,
)
from polyloom.ir.rebuild import with_reads
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import UNSIGNED
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def moved_reads(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """Give every read its new position."""
    return with_reads(expression, positions.__getitem__)


_ARITHMETIC = {
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


def integer_expression(
    value: IntExpression, iterators: Mapping[str, int], type_: ElementType, *, counted: bool = False
) -> Expression:
    """Return an integer expression in the IR; ``iterators`` gives the dimension of a name that is one.

    ``counted``: iterators are never below zero. What is divided or compared on the way to an unsigned number
    may be negative, so it has a sign.
    """
    signed = type_ in UNSIGNED and not _is_linear(value)
    wide = ElementType.INT64 if signed else type_

    def named(name: str) -> Expression:
        found = iterators.get(name)
        return ParameterValue(name, wide) if found is None else Iterator(found, wide)

    found = named_integers(value, named, wide, counted=counted)
    return Convert(type_, found) if signed else found


def _is_linear(value: IntExpression) -> bool:
    """Whether a value is made of sums and products, right modulo a number where their operands are."""
    match value:
        case Operation(operator="+" | "-" | "*", operands=operands):
            return all(map(_is_linear, operands))
        case _:
            return isinstance(value, (Name, Number))


def named_integers(
    value: IntExpression, named: Callable[[str], Expression], type_: ElementType, *, counted: bool = False
) -> Expression:
    """Return an integer expression in the IR; ``named`` gives what a name stands for, in that type.

    ``counted``: iterators are never below zero.
    """

    def inside(part: IntExpression) -> Expression:
        return named_integers(part, named, type_, counted=counted)

    match value:
        case Number(value=number):
            return Constant(number, type_)
        case Name(name=name):
            return named(name)
        case Operation(operator="-", operands=(x,)):
            return Binary(BinaryOp.SUBTRACT, Constant(0, type_), inside(x))
        case Operation(operator="floor", operands=(a, b)):
            return _floor(inside(a), inside(b), counted=counted)
        case Operation(operator="?", operands=(c, a, b)):
            return Select(inside(c), inside(a), inside(b))
        case Operation(operator=operator, operands=operands) if operator in _ARITHMETIC:
            return reduce(lambda a, b: Binary(_ARITHMETIC[operator], a, b), map(inside, operands))
        case Operation(operator=operator, operands=(a, b)):
            return Compare(CompareOp(operator), inside(a), inside(b))
        case _:
            raise AssertionError(value)


def _floor(a: Expression, b: Expression, *, counted: bool) -> Expression:
    """Return ``floor(a / b)`` for a positive ``b``: ``(a - ((a % b) + b) % b) / b``, or just ``a / b``."""
    if counted and _is_counted(a):
        return Binary(BinaryOp.DIVIDE, a, b)
    remainder = Binary(BinaryOp.REMAINDER, a, b)
    positive = Binary(BinaryOp.REMAINDER, Binary(BinaryOp.ADD, remainder, b), b)
    return Binary(BinaryOp.DIVIDE, Binary(BinaryOp.SUBTRACT, a, positive), b)


def _is_counted(value: Expression) -> bool:
    """Whether a value made of iterators that are never below zero is not, either."""
    match value:
        case Iterator():
            return True
        case Constant(value=number):
            return number >= 0
        case Binary(op=op, left=a, right=b) if op in _GROWING:
            return _is_counted(a) and _is_counted(b)
        case _:
            return False


_GROWING = {
    BinaryOp.ADD,
    BinaryOp.MULTIPLY,
    BinaryOp.DIVIDE,
    BinaryOp.REMAINDER,
    BinaryOp.MINIMUM,
    BinaryOp.MAXIMUM,
}
