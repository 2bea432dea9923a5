"""Scalar functions with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Callable

from polyloom.ir.expressions import (
    Assign,
    Binary,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Step,
    Unary,
    When,
    While,
    walk,
)


def rebuilt(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """Return the expression with ``change(part)`` in place of every part for which that is not None.

    Outer parts are asked first; what replaces a part is not looked into.
    """
    replaced = change(expression)
    if replaced is not None:
        return replaced

    def inner(part: Expression) -> Expression:
        return rebuilt(part, change)

    match expression:
        case Read() | Constant() | Iterator() | ParameterValue() | Local():
            return expression
        case Procedure(body=body, result=result):
            return Procedure(rebuilt_steps(body, inner), result)
        case Unary(op=op, operand=a):
            return Unary(op, inner(a))
        case Binary(op=op, left=a, right=b):
            return Binary(op, inner(a), inner(b))
        case Compare(op=op, left=a, right=b):
            return Compare(op, inner(a), inner(b))
        case Select(condition=c, then=a, otherwise=b):
            return Select(inner(c), inner(a), inner(b))
        case Convert(type=kind, operand=a):
            return Convert(kind, inner(a))


def rebuilt_steps(steps: tuple[Step, ...], change: Callable[[Expression], Expression]) -> tuple[Step, ...]:
    """Return steps with ``change`` of each of their expressions."""

    def rebuilt_step(step: Step) -> Step:
        match step:
            case Assign(local=local, value=value):
                return Assign(local, change(value))
            case When(condition=condition, body=body, otherwise=otherwise):
                inside = (rebuilt_steps(block, change) for block in (body, otherwise))
                return When(change(condition), *inside)
            case While(condition=condition, body=body):
                return While(change(condition), rebuilt_steps(body, change))

    return tuple(map(rebuilt_step, steps))


def with_reads(expression: Expression, positions: Callable[[int], int]) -> Expression:
    """Return the expression with other numbers for its reads."""
    return rebuilt(expression, lambda e: Read(positions(e.position), e.type) if isinstance(e, Read) else None)


def with_value(expression: Expression, position: int, value: Expression) -> Expression:
    """Return the expression with a value in place of one of its reads."""
    return rebuilt(expression, lambda e: value if isinstance(e, Read) and e.position == position else None)


Leaf = Read | Iterator | Constant | ParameterValue


def with_leaves(expression: Expression, leaf: Callable[[Leaf], Expression]) -> Expression:
    """Replace every read, iterator, constant and parameter by what ``leaf`` gives for it."""
    return rebuilt(expression, lambda part: leaf(part) if isinstance(part, Leaf) else None)


def read_positions(*expressions: Expression | None) -> tuple[int, ...]:
    """Return the positions that expressions read, in increasing order."""
    parts = (part for e in expressions if e is not None for part in walk(e))
    return tuple(sorted({part.position for part in parts if isinstance(part, Read)}))
