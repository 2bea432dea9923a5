"""Python's operators on typed values, with the types and results of NumPy's scalars.

``int16 / float`` is NumPy's ``true_divide``; its types are those that NumPy itself states for them. Python's
own numbers stay so among themselves: ``2 * math.sqrt(x)`` is a ``float``, which takes the type of an element
beside it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyloom.frontends.python.values import (
    Kind,
    Typed,
    Weak,
    as_kind,
    as_number,
    held,
    joined,
)
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Convert, Expression, Select, Unary
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

_Compute = Callable[[Expression, Expression], Expression | None]

_NUMBERS = (Weak.INT, Weak.FLOAT)
_LARGEST_PRODUCT = 8
"""Whole exponents up to this one are products."""


def types_of(function: np.ufunc, operands: Sequence[Typed]) -> tuple[ElementType, ElementType] | None:
    """Return the type that operands are computed in, and that of the result; None where NumPy has none."""
    given = [
        {Weak.INT: int, Weak.FLOAT: float}[o.kind] if o.kind in _NUMBERS else o.held.dtype for o in operands
    ]
    if all(isinstance(o.kind, Weak) for o in operands):
        given = [o.held.dtype for o in operands]
    try:
        found: Any = function.resolve_dtypes((*given, None))
        return ElementType(found[0].name), ElementType(found[-1].name)
    except (TypeError, ValueError):
        return None


def product_type(a: Typed, b: Typed) -> ElementType | None:
    """Return the type of a product of matrices; None where it is none of numbers."""
    types = types_of(np.matmul, (a, b))
    return None if types is None or types[1] is ElementType.BOOL else types[1]


# -- operators


def operated(op: ast.operator, a: Typed, b: Typed) -> Typed | None:
    """Return ``a op b``; None where that has no value here."""
    if type(op) not in _OPERATORS:
        return None
    function, compute = _OPERATORS[type(op)]
    if isinstance(a.kind, Weak) and isinstance(b.kind, Weak):
        are_bits = isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and a.kind is b.kind
        a, b = (a, b) if are_bits else (as_number(a), as_number(b))
    if isinstance(op, ast.Pow) and (power := _whole_power(a, b)) is not None:
        return power
    if isinstance(a.kind, Weak) and isinstance(b.kind, Weak):
        kind = Weak.FLOAT if isinstance(op, ast.Div) else joined(a.kind, b.kind)
        if isinstance(op, ast.Pow) and kind is Weak.INT:  # a negative exponent makes it a float
            return None
        computed: Kind = kind
        result: Kind = kind
    elif (types := types_of(function, (a, b))) is None:
        return None
    else:
        computed, result = types
    value = compute(as_kind(a, computed), as_kind(b, computed))
    return None if value is None else Typed(value, result)


def _whole_power(a: Typed, b: Typed) -> Typed | None:
    """Return products for a small whole exponent of an integer."""
    if not isinstance(b.value, Constant) or b.kind is not Weak.INT or a.held.is_float:
        return None
    if not 1 <= b.value.value <= _LARGEST_PRODUCT or a.kind is ElementType.BOOL:
        return None
    return Typed(reduce(lambda x, y: x * y, [a.value] * int(b.value.value)), a.kind)


def _of(op: Any) -> _Compute:
    return lambda a, b: None if a.type is ElementType.BOOL else Binary(op, a, b)


def _of_bits(op: Any, truths: _Compute) -> _Compute:
    def computed(a: Expression, b: Expression) -> Expression | None:
        if a.type is ElementType.BOOL:
            return truths(a, b)
        return None if a.type.is_float else Binary(op, a, b)

    return computed


def both(a: Expression, b: Expression) -> Expression:
    """Return whether two truth values hold."""
    return Binary(BinaryOp.AND, a, b)


def either(a: Expression, b: Expression) -> Expression:
    """Return whether one of two truth values holds, or both."""
    return Binary(BinaryOp.OR, a, b)


def _one(a: Expression, b: Expression) -> Expression:
    return either(both(a, negated(b)), both(negated(a), b))


def negated(a: Expression) -> Expression:
    """Return whether a truth value does not hold."""
    return Unary(UnaryOp.NOT, a)


def _shifted(op: Any) -> _Compute:
    """Return a shift: by as many places as there are, or more, nothing but the sign is left."""

    def computed(a: Expression, b: Expression) -> Expression | None:
        if a.type.is_float or a.type is ElementType.BOOL:
            return None
        bits = 8 * a.type.size
        if isinstance(b, Constant) and 0 <= b.value < bits:
            return Binary(op, a, b)
        rest: Expression = Constant(0, a.type)
        if op is BinaryOp.SHIFT_RIGHT:
            rest = Binary(op, a, Constant(bits - 1, a.type)) if _is_signed(a) else rest
        inside: Expression = Compare(CompareOp.LT, b, Constant(bits, b.type))
        if _is_signed(b):
            inside = both(inside, Compare(CompareOp.GE, b, Constant(0, b.type)))
        return Select(inside, Binary(op, a, b), rest)

    return computed


def _is_signed(a: Expression) -> bool:
    return not a.type.value.startswith("u")


def _remainder(a: Expression, b: Expression) -> Expression | None:
    """Return Python's ``a % b``, which has the sign of ``b``."""
    if a.type is ElementType.BOOL:
        return None
    rest = Binary(BinaryOp.REMAINDER, a, b)
    wrong = _has_other_sign(rest, b)
    return rest if wrong is None else Select(wrong, rest + b, rest)


