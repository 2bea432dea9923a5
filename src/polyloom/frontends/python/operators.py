"""Python's operators and functions on typed values, with the types and results of NumPy's scalars.

``int16 / float`` is NumPy's ``true_divide``; its types are those that NumPy itself states for them. Python's
own numbers stay so among themselves: ``2 * math.sqrt(x)`` is a ``float``, which takes the type of an element
beside it.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyloom.frontends.python.values import (
    TYPES,
    Kind,
    Typed,
    Weak,
    as_kind,
    joined,
    truth,
)
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Expression, Select, Unary
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType

_Compute = Callable[[Expression, Expression], Expression | None]

_LARGEST_PRODUCT = 8
"""Whole exponents up to this one are products."""


def _types(function: np.ufunc, operands: Sequence[Typed]) -> tuple[ElementType, ElementType] | None:
    """Return the type that operands are computed in, and that of the result; None where NumPy has none."""
    given = [
        {Weak.INT: int, Weak.FLOAT: float}[o.kind] if isinstance(o.kind, Weak) else o.kind.dtype
        for o in operands
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
    types = _types(np.matmul, (a, b))
    return None if types is None or types[1] is ElementType.BOOL else types[1]


# -- operators


def operated(op: ast.operator, a: Typed, b: Typed) -> Typed | None:
    """Return ``a op b``; None where that has no value here."""
    if type(op) not in _OPERATORS:
        return None
    function, compute = _OPERATORS[type(op)]
    if isinstance(op, ast.Pow) and (power := _whole_power(a, b)) is not None:
        return power
    if isinstance(a.kind, Weak) and isinstance(b.kind, Weak):
        kind = Weak.FLOAT if isinstance(op, ast.Div) else joined(a.kind, b.kind)
        if isinstance(op, ast.Pow) and kind is Weak.INT:  # a negative exponent makes it a float
            return None
        computed: Kind = kind
        result: Kind = kind
    elif (types := _types(function, (a, b))) is None:
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


def _both(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.AND, a, b)


def _either(a: Expression, b: Expression) -> Expression:
    return Binary(BinaryOp.OR, a, b)


def _one(a: Expression, b: Expression) -> Expression:
    return _either(_both(a, _not(b)), _both(_not(a), b))


def _not(a: Expression) -> Expression:
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
            inside = _both(inside, Compare(CompareOp.GE, b, Constant(0, b.type)))
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
    return _either(_both(below, positive), _both(above, negative))


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
    ast.BitAnd: (np.bitwise_and, _of_bits(BinaryOp.BIT_AND, _both)),
    ast.BitOr: (np.bitwise_or, _of_bits(BinaryOp.BIT_OR, _either)),
    ast.BitXor: (np.bitwise_xor, _of_bits(BinaryOp.BIT_XOR, _one)),
}


def signed(op: ast.unaryop, a: Typed) -> Typed | None:
    """Return ``-a``, ``+a`` or ``~a``; None where that has no value here."""
    is_truth = a.kind is ElementType.BOOL
    match op:
        case ast.USub() if not is_truth:
            return Typed(Unary(UnaryOp.NEGATE, a.value), a.kind)
        case ast.UAdd() if not is_truth:
            return a
        case ast.Invert() if not a.held.is_float:
            return Typed(_not(a.value) if is_truth else Unary(UnaryOp.COMPLEMENT, a.value), a.kind)
        case _:
            return None


def compared(op: CompareOp, a: Typed, b: Typed) -> Expression:
    """Return a truth value. A number of Python that an integer's type does not hold is compared as it is."""
    kind = joined(a.kind, b.kind)
    for side in (a, b):
        if side.kind is Weak.INT and isinstance(kind, ElementType) and not _holds(kind, side.value):
            kind = ElementType.INT64
    if kind is ElementType.BOOL:
        kind = ElementType.UINT8
    return Compare(op, as_kind(a, kind), as_kind(b, kind))


def _holds(kind: ElementType, value: Expression) -> bool:
    """Return whether a type surely holds a number of Python."""
    if kind.is_float or kind in (ElementType.INT64, ElementType.UINT64):
        return True
    return isinstance(value, Constant) and kind.lowest <= value.value <= kind.highest


# -- functions


def called(function: int, arguments: Sequence[Typed]) -> Typed | None:
    """Return the value of a call; None where ``function``, the identity of what is called, is not known."""
    match arguments:
        case [a] if function in _OF_ONE:
            return _by_numpy(*_OF_ONE[function], a)
        case [a] if function in _MATH:
            return Typed(Unary(_MATH[function], as_kind(a, Weak.FLOAT)), Weak.FLOAT)
        case [a, b] if function in _MATH_OF_TWO:
            sides = (as_kind(a, Weak.FLOAT), as_kind(b, Weak.FLOAT))
            return Typed(Binary(_MATH_OF_TWO[function], *sides), Weak.FLOAT)
        case [a] if function in _WHOLE:
            return Typed(as_kind(Typed(_rounded(_WHOLE[function], a), a.kind), Weak.INT), Weak.INT)
        case [a] if function in _ABSOLUTE:
            return None if a.kind is ElementType.BOOL else Typed(Unary(UnaryOp.ABS, a.value), a.kind)
        case [a, b] if function in _OF_TWO:
            return _by_numpy(*_OF_TWO[function], a, b)
        case [a, _, *_] if function in _CHOICES:
            return reduce(lambda x, y: _better(_CHOICES[function], x, y), arguments[1:], a)
        case [test, a, b] if function == id(np.where):
            found = chosen(truth(test), a, b)
            return Typed(found.value, found.held)
        case [a] if function in _CASTS:
            return Typed(as_kind(a, _CASTS[function]), _CASTS[function])
        case [a] if function in TYPES:
            return Typed(as_kind(a, TYPES[function]), TYPES[function])
        case _:
            return None


