"""Doubles computed as floats where that gives the same bits: twice as many are in a vector.

    float32(float64(a[i]) * 0.5)                        ->  a[i] * 0.5f
    float64(a[i]) > 0.1 ? ... : ...                     ->  a[i] > 0.099999994f ? ... : ...
    float32(float64(a[i]) > 0.0 ? float64(a[i]) : 0.0)  ->  a[i] > 0.0f ? a[i] : 0.0f

C computes in ``double`` wherever a literal has no ``f``. A sum, product, quotient or root of two floats that
is rounded to a double and then to a float is as if it was rounded once, since 53 digits are at least two more
than twice 24. Between two floats next to each other a limit may lie anywhere.

Source: Figueroa, When is double rounding innocuous?, 1995. Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
from polyloom.ir.host import Assignment, HostLeaf, HostNode, HostProgram, MdHom, Nest
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import with_leaves
from polyloom.scop.model import Scop, ScopStatement

_WIDE, _NARROW = ElementType.FLOAT64, ElementType.FLOAT32
_WITHIN = frozenset(
    {
        *(ElementType.FLOAT16, ElementType.FLOAT32, ElementType.BOOL),
        *(ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.UINT16),
    }
)
"""Types of which floats have all values."""
_EXACT = frozenset({UnaryOp.NEGATE, UnaryOp.ABS})
_EXTREMES = frozenset({BinaryOp.MAXIMUM, BinaryOp.MINIMUM, BinaryOp.FMAX, BinaryOp.FMIN})
_ROUNDED = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.DIVIDE})


def with_narrow_statements(scop: Scop) -> Scop:
    """Return the part with floats for doubles in its statements, whose forms are plainer then."""
    types = {array.name: array.type for array in scop.arrays}

    def change(statement: ScopStatement) -> ScopStatement:
        value, kind = statement.value, types[statement.target.array]
        stored = value if value.type is kind else Convert(kind, value)
        made = narrowed(stored)
        condition = None if statement.condition is None else narrowed(statement.condition)
        return replace(statement, value=value if made == stored else made, condition=condition)

    return replace(scop, statements=tuple(map(change, scop.statements)))


def with_narrow_floats(program: HostProgram) -> HostProgram:
    """Return the program in which doubles are floats where nobody sees it: every element gets its bits."""

    def change(node: HostLeaf) -> tuple[HostNode, ...]:
        match node:
            case MdHom():
                finish = tuple(None if end is None else narrowed(end) for end in node.finish)
                return (replace(node, terms=tuple(map(narrowed, node.terms)), finish=finish),)
            case Nest():
                return (replace(node, assignments=tuple(map(_assigned, node.assignments))),)
            case _:
                return (node,)

    body = with_leaves(program.body, change)
    return program if body == program.body else replace(program, body=body)


def _assigned(assignment: Assignment) -> Assignment:
    condition = None if assignment.condition is None else narrowed(assignment.condition)
    return replace(assignment, value=narrowed(assignment.value), condition=condition)


def narrowed(value: Expression) -> Expression:
    """Return an expression with the same value in all cases."""

    def change(part: Expression) -> Expression | None:
        match part:
            case Convert(operand=operand) if part.type is _NARROW and operand.type is _WIDE:
                return _rounded(operand)
            case Compare(op=op, left=left, right=right) if left.type is _WIDE:
                return _compared(op, left, right)
            case _:
                return None

    return rebuilt(value, change)


def _exact(e: Expression) -> Expression | None:
    """Return a double as a float that is equal to it; None where it may be none."""
    match e:
        case Constant(value=value):
            with np.errstate(over="ignore"):
                nearest = float(np.float32(value))
            return Constant(value, _NARROW) if nearest == value or nearest != nearest else None
        case Convert(operand=operand) if operand.type in _WITHIN:
            inner = narrowed(operand)
            return inner if inner.type is _NARROW else Convert(_NARROW, inner)
        case Unary(op=op, operand=operand) if op in _EXACT:
            return _unary(op, _exact(operand))
        case Binary(op=op, left=left, right=right) if op in _EXTREMES:
            return _binary(op, _exact(left), _exact(right))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _select(condition, _exact(then), _exact(otherwise))
        case _:
            return None


def _rounded(e: Expression) -> Expression | None:
    """Return a double, rounded to a float, without doubles; None where these are needed."""
    match e:
        case Unary(op=UnaryOp.SQRT, operand=operand):
            return _unary(UnaryOp.SQRT, _exact(operand))
        case Binary(op=op, left=left, right=right) if op in _ROUNDED:
            return _binary(op, _exact(left), _exact(right))
        case Unary(op=op, operand=operand) if op in _EXACT:
            return _unary(op, _rounded(operand))
        case Select(condition=condition, then=then, otherwise=otherwise):
            return _select(condition, _rounded(then), _rounded(otherwise))
        case Constant(value=value):
            with np.errstate(over="ignore"):
                return Constant(float(np.float32(value)), _NARROW)
        case _:
            return _exact(e)


def _unary(op: UnaryFunction, a: Expression | None) -> Expression | None:
    return None if a is None else Unary(op, a)


def _binary(op: BinaryFunction, a: Expression | None, b: Expression | None) -> Expression | None:
    return None if a is None or b is None else Binary(op, a, b)


def _select(condition: Expression, a: Expression | None, b: Expression | None) -> Expression | None:
    return None if a is None or b is None else Select(narrowed(condition), a, b)


def _compared(op: CompareOp, left: Expression, right: Expression) -> Expression | None:
    a, b = _exact(left), _exact(right)
    if a is not None and b is not None:
        return Compare(op, a, b)
    if a is not None and isinstance(right, Constant):
        return _beside(op, a, float(right.value))
    if b is not None and isinstance(left, Constant):
        return _beside(op.turned, b, float(left.value))
    return None


def _beside(op: CompareOp, value: Expression, limit: float) -> Expression | None:
    """Return a comparison with a limit between two floats: with the one that is nearer to zero."""
    if op.is_equality:
        return None
    with np.errstate(over="ignore"):
        inner = np.float32(limit)
        if abs(float(inner)) > abs(limit):
            inner = np.nextafter(inner, np.float32(0))
    above, below = (CompareOp.GT, CompareOp.LE) if limit > 0 else (CompareOp.GE, CompareOp.LT)
    kept = above if op in (CompareOp.GT, CompareOp.GE) else below
    return Compare(kept, value, Constant(float(inner), _NARROW))
