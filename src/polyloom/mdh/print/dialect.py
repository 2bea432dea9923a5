"""How OpenCL C and C differ where scalars and vectors of numbers are written: as data.

Vectors of C are those of gcc and clang (``vector_size``): operators work on them element by element, a
comparison gives a mask of integers of the same size, 0 or -1, as in OpenCL. What C lacks (``?:`` of vectors,
``exp`` of a vector) are small functions that ``helpers`` defines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from polyloom.ir.types import ElementType

WIDTHS = (2, 3, 4, 8, 16, 32, 64, 128)
NARROW = frozenset({ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.UINT16})
"""C computes with them as ``int``."""

SIGNED = {
    1: ElementType.INT8,
    2: ElementType.INT16,
    4: ElementType.INT32,
    8: ElementType.INT64,
}
"""By bytes: the elements of masks, and those of bits."""

UNSIGNED = {
    ElementType.INT8: ElementType.UINT8,
    ElementType.INT16: ElementType.UINT16,
    ElementType.INT32: ElementType.UINT32,
    ElementType.INT64: ElementType.UINT64,
}
"""Unsigned numbers of the same size, whose overflow is defined in C."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """A language that values are written in.

    ``scalars``: types of values in variables: ``float`` for a half, ``int`` for a truth value. ``vectors``:
    the type of ``{n}`` of them. ``suffixes``: of integer literals. ``half``: a half in memory.
    ``splat``: a vector whose elements are all ``{value}``; ``convert``, ``reinterpret``: of a vector to
    another type. ``masks_are_truths``: whether ``&&``, ``!``, ``?:`` take masks. ``own_functions``: whether
    ``exp`` and its like take every type, and ``max`` and ``abs`` integers.
    """

    scalars: Mapping[ElementType, str]
    vectors: Mapping[ElementType, str]
    suffixes: Mapping[ElementType, str]
    half: str
    splat: str
    convert: str
    reinterpret: str
    masks_are_truths: bool
    own_functions: bool

    def type(self, element: ElementType, width: int = 1) -> str:
        """Return the type of ``width`` values in a variable."""
        return self.scalars[element] if width == 1 else self.vectors[element].format(n=width)

    @cached_property
    def kinds(self) -> Mapping[str, tuple[ElementType, int]]:
        """Element type and number of elements, by the name of a type; a ``float`` is no half."""
        own = [e for e in self.scalars if e not in (ElementType.FLOAT16, ElementType.BOOL)]
        return {self.type(element, width): (element, width) for width in (1, *WIDTHS) for element in own}

    def all_of(self, value: str, element: ElementType, width: int) -> str:
        """Return ``width`` times the same value."""
        if width == 1:
            return value
        return self.splat.format(kind=self.type(element, width), value=value)

    def function(self, name: str, element: ElementType, width: int) -> str:
        """Return what a function of the standard library is called for a type, or a helper in its place."""
        if self.own_functions:
            return name
        if element.is_float and width == 1 and name not in _NOT_IN_C:
            return name if element is ElementType.FLOAT64 else f"{name}f"
        return f"{name}_{self.type(element, width)}"


_NOT_IN_C = frozenset({"rsqrt"})


def value_bytes(element: ElementType) -> int:
    """Return the bytes of a value in a variable."""
    return 4 if element in (ElementType.FLOAT16, ElementType.BOOL) else element.size


_OPENCL_SCALARS = {
    ElementType.FLOAT16: "float",
    ElementType.FLOAT32: "float",
    ElementType.FLOAT64: "double",
    ElementType.INT8: "char",
    ElementType.INT16: "short",
    ElementType.INT32: "int",
    ElementType.INT64: "long",
    ElementType.UINT8: "uchar",
    ElementType.UINT16: "ushort",
    ElementType.UINT32: "uint",
    ElementType.UINT64: "ulong",
    ElementType.BOOL: "int",
}

OPENCL = Dialect(
    scalars=_OPENCL_SCALARS,
    vectors={element: f"{name}{{n}}" for element, name in _OPENCL_SCALARS.items()},
    suffixes={ElementType.UINT32: "u", ElementType.INT64: "L", ElementType.UINT64: "UL"},
    half="half",
    splat="({kind})({value})",
    convert="convert_{kind}({value})",
    reinterpret="as_{kind}({value})",
    masks_are_truths=True,
    own_functions=True,
)

_INTEGERS = tuple(e for e in ElementType if not e.is_float and e is not ElementType.BOOL)

C = Dialect(
    scalars={
        ElementType.FLOAT16: "float",
        ElementType.FLOAT32: "float",
        ElementType.FLOAT64: "double",
        ElementType.BOOL: "int",
        **{element: f"{element.value}_t" for element in _INTEGERS},
    },
    vectors={
        ElementType.FLOAT16: "float32x{n}",
        ElementType.FLOAT32: "float32x{n}",
        ElementType.FLOAT64: "float64x{n}",
        ElementType.BOOL: "int32x{n}",
        **{element: f"{element.value}x{{n}}" for element in _INTEGERS},
    },
    suffixes={ElementType.UINT32: "u", ElementType.INT64: "LL", ElementType.UINT64: "ULL"},
    half="_Float16",
    splat="splat_{kind}({value})",
    convert="__builtin_convertvector({value}, {kind})",
    reinterpret="(({kind})({value}))",
    masks_are_truths=False,
    own_functions=False,
)
