"""Scalar functions that are integers, as integer expressions: subscripts, conditions."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    ParameterValue,
    Select,
)
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def integer_of(value: Expression, iterators: Sequence[IntExpression]) -> IntExpression | None:
    """Return a scalar function of iterators and parameters alone as an integer expression; else None.

    It is the same as long as nothing in it wraps around. What isl has no word for is None, too.
    """
    match value:
        case Constant(value=int(number)):
            return Number(number)
        case Iterator(dimension=k):
            return iterators[k]
        case ParameterValue(name=name):
            return Name(name)
        case Select(condition=c, then=a, otherwise=b):
            return _operation("?", (c, a, b), iterators)
        case Compare(op=op, left=a, right=b) if op is not CompareOp.NE:
            return _operation(op.value, (a, b), iterators)
        case Binary(op=op, left=a, right=b) if op in _LINEAR or _is_linear(op, a, b):
            return _operation(op.name, (a, b), iterators)
        case _:
            return None


_LINEAR = {
    BinaryOp.ADD,
    BinaryOp.SUBTRACT,
    BinaryOp.MINIMUM,
    BinaryOp.MAXIMUM,
    BinaryOp.AND,
    BinaryOp.OR,
}


def _is_linear(op: BinaryFunction, a: Expression, b: Expression) -> bool:
    match op:
        case BinaryOp.MULTIPLY:
            return isinstance(a, Constant) or isinstance(b, Constant)
        case BinaryOp.DIVIDE | BinaryOp.REMAINDER:
            return isinstance(b, Constant) and b.value > 0
        case _:
            return False


def _operation(
    operator: str, operands: Sequence[Expression], iterators: Sequence[IntExpression]
) -> IntExpression | None:
    values = [value for o in operands if (value := integer_of(o, iterators)) is not None]
    return Operation(operator, tuple(values)) if len(values) == len(operands) else None
