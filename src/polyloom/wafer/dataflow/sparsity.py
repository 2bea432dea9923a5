"""When a missing zero changes nothing: whether a sparse tensor may trigger a statement.

Source: docs/semantics.md. A statement may run for the elements that arrive alone if ``f(0, ...)`` is the
value that its output starts with. Data are finite, so zero times anything is zero.
"""

from __future__ import annotations

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
from polyloom.ir.reductions import Combine, neutral
from polyloom.ir.scalar_functions.known_values import Number, exact_small
from polyloom.ir.statements import Statement


def initial_value(statement: Statement, sparse_read: int | None) -> Number | None:
    """Return the value that every element of the output starts with.

    For a reduction the neutral element; for a plain ``=`` that a sparse stream (read number
    ``sparse_read``) triggers, the constant that the statement gives for a zero; None where the output
    needs no initialisation.
    """
    if statement.reduction is not Combine.CONCATENATE:
        return _start(statement)
    return None if sparse_read is None else value_at_zero(statement.expression, sparse_read)


def _start(statement: Statement) -> Number:
    """Return the value with which a reduction starts, as the evaluator has it."""
    value: Number = neutral(statement.reduction, statement.expression.type)
    return value


def zeros_may_be_dropped(statement: Statement, read: int) -> bool:
    """Whether instances whose read number ``read`` gives zero may be left out."""
    value = value_at_zero(statement.expression, read)
    if statement.reduction is Combine.CONCATENATE:
        return value is not None
    return value is not None and value == _start(statement)


def value_at_zero(expression: Expression, read: int) -> Number | None:
    """Return the constant that the expression is where one read gives zero; None where it is none."""
    match expression:
        case Read(position=position):
            return 0 if position == read else None
        case Constant(value=value):
            return value
        case Iterator() | ParameterValue() | Local() | Procedure():
            return None
        case Unary(op=op, operand=operand):
            known = value_at_zero(operand, read)
            return None if known is None else op.known(known)
        case Convert(operand=operand):
            return exact_small(value_at_zero(operand, read))
        case Binary(op=op, left=left, right=right):
            return op.known(value_at_zero(left, read), value_at_zero(right, read))
        case Compare(op=comparison, left=left, right=right):
            return _compare(comparison, value_at_zero(left, read), value_at_zero(right, read))
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = value_at_zero(condition, read)
            sides = value_at_zero(then, read), value_at_zero(otherwise, read)
            if chosen is None:
                return sides[0] if sides[0] == sides[1] else None
            return sides[0] if chosen else sides[1]


def _compare(op: CompareOp, left: Number | None, right: Number | None) -> Number | None:
    if left is None or right is None:
        return None
    outcomes = {
        CompareOp.LT: left < right,
        CompareOp.LE: left <= right,
        CompareOp.GT: left > right,
        CompareOp.GE: left >= right,
        CompareOp.EQ: left == right,
        CompareOp.NE: left != right,
    }
    return int(outcomes[op])