def chosen(test: Expression, a: Typed, b: Typed) -> Typed:
    """Return ``a`` where a condition holds, else ``b``."""
    kind = joined(a.kind, b.kind)
    then, otherwise = as_kind(a, kind), as_kind(b, kind)
    if kind is ElementType.BOOL:
        return Typed(_either(_both(test, then), _both(_not(test), otherwise)), kind)
    return Typed(Select(test, then, otherwise), kind)


def _by_numpy(function: np.ufunc, op: Any, *operands: Typed) -> Typed | None:
    types = _types(function, operands)
    if types is None or types[1] is ElementType.BOOL:
        return None
    values = [as_kind(o, types[0]) for o in operands]
    return Typed(Unary(op, *values) if len(values) == 1 else Binary(op, *values), types[1])


def _rounded(op: Any, a: Typed) -> Expression:
    return Unary(op, a.value) if a.held.is_float else a.value


def _better(op: CompareOp, a: Typed, b: Typed) -> Typed:
    """Return Python's ``max(a, b)``, which is b where ``b > a``, else a."""
    return chosen(compared(op, b, a), b, a)


_CASTS: dict[int, Kind] = {id(int): Weak.INT, id(float): Weak.FLOAT, id(bool): ElementType.BOOL}
_ABSOLUTE = {id(builtins.abs), id(np.abs)}
_CHOICES = {id(builtins.max): CompareOp.GT, id(builtins.min): CompareOp.LT}
_WHOLE = {
    id(math.floor): UnaryOp.FLOOR,
    id(math.ceil): UnaryOp.CEIL,
    id(math.trunc): UnaryOp.TRUNC,
    id(builtins.round): UnaryOp.ROUND,
}
_ANALYSIS = {
    "exp": UnaryOp.EXP,
    "log": UnaryOp.LOG,
    "sqrt": UnaryOp.SQRT,
    "sin": UnaryOp.SIN,
    "cos": UnaryOp.COS,
    "tan": UnaryOp.TAN,
    "tanh": UnaryOp.TANH,
    "sinh": UnaryOp.SINH,
    "cosh": UnaryOp.COSH,
    "exp2": UnaryOp.EXP2,
    "log2": UnaryOp.LOG2,
    "log10": UnaryOp.LOG10,
    "log1p": UnaryOp.LOG1P,
    "expm1": UnaryOp.EXPM1,
    "cbrt": UnaryOp.CBRT,
}
_ARCS = {"sin": UnaryOp.ASIN, "cos": UnaryOp.ACOS, "tan": UnaryOp.ATAN}
_STEPS = {"floor": UnaryOp.FLOOR, "ceil": UnaryOp.CEIL, "trunc": UnaryOp.TRUNC, "rint": UnaryOp.ROUND}
_OF_ONE = {
    id(function): (function, op)
    for name, op in (
        *_ANALYSIS.items(),
        *((f"arc{n}", op) for n, op in _ARCS.items()),
        *_STEPS.items(),
        ("fabs", UnaryOp.ABS),
    )
    if (function := getattr(np, name))
}
"""Functions of NumPy by their identity."""

_OF_TWO = {
    id(np.maximum): (np.maximum, BinaryOp.MAXIMUM),
    id(np.minimum): (np.minimum, BinaryOp.MINIMUM),
    id(np.arctan2): (np.arctan2, BinaryOp.ATAN2),
    id(np.hypot): (np.hypot, BinaryOp.HYPOT),
}
"""Of two numbers; a NaN stays one."""

_MATH = {
    id(getattr(math, name)): op
    for name, op in (
        *_ANALYSIS.items(),
        *((f"a{n}", op) for n, op in _ARCS.items()),
        ("fabs", UnaryOp.ABS),
        ("erf", UnaryOp.ERF),
        ("erfc", UnaryOp.ERFC),
    )
}
"""Functions of ``math``: a ``float`` of a ``float``. Where those raise, the result is infinite or NaN."""

_MATH_OF_TWO = {
    id(math.pow): BinaryOp.POWER,
    id(math.atan2): BinaryOp.ATAN2,
    id(math.hypot): BinaryOp.HYPOT,
}

KNOWN = {
    *_OF_ONE,
    *_OF_TWO,
    *_MATH,
    *_MATH_OF_TWO,
    *_WHOLE,
    *_ABSOLUTE,
    *_CHOICES,
    *_CASTS,
    *TYPES,
    id(np.where),
}
"""Functions with a value of their own, by their identity."""
