"""Values as NumPy computes them: typed scalars of arrays, and Python's numbers, which take others' types."""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from polyloom.ir.expressions import (
    Binary,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    Unary,
)
from polyloom.ir.scalar_functions.table import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType


class Weak(Enum):
    """Python's own numbers: beside a scalar of NumPy they take its type, if it can hold their kind."""

    INT = "int"
    FLOAT = "float"


Kind = ElementType | Weak

HELD = {Weak.INT: ElementType.INT64, Weak.FLOAT: ElementType.FLOAT64}
"""What Python's numbers are held in where nothing says another type."""


@dataclass(frozen=True)
class Typed:
    """A value; ``value`` has the element type ``held``."""

    value: Expression
    kind: Kind

    @property
    def held(self) -> ElementType:
        """The element type of its expression."""
        return HELD[self.kind] if isinstance(self.kind, Weak) else self.kind


def joined(a: Kind, b: Kind) -> Kind:
    """Return the kind of a result of both, as NumPy 2 promotes."""
    if isinstance(a, Weak) and isinstance(b, Weak):
        return Weak.FLOAT if Weak.FLOAT in (a, b) else Weak.INT
    if isinstance(a, Weak) or isinstance(b, Weak):
        weak, other = (a, b) if isinstance(a, Weak) else (b, a)
        assert isinstance(other, ElementType)
        if weak is Weak.FLOAT and not other.is_float:
            return ElementType.FLOAT64
        return ElementType.INT64 if other is ElementType.BOOL else other
    return ElementType(np.result_type(a.dtype, b.dtype).name)


def as_kind(a: Typed, kind: Kind) -> Expression:
    """Return a value in a type."""
    wanted = HELD[kind] if isinstance(kind, Weak) else kind
    if a.held is wanted:
        return a.value
    if isinstance(a.value, Constant) and a.kind is not ElementType.BOOL:
        return Constant(np.dtype(wanted.value).type(a.value.value).item(), wanted)
    if a.held is ElementType.BOOL and not isinstance(a.value, Read):
        return Select(a.value, as_kind(_ONE, wanted), as_kind(_ZERO, wanted))
    return Convert(wanted, a.value)


_ZERO, _ONE = (Typed(Constant(number, ElementType.INT64), Weak.INT) for number in (0, 1))


def arithmetic(op: Any, a: Typed, b: Typed) -> Typed:
    """Return ``a op b``."""
    kind = joined(a.kind, b.kind)
    return Typed(Binary(op, as_kind(a, kind), as_kind(b, kind)), kind)


def divided(a: Typed, b: Typed) -> Typed:
    """Return ``a / b``, which is a float."""
    kind = joined(a.kind, b.kind)
    if kind is Weak.INT:
        kind = Weak.FLOAT
    elif isinstance(kind, ElementType) and not kind.is_float:
        kind = ElementType.FLOAT64
    return Typed(Binary(BinaryOp.DIVIDE, as_kind(a, kind), as_kind(b, kind)), kind)


def compared(op: CompareOp, a: Typed, b: Typed) -> Typed:
    """Return a truth value."""
    kind = joined(a.kind, b.kind)
    return Typed(Compare(op, as_kind(a, kind), as_kind(b, kind)), ElementType.BOOL)


def function(op: Any, a: Typed) -> Typed:
    """Return a function of a float; integers become float64."""
    kind: Kind = a.kind
    if kind is Weak.INT:
        kind = Weak.FLOAT
    elif isinstance(kind, ElementType) and not kind.is_float:
        kind = ElementType.FLOAT64
    return Typed(Unary(op, as_kind(a, kind)), kind)


def _functions() -> dict[int, Any]:
    names = {
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
    }
    return {id(found): op for name, op in names.items() if (found := getattr(np, name, None)) is not None}


FUNCTIONS = _functions()
"""Functions of NumPy by their identity: those that round as the operands' type does."""

ABSOLUTE = {id(builtins.abs), id(np.abs), id(np.fabs)}
EXTREMES = {id(np.maximum): BinaryOp.MAXIMUM, id(np.minimum): BinaryOp.MINIMUM}
"""Of two numbers; a NaN stays one."""

CHOICES = {id(builtins.max): CompareOp.GT, id(builtins.min): CompareOp.LT}
"""Python's ``max(a, b)`` is b where ``b > a``, else a."""

ZEROS, EMPTY = {id(np.zeros)}, {id(np.empty)}
LIKE = {id(np.zeros_like): True, id(np.empty_like): False}
"""Functions that make arrays, with whether these are zeros."""

TYPES = {
    **{id(getattr(np, kind.value)): kind for kind in ElementType if kind is not ElementType.BOOL},
    id(float): ElementType.FLOAT64,
    id(int): ElementType.INT64,
}

MODULES = (np, math)
