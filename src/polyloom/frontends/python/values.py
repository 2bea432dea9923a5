"""Values as NumPy computes them: typed scalars of arrays, and Python's numbers, which take others' types."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from polyloom.ir.expressions import (
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Select,
)
from polyloom.ir.types import ElementType


class Weak(Enum):
    """Python's own numbers: beside a scalar of NumPy they take its type, if it can hold their kind.

    ``BOOL``: its truth values, which are numbers among themselves: ``(i > 1) + (i > 2)`` is an ``int``.
    """

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"


Kind = ElementType | Weak

_HELD = {Weak.BOOL: ElementType.BOOL, Weak.INT: ElementType.INT64, Weak.FLOAT: ElementType.FLOAT64}


def held(kind: Kind) -> ElementType:
    """Return the type that values are held in: Python's numbers where nothing says another one."""
    return _HELD[kind] if isinstance(kind, Weak) else kind


@dataclass(frozen=True)
class Typed:
    """A value; ``value`` has the element type ``held``."""

    value: Expression
    kind: Kind

    @property
    def held(self) -> ElementType:
        """The element type of its expression."""
        return held(self.kind)


def joined(a: Kind, b: Kind) -> Kind:
    """Return the kind of a result of both, as NumPy 2 promotes."""
    if isinstance(a, Weak) and isinstance(b, Weak):
        return next(kind for kind in (Weak.FLOAT, Weak.INT, Weak.BOOL) if kind in (a, b))
    if isinstance(a, Weak) or isinstance(b, Weak):
        weak, other = (a, b) if isinstance(a, Weak) else (b, a)
        assert isinstance(other, ElementType)
        if weak is Weak.FLOAT and not other.is_float:
            return ElementType.FLOAT64
        return ElementType.INT64 if other is ElementType.BOOL and weak is Weak.INT else other
    return ElementType(np.result_type(a.dtype, b.dtype).name)


REDUCTIONS = frozenset(
    ("sum", "prod", "mean", "var", "std", "max", "amax", "min", "amin", "any", "all", "argmax", "argmin")
)
"""Functions of whole arrays, by their names in NumPy."""


def as_number(a: Typed) -> Typed:
    """Return a value; one of Python's truth values as the ``int`` that it is in sums."""
    return Typed(as_kind(a, Weak.INT), Weak.INT) if a.kind is Weak.BOOL else a


class OutOfRange(Exception):
    """A number of Python is needed in a type that does not hold it."""


def as_kind(a: Typed, kind: Kind) -> Expression:
    """Return a value in a type. Raises ``OutOfRange``, where NumPy raises ``OverflowError``."""
    wanted = held(kind)
    if a.held is wanted:
        return a.value
    if wanted is ElementType.BOOL:
        return truth(a)
    if isinstance(a.value, Constant):
        value = a.value.value
        if a.kind is Weak.INT and not wanted.is_float and not wanted.lowest <= value <= wanted.highest:
            raise OutOfRange(f"`{wanted.value}` does not hold {value}")
        if wanted.is_float or a.kind is not Weak.FLOAT:
            return Constant(wanted.dtype.type(value).item(), wanted)
    if a.held is ElementType.BOOL:
        return Select(a.value, Constant(1, wanted), Constant(0, wanted))
    return Convert(wanted, a.value)


def truth(a: Typed) -> Expression:
    """Return whether a value is not 0."""
    if a.held is ElementType.BOOL:
        return a.value
    return Compare(CompareOp.NE, a.value, Constant(0, a.held))


FILLS = {id(np.zeros): 0, id(np.ones): 1, id(np.empty): None}
FILLS_LIKE = {id(np.zeros_like): 0, id(np.ones_like): 1, id(np.empty_like): None}
"""Functions that make arrays, with what these are full of."""

FULL, FULL_LIKE = id(np.full), id(np.full_like)

TYPES = {
    **{id(getattr(np, kind.value)): kind for kind in ElementType if kind is not ElementType.BOOL},
    id(np.bool_): ElementType.BOOL,
}
"""Types by the identity of NumPy's names for them."""

ELEMENTS = {**TYPES, id(int): ElementType.INT64, id(float): ElementType.FLOAT64, id(bool): ElementType.BOOL}
"""Types of arrays' elements."""


def is_elementwise(function: Any) -> bool:
    """Return whether a function of numbers is one of arrays too, element by element."""
    own = (abs, np.where, np.copy, np.clip, np.round)
    return isinstance(function, np.ufunc) or any(function is f for f in own) or id(function) in TYPES