def _quotient(a: Expression, b: Expression) -> Expression | None:
    """Return ``a // b``, rounded down; of floats by the exact remainder, as NumPy does."""
    if a.type is ElementType.BOOL:
        return None
    rest = Binary(BinaryOp.REMAINDER, a, b)
    quotient = (a - rest) / b if a.type.is_float else a / b
    wrong = _has_other_sign(rest, b)
    if wrong is not None:
        quotient = Select(wrong, quotient - Constant(1, a.type), quotient)
    if not a.type.is_float:
        return quotient
    by_zero = Compare(CompareOp.EQ, b, Constant(0, b.type))
    return Select(by_zero, a / b, Unary(UnaryOp.ROUND, quotient))


def _has_other_sign(rest: Expression, b: Expression) -> Expression | None:
    """Return whether a remainder is not 0 and has not the sign of its divisor; None if it always has."""
    if not _is_signed(b):
        return None
    zero = Constant(0, b.type)
    below, above = Compare(CompareOp.LT, rest, zero), Compare(CompareOp.GT, rest, zero)
    if isinstance(b, Constant):
        return below if b.value > 0 else above
    negative, positive = Compare(CompareOp.LT, b, zero), Compare(CompareOp.GT, b, zero)
    return either(both(below, positive), both(above, negative))


_OPERATORS: dict[type[ast.operator], tuple[np.ufunc, _Compute]]
_OPERATORS = {
    ast.Add: (np.add, _of(BinaryOp.ADD)),
    ast.Sub: (np.subtract, _of(BinaryOp.SUBTRACT)),
    ast.Mult: (np.multiply, _of(BinaryOp.MULTIPLY)),
    ast.Div: (np.true_divide, _of(BinaryOp.DIVIDE)),
    ast.FloorDiv: (np.floor_divide, _quotient),
    ast.Mod: (np.remainder, _remainder),
    ast.Pow: (np.power, _of(BinaryOp.POWER)),
    ast.LShift: (np.left_shift, _shifted(BinaryOp.SHIFT_LEFT)),
    ast.RShift: (np.right_shift, _shifted(BinaryOp.SHIFT_RIGHT)),
    ast.BitAnd: (np.bitwise_and, _of_bits(BinaryOp.BIT_AND, both)),
    ast.BitOr: (np.bitwise_or, _of_bits(BinaryOp.BIT_OR, either)),
    ast.BitXor: (np.bitwise_xor, _of_bits(BinaryOp.BIT_XOR, _one)),
}


def signed(op: ast.unaryop, a: Typed) -> Typed | None:
    """Return ``-a``, ``+a`` or ``~a``; None where that has no value here."""
    a = as_number(a)
    is_truth = a.kind is ElementType.BOOL
    match op:
        case ast.USub() if not is_truth:
            return Typed(Unary(UnaryOp.NEGATE, a.value), a.kind)
        case ast.UAdd() if not is_truth:
            return a
        case ast.Invert() if not a.held.is_float:
            return Typed(negated(a.value) if is_truth else Unary(UnaryOp.COMPLEMENT, a.value), a.kind)
        case _:
            return None


def compared(op: CompareOp, a: Typed, b: Typed) -> Expression:
    """Return a truth value. A number of Python that an integer's type does not hold is compared as it is."""
    if a.kind is ElementType.UINT64 and _may_be_negative(b):
        return _beside_signed(op, a.value, as_kind(b, held(b.kind)))
    if b.kind is ElementType.UINT64 and _may_be_negative(a):
        return _beside_signed(op.turned, b.value, as_kind(a, held(a.kind)))
    kind = joined(a.kind, b.kind)
    for side in (a, b):
        if side.kind is Weak.INT and isinstance(kind, ElementType) and not _holds(kind, side.value):
            kind = ElementType.INT64
    if held(kind) is ElementType.BOOL:
        kind = ElementType.UINT8
    return Compare(op, as_kind(a, kind), as_kind(b, kind))


def _may_be_negative(a: Typed) -> bool:
    """Return whether a value is an integer that may be less than 0."""
    if a.held.is_float or a.held is ElementType.BOOL or not _is_signed(a.value):
        return False
    return not isinstance(a.value, Constant) or a.value.value < 0


def _beside_signed(op: CompareOp, a: Expression, b: Expression) -> Expression:
    """Compare the widest integer without a sign with one that has one, both as they are."""
    below = Compare(CompareOp.LT, b, Constant(0, b.type))
    same = Compare(op, a, Convert(a.type, b))
    is_above = op in (CompareOp.GT, CompareOp.GE, CompareOp.NE)
    return either(below, same) if is_above else both(negated(below), same)


def _holds(kind: ElementType, value: Expression) -> bool:
    """Return whether a type surely holds a number of Python."""
    if kind.is_float or kind in (ElementType.INT64, ElementType.UINT64):
        return True
    return isinstance(value, Constant) and kind.lowest <= value.value <= kind.highest


def chosen(test: Expression, a: Typed, b: Typed) -> Typed:
    """Return ``a`` where a condition holds, else ``b``."""
    kind = joined(a.kind, b.kind)
    then, otherwise = as_kind(a, kind), as_kind(b, kind)
    if held(kind) is ElementType.BOOL:
        return Typed(either(both(test, then), both(negated(test), otherwise)), kind)
    return Typed(Select(test, then, otherwise), kind)
