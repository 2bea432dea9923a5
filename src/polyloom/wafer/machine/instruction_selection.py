"""Whether a statement's work at a point is one SIMD instruction, and with which operands."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Constant,
    Convert,
    Expression,
    Read,
    Unary,
    UnaryOp,
    walk,
)
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType
from polyloom.wafer.machine.instructions import Instruction, instructions

ACCUMULATOR = -1
"""The position that stands for the written element where an expression reads it."""


@dataclass(frozen=True)
class Match:
    """An instruction and its operands.

    ``operands[k]`` is the expression for the instruction's source k: a ``Read`` of local memory (of the
    statement's read with that position, or of the written element at ``ACCUMULATOR``), or an expression
    that is the same for all instances: a scalar.
    """

    instruction: Instruction
    operands: tuple[Expression, ...]


def work_at_point(statement: Statement) -> Expression:
    """Return what is assigned to the written element, in terms of the reads and its old value."""
    operator, expression = statement.reduction.operator, with_inverses(statement.expression)
    if operator is None:
        return expression
    return Binary(operator, Read(ACCUMULATOR, expression.type), expression)


def with_inverses(expression: Expression) -> Expression:
    """Write divisions by powers of two as products, which give the same bits: ``x / 8`` is ``x * 0.125``."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Binary(op=BinaryOp.DIVIDE, left=a, right=Constant(value=value)):
                inverse = _exact_inverse(value, part.type)
                if inverse is not None:
                    return Binary(BinaryOp.MULTIPLY, with_inverses(a), Constant(inverse, part.type))
        return None

    return rebuilt(expression, change)


def match_instruction(statement: Statement, scalars: frozenset[int]) -> Match | None:
    """Find the instruction that does a statement's work at a point; None where there is none.

    ``scalars``: positions of the reads whose value is the same for all instances (the arriving
    element; tensors of rank 0).

    Source: dtg_codegen, Sec. 5, condition 1.
    """
    for work in spellings(work_at_point(statement)):
        for entry in instructions():
            operands = _unify(entry, work, scalars)
            if operands is not None:
                return Match(entry, operands)
    return None


def is_memory(expression: Expression, scalars: frozenset[int]) -> bool:
    """Whether an expression is a plain read of local memory, and no scalar."""
    return isinstance(expression, Read) and expression.position not in scalars


def is_scalar(expression: Expression, scalars: frozenset[int]) -> bool:
    """Whether an expression is the same for all instances."""
    return all(not isinstance(n, Read) or n.position in scalars for n in walk(expression))


def spellings(work: Expression) -> Iterator[Expression]:
    """Yield the work and its other forms that give the same bits.

    A minimum is the negated maximum of the negated.
    """
    yield work
    match work:
        case Binary(op=BinaryOp.SUBTRACT, left=a, right=Binary(op=BinaryOp.MULTIPLY, left=b, right=c)):
            yield Binary(BinaryOp.ADD, a, Binary(BinaryOp.MULTIPLY, b, Unary(UnaryOp.NEGATE, c)))
            yield Binary(BinaryOp.ADD, a, Binary(BinaryOp.MULTIPLY, Unary(UnaryOp.NEGATE, b), c))
        case Binary(op=BinaryOp.ADD, left=a, right=Unary(op=UnaryOp.NEGATE, operand=b)):
            yield Binary(BinaryOp.SUBTRACT, a, b)
        case Binary(op=BinaryOp.MINIMUM, left=a, right=b) if work.type.is_float:
            negated = Binary(BinaryOp.MAXIMUM, Unary(UnaryOp.NEGATE, a), Unary(UnaryOp.NEGATE, b))
            yield Unary(UnaryOp.NEGATE, negated)


def _exact_inverse(value: float | int, element: ElementType) -> float | None:
    """Return 1 / value where the type holds both exactly: the product then rounds like the quotient."""
    if not element.is_float or value == 0 or abs(math.frexp(value)[0]) != 0.5:
        return None
    inverse = 1 / value
    return inverse if element.dtype.type(value) == value and element.dtype.type(inverse) == inverse else None


def _unify(entry: Instruction, work: Expression, scalars: frozenset[int]) -> tuple[Expression, ...] | None:
    if work.type is not entry.destination:
        return None
    for found in bindings(entry.body, work):
        operands = tuple(found[k] for k in range(len(entry.sources)))
        if _legal(entry, operands, scalars):
            return operands
    return None


def _legal(entry: Instruction, operands: tuple[Expression, ...], scalars: frozenset[int]) -> bool:
    """Whether every operand is memory or scalar as its place allows, at least one of them memory."""
    for k, operand in enumerate(operands):
        scalar = is_scalar(operand, scalars)
        if not scalar and (k in entry.scalar_only or not is_memory(operand, scalars)):
            return False
    if len(operands) == 1:
        return True
    return any(is_memory(operand, scalars) for operand in operands)


def bindings(pattern: Expression, work: Expression) -> Iterator[dict[int, Expression]]:
    """Yield every way to read ``work`` as ``pattern`` with operands for its reads."""
    if isinstance(pattern, Read):
        if pattern.type is work.type:
            yield {pattern.position: work}
        return
    if isinstance(pattern, Binary):
        yield from _binary_bindings(pattern, work)
        return
    from_pattern, from_work = _parts(pattern), _parts(work)
    if from_pattern is not None and from_work is not None and from_pattern[0] == from_work[0]:
        yield from bindings(from_pattern[1], from_work[1])


def _parts(expression: Expression) -> tuple[object, Expression] | None:
    """Split an expression of one operand into what it does and the operand."""
    match expression:
        case Unary(op=op, operand=operand):
            return op, operand
        case Convert(type=element, operand=operand):
            return element, operand
        case _:
            return None


def _binary_bindings(pattern: Binary, work: Expression) -> Iterator[dict[int, Expression]]:
    if not isinstance(work, Binary) or work.op is not pattern.op:
        return
    sides = [(work.left, work.right)]
    if pattern.op in (BinaryOp.ADD, BinaryOp.MULTIPLY, BinaryOp.MAXIMUM):
        sides.append((work.right, work.left))
    for left, right in sides:
        for first in bindings(pattern.left, left):
            for second in bindings(pattern.right, right):
                yield first | second
