"""Expressions with other leaves, and integer expressions as expressions of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
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
    Read,
    Select,
    Unary,
    walk,
)
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops_tree import IntExpression, Name, Number, Operation

Leaf = Read | Iterator | Constant | ParameterValue


def with_leaves(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """Replace every read, iterator, constant and parameter by what ``leaf`` gives for it."""

    def inside(part: Expression) -> Expression:
        return with_leaves(part, leaf)

    match expression:
        case Unary(operand=x) | Convert(operand=x):
            return replace(expression, operand=inside(x))
        case Binary(left=a, right=b) | Compare(left=a, right=b):
            return replace(expression, left=inside(a), right=inside(b))
        case Select(condition=c, then=a, otherwise=b):
            return Select(inside(c), inside(a), inside(b))
        case _:
            return leaf(expression)


def read_positions(expression: Expression) -> tuple[int, ...]:
    """Return the positions that an expression reads, in increasing order."""
    return tuple(sorted({e.position for e in walk(expression) if isinstance(e, Read)}))


def moved_reads(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """Give every read its new position."""
    return with_leaves(
        expression, lambda leaf: Read(positions[leaf.position], leaf.type) if isinstance(leaf, Read) else leaf
    )


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


def integer_expression(value: IntExpression, iterators: Mapping[str, int], type_: ElementType) -> Expression:
    """Return an integer expression in the IR; ``iterators`` gives the dimension of a name that is one."""

    def inside(part: IntExpression) -> Expression:
        return integer_expression(part, iterators, type_)

    match value:
        case Number(value=number):
            return Constant(number, type_)
        case Name(name=name):
            found = iterators.get(name)
            return ParameterValue(name, type_) if found is None else Iterator(found, type_)
        case Operation(operator="-", operands=(x,)):
            return Binary(BinaryOp.SUBTRACT, Constant(0, type_), inside(x))
        case Operation(operator="floor", operands=(a, b)):
            return _floor(inside(a), inside(b))
        case Operation(operator="?", operands=(c, a, b)):
            return Select(inside(c), inside(a), inside(b))
        case Operation(operator=operator, operands=operands) if operator in _ARITHMETIC:
            return reduce(lambda a, b: Binary(_ARITHMETIC[operator], a, b), map(inside, operands))
        case Operation(operator=operator, operands=(a, b)):
            return Compare(CompareOp(operator), inside(a), inside(b))
        case _:
            raise AssertionError(value)


def _floor(a: Expression, b: Expression) -> Expression:
    """Return ``floor(a / b)`` for a positive ``b``: ``(a - ((a % b) + b) % b) / b``."""
    remainder = Binary(BinaryOp.REMAINDER, a, b)
    positive = Binary(BinaryOp.REMAINDER, Binary(BinaryOp.ADD, remainder, b), b)
    return Binary(BinaryOp.DIVIDE, Binary(BinaryOp.SUBTRACT, a, positive), b)
