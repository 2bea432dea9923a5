"""Functions of numbers, of Python and of its modules ``math`` and ``numpy``, with their types and results."""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from polyloom.frontends.python.operators import (
    both,
    chosen,
    compared,
    either,
    negated,
    operated,
    signed,
    types_of,
)
from polyloom.frontends.python.values import TYPES, Kind, Typed, Weak, as_kind, truth
from polyloom.ir.expressions import Binary, Compare, CompareOp, Constant, Expression, Select, Unary
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType


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
            return None if a.held is ElementType.BOOL else Typed(Unary(UnaryOp.ABS, a.value), a.kind)
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
        case _ if (function, len(arguments)) in _COMPOSED:
            return _COMPOSED[function, len(arguments)](*arguments)
        case _:
            return None


def _by_numpy(function: np.ufunc, op: Any, *operands: Typed) -> Typed | None:
    types = types_of(function, operands)
    if types is None or types[1] is ElementType.BOOL:
        return None
    values = [as_kind(o, types[0]) for o in operands]
    return Typed(Unary(op, *values) if len(values) == 1 else Binary(op, *values), types[1])


def _rounded(op: Any, a: Typed) -> Expression:
    return Unary(op, a.value) if a.held.is_float else a.value


def _better(op: CompareOp, a: Typed, b: Typed) -> Typed:
    """Return Python's ``max(a, b)``, which is b where ``b > a``, else a."""
    return chosen(compared(op, b, a), b, a)


# -- functions that are made of others


def _clipped(a: Typed, low: Typed, high: Typed) -> Typed | None:
    raised = _by_numpy(np.maximum, BinaryOp.MAXIMUM, a, low)
    return None if raised is None else _by_numpy(np.minimum, BinaryOp.MINIMUM, raised, high)


def _sign(a: Typed) -> Typed | None:
    """Return -1, 0 or 1; of a NaN itself."""
    if a.held is ElementType.BOOL:
        return None
    value, zero = a.value, Constant(0, a.held)
    signs = (Compare(CompareOp.EQ, value, zero), 0), (Compare(CompareOp.LT, value, zero), -1)
    found: Expression = Constant(1, a.held)
    found = Select(Compare(CompareOp.GT, value, zero), found, value)
    for test, number in signs:
        found = Select(test, Constant(number, a.held), found)
    return Typed(found, a.held)


def _is_nan(kind: Kind) -> Callable[[Typed], Typed]:
    """Return a function that gives a truth value of NumPy, or of Python."""
    return lambda a: Typed(Compare(CompareOp.NE, a.value, a.value), kind)


def _beside_infinity(op: CompareOp, kind: Kind) -> Callable[[Typed], Typed]:
    def found(a: Typed) -> Typed:
        real = a.value if a.held.is_float else as_kind(a, ElementType.FLOAT64)
        return Typed(Compare(op, Unary(UnaryOp.ABS, real), Constant(math.inf, real.type)), kind)

    return found


def _nearest(a: Typed) -> Typed | None:
    return None if a.held is ElementType.BOOL else Typed(_rounded(UnaryOp.ROUND, a), a.held)


def _scaled(factor: float) -> Callable[[Typed], Typed | None]:
    return lambda a: operated(ast.Mult(), a, Typed(Constant(factor, ElementType.FLOAT64), Weak.FLOAT))


def _by_operator(op: ast.operator) -> Callable[[Typed, Typed], Typed | None]:
    """Return a function of NumPy that is an operator: of Python's numbers too it gives one of NumPy."""

    def found(a: Typed, b: Typed) -> Typed | None:
        result = operated(op, *(_of_numpy(x) for x in (a, b)))
        return None if result is None else Typed(result.value, result.held)

    return found


def _of_numpy(a: Typed) -> Typed:
    """Return what NumPy's functions make of one of Python's truth values: one of their own."""
    return Typed(a.value, ElementType.BOOL) if a.kind is Weak.BOOL else a


def _of_truths(combine: Callable[[Expression, Expression], Expression]) -> Callable[[Typed, Typed], Typed]:
    return lambda a, b: Typed(combine(truth(a), truth(b)), ElementType.BOOL)


def _ordered(op: CompareOp) -> Callable[[Typed, Typed], Typed]:
    return lambda a, b: Typed(compared(op, a, b), ElementType.BOOL)


_COMPOSED: dict[tuple[int, int], Callable[..., Typed | None]] = {
    (id(np.clip), 3): _clipped,
    (id(np.sign), 1): _sign,
    (id(np.isnan), 1): _is_nan(ElementType.BOOL),
    (id(np.isinf), 1): _beside_infinity(CompareOp.EQ, ElementType.BOOL),
    (id(np.isfinite), 1): _beside_infinity(CompareOp.LT, ElementType.BOOL),
    (id(math.isnan), 1): _is_nan(Weak.BOOL),
    (id(math.isinf), 1): _beside_infinity(CompareOp.EQ, Weak.BOOL),
    (id(math.isfinite), 1): _beside_infinity(CompareOp.LT, Weak.BOOL),
    (id(np.round), 1): _nearest,
    **{(id(f), 1): _scaled(math.pi / 180) for f in (math.radians, np.radians, np.deg2rad)},
    **{(id(f), 1): _scaled(180 / math.pi) for f in (math.degrees, np.degrees, np.rad2deg)},
    (id(np.square), 1): lambda a: operated(ast.Mult(), a, a),
    (id(np.negative), 1): lambda a: signed(ast.USub(), a),
    (id(builtins.pow), 2): lambda a, b: operated(ast.Pow(), a, b),
    (id(np.add), 2): _by_operator(ast.Add()),
    (id(np.subtract), 2): _by_operator(ast.Sub()),
    (id(np.multiply), 2): _by_operator(ast.Mult()),
    (id(np.true_divide), 2): _by_operator(ast.Div()),
    (id(np.floor_divide), 2): _by_operator(ast.FloorDiv()),
    (id(np.remainder), 2): _by_operator(ast.Mod()),
    (id(np.power), 2): _by_operator(ast.Pow()),
    (id(np.logical_and), 2): _of_truths(both),
    (id(np.logical_or), 2): _of_truths(either),
    (id(np.logical_not), 1): lambda a: Typed(negated(truth(a)), ElementType.BOOL),
    (id(np.less), 2): _ordered(CompareOp.LT),
    (id(np.less_equal), 2): _ordered(CompareOp.LE),
    (id(np.greater), 2): _ordered(CompareOp.GT),
    (id(np.greater_equal), 2): _ordered(CompareOp.GE),
    (id(np.equal), 2): _ordered(CompareOp.EQ),
    (id(np.not_equal), 2): _ordered(CompareOp.NE),
}
"""By their identity and the number of their arguments."""

_CASTS: dict[int, Kind] = {id(int): Weak.INT, id(float): Weak.FLOAT, id(bool): Weak.BOOL}
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
    id(np.fmax): (np.fmax, BinaryOp.FMAX),
    id(np.fmin): (np.fmin, BinaryOp.FMIN),
    id(np.fmod): (np.fmod, BinaryOp.REMAINDER),
}

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
    id(math.fmod): BinaryOp.REMAINDER,
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
    *(function for function, _ in _COMPOSED),
}
"""Functions with a value of their own, by their identity."""
