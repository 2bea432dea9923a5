"""C's types as far as a static control part uses them, and its usual conversions.

The model is LP64, as on Linux: ``int`` has 32 bits, ``long`` 64, ``char`` is signed.
Source: ISO C99, 6.3.1 (conversions), 6.4.4 (constants).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression


@dataclass(frozen=True)
class Scalar:
    """An arithmetic type. ``boolean``: ``_Bool``, stored as a byte that is 0 or 1."""

    element: ElementType
    spelling: str
    boolean: bool = False


@dataclass(frozen=True, eq=False)
class Extent:
    """How long an array is: over parameters; ``affine`` is None for products of parameters."""

    expression: IntExpression
    affine: isl.PwAff | None


@dataclass(frozen=True)
class Pointer:
    """``target *``; ``constant``: what it points to is ``const``, as it is declared here."""

    target: CType
    restrict: bool = False
    constant: bool = False


@dataclass(frozen=True, eq=False)
class Array:
    """``element[extent]``; None for ``element[]``."""

    element: CType
    extent: Extent | None
    restrict: bool = False
    """Of a parameter, which is a pointer: ``a[restrict n]``."""


@dataclass(frozen=True, eq=False)
class Record:
    """A structure; ``members`` in order, those of anonymous structures among them."""

    name: str
    members: tuple[tuple[str, CType], ...]
    union: bool = False


@dataclass(frozen=True)
class Unmodelled:
    """A type whose elements no SCoP reads or writes: ``what`` says what they are, in the plural."""

    what: str


BIT_FIELDS = Unmodelled("bit-fields")
ATOMIC = Unmodelled("atomic")
VOLATILE = Unmodelled("volatile")
ATTRIBUTED = Unmodelled("of a type that an attribute changes")
FLEXIBLE = Unmodelled("at the open end of a structure")
ENUMERATION = Unmodelled("of an enumeration whose type is not known")


@dataclass(frozen=True)
class Void:
    """``void``."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function that returns ``result``."""

    result: CType


CType = Scalar | Pointer | Array | Record | Unmodelled | Void | Function

_E = ElementType
INT = Scalar(_E.INT32, "int")
FLOAT = Scalar(_E.FLOAT32, "float")
DOUBLE = Scalar(_E.FLOAT64, "double")
_BOOL = Scalar(_E.UINT8, "_Bool", boolean=True)

_SIGNED = (_E.INT8, _E.INT16, _E.INT32, _E.INT64)
_UNSIGNED = (_E.UINT8, _E.UINT16, _E.UINT32, _E.UINT64)
_RANK = {e: k for row in (_SIGNED, _UNSIGNED) for k, e in enumerate(row)}


def scalar_named(words: Sequence[str]) -> Scalar | None:
    """Return the type that specifiers name (``unsigned long int``);
    None where they name none that we have.
    """
    kinds = [w for w in words if w not in ("signed", "unsigned", "__signed__")]
    spelling = " ".join(words)
    if "_Bool" in words:
        return _BOOL
    if kinds == ["float"] or kinds == ["double"]:
        return FLOAT if kinds == ["float"] else DOUBLE
    if kinds == ["_Float16"] or kinds == ["__fp16"]:
        return Scalar(_E.FLOAT16, spelling)
    if any(w not in ("char", "short", "int", "long") for w in kinds):
        return None
    size = 0 if "char" in kinds else 1 if "short" in kinds else 3 if "long" in kinds else 2
    return Scalar((_UNSIGNED if "unsigned" in words else _SIGNED)[size], spelling)


def is_unsigned(element: ElementType) -> bool:
    """Whether arithmetic in the type is modulo a power of two."""
    return element in _UNSIGNED


def is_integer(ctype: CType) -> bool:
    """Whether it is an integer type."""
    return isinstance(ctype, Scalar) and not ctype.element.is_float


def promoted(element: ElementType) -> ElementType:
    """Return the type after integer promotion. Source: C99, 6.3.1.1."""
    return _E.INT32 if element is _E.BOOL or (not element.is_float and _RANK[element] < 2) else element


def common(left: ElementType, right: ElementType) -> ElementType:
    """Return the type of an operation after the usual arithmetic conversions. Source: C99, 6.3.1.8."""
    floats = (_E.FLOAT64, _E.FLOAT32, _E.FLOAT16)
    for kind in floats:
        if kind in (left, right):
            return kind
    a, b = promoted(left), promoted(right)
    if _RANK[a] != _RANK[b]:
        return a if _RANK[a] > _RANK[b] else b
    return a if is_unsigned(a) else b


def is_same(one: CType, other: CType) -> bool:
    """Whether two types describe the same bytes in the same way; arrays have known, equal extents."""
    match one, other:
        case Scalar(), Scalar():
            return (one.element, one.boolean) == (other.element, other.boolean)
        case Array(element=first, extent=length), Array(element=second, extent=wanted):
            return is_same(first, second) and _is_same_extent(length, wanted)
        case Pointer(target=first), Pointer(target=second):
            return is_same(first, second)
        case Record(), Record():
            return one is other or (bool(one.name) and (one.name, one.union) == (other.name, other.union))
        case _:
            return type(one) is type(other)


def _is_same_extent(one: Extent | None, other: Extent | None) -> bool:
    if one is None or other is None:
        return False
    if one.affine is None or other.affine is None:
        return one.expression == other.expression
    return bool(one.affine.is_equal(other.affine))


def spelling(ctype: CType) -> str:
    """Return a type as C writes it, without extents."""
    match ctype:
        case Scalar(spelling=text):
            return text
        case Pointer(target=target):
            return f"{spelling(target)} *"
        case Array(element=element):
            return spelling(element)
        case Record(name=name):
            return f"struct {name}".strip()
        case Unmodelled(what=what):
            return what
        case Void():
            return "void"
        case Function(result=result):
            return spelling(result)


def value_range(element: ElementType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type."""
    bits = 8 * element.size
    return (0, 2**bits - 1) if is_unsigned(element) else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
