"""When a missing zero changes nothing: whether a sparse tensor may trigger a statement.

Source: docs/semantics.md. A statement may run for the elements that arrive alone if ``f(0, ...)`` is the
value that its output starts with. Data are finite, so zero times anything is zero.
"""

from __future__ import annotations

from polyloom.ir.evaluation.programs import neutral
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
    UnaryOp,
)
from polyloom.ir.program import Combine, Statement

Number = float | int


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
    value: Number = neutral(statement.reduction, statement.expression.type).item()
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
        case Iterator() | ParameterValue():
            return None
        case Unary(op=op, operand=operand):
            return _unary(op, value_at_zero(operand, read))
        case Convert(operand=operand):
            return _exact_small(value_at_zero(operand, read))
        case Binary(op=op, left=left, right=right):
            return _binary(op, value_at_zero(left, read), value_at_zero(right, read))
        case Compare(op=comparison, left=left, right=right):
            return _compare(comparison, value_at_zero(left, read), value_at_zero(right, read))
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = value_at_zero(condition, read)
            sides = value_at_zero(then, read), value_at_zero(otherwise, read)
            if chosen is None:
                return sides[0] if sides[0] == sides[1] else None
            return sides[0] if chosen else sides[1]


_ZERO_AT_ZERO = frozenset(
    {
        UnaryOp.NEGATE,
        UnaryOp.SQRT,
        UnaryOp.TANH,
        UnaryOp.ERF,
        UnaryOp.ABS,
        UnaryOp.FLOOR,
        UnaryOp.CEIL,
        UnaryOp.ROUND,
        UnaryOp.TRUNC,
        UnaryOp.SIN,
        UnaryOp.TAN,
        UnaryOp.ASIN,
        UnaryOp.ATAN,
        UnaryOp.SINH,
        UnaryOp.CBRT,
    }
)
_ONE_AT_ZERO = frozenset({UnaryOp.EXP, UnaryOp.EXP2, UnaryOp.COS, UnaryOp.COSH})


def _unary(op: UnaryOp, value: Number | None) -> Number | None:
    if value is None:
        return None
    if value == 0 and op in _ZERO_AT_ZERO:
        return 0
    if op is UnaryOp.NEGATE:
        return -value
    return 1 if op in _ONE_AT_ZERO and value == 0 else None


def _exact_small(value: Number | None) -> Number | None:
    return value if value is not None and value == int(value) and abs(value) <= 2048 else None


def _binary(op: BinaryOp, left: Number | None, right: Number | None) -> Number | None:
    if op is BinaryOp.MULTIPLY and (left == 0 or right == 0):
        return 0
    if left is None or right is None:
        return None
    match op:
        case BinaryOp.ADD:
            return _exact_small(left + right)
        case BinaryOp.SUBTRACT:
            return _exact_small(left - right)
        case BinaryOp.MULTIPLY:
            return _exact_small(left * right)
        case BinaryOp.MAXIMUM:
            return max(left, right)
        case BinaryOp.MINIMUM:
            return min(left, right)
        case BinaryOp.DIVIDE:
            return 0 if left == 0 and right != 0 else None
        case _:
            return None


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
