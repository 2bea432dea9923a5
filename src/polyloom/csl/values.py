"""Values that are known at compile time: immutable, each with its type."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

from polyloom.csl import types

if TYPE_CHECKING:
    from polyloom.csl.syntax import tree
    from polyloom.csl.types import Type


class Value:
    """A value; every subclass has a ``type``."""

    __slots__ = ()
    type: Type


@dataclass(frozen=True)
class Scalar(Value):
    """A number, a boolean, a string or ``void``.

    ``value``: an ``int`` for integers, a ``float`` (already rounded to the type) for floats, a ``bool``, a
    ``str`` for ``comptime_string`` and enum literals, ``None`` for ``void``.
    """

    type: Type
    value: Any


@dataclass(frozen=True)
class TypeValue(Value):
    """A type as a value."""

    of: Type
    type: Type = types.TYPE


@dataclass(frozen=True)
class Handle(Value):
    """A color, queue, task id, microthread id or register, or an index into ``DIRECTIONS``."""

    type: Type
    id: int


DIRECTIONS = ("WEST", "EAST", "SOUTH", "NORTH", "RAMP")
"""The directions in the order of their ids."""


@dataclass(frozen=True)
class EnumValue(Value):
    """A member of an enum, by its number."""

    type: types.Enum
    value: int


@dataclass(frozen=True)
class ArrayValue(Value):
    """An array: its ``elements`` in row-major order; one alone stands for all of them where ``is_fill``."""

    type: types.Array
    elements: tuple[Value, ...]
    is_fill: bool = False

    def __iter__(self) -> Iterator[Value]:
        return repeat(self.elements[0], self.type.count) if self.is_fill else iter(self.elements)

    def at(self, index: int) -> Value:
        """Return the element at a row-major index."""
        return self.elements[0 if self.is_fill else index]


@dataclass(frozen=True)
class StructValue(Value):
    """The values of ``type.fields`` in their order. Of a union only the one of index ``active`` is set."""

    type: types.Struct
    fields: tuple[Value, ...]
    active: int | None = None

    def get(self, name: str) -> Value | None:
        """Return the value of a field, if there is one of that name."""
        for f, value in zip(self.type.fields, self.fields, strict=True):
            if f.name == name:
                return value
        return None


@dataclass(frozen=True)
class TupleValue(Value):
    """``.{ RAMP, EAST }``."""

    type: types.Tuple
    elements: tuple[Value, ...]


@dataclass(frozen=True)
class Range(Value):
    """What ``@range(T, start, stop, step)`` visits: numbers of type ``of``."""

    of: Type
    start: int
    stop: int
    step: int
    type: Type = types.RANGE


@dataclass(frozen=True)
class Uninitialised(Value):
    """What a ``var`` without an initializer holds."""

    type: Type


@dataclass(frozen=True, eq=False)
class ModuleValue(Value):
    """An imported module; ``module``: a ``comptime.modules.Module``."""

    module: Any
    type: Type = types.MODULE


@dataclass(frozen=True)
class FunctionValue(Value):
    """A function or task of a module; ``module``: a ``comptime.modules.Module``."""

    type: types.Function
    function: tree.Function
    module: Any


@dataclass(eq=False)
class Variable:
    """A place that has an address: a global of a module, or a local of what runs at compile time.

    ``value``: what a global holds when the program starts, what a local (``is_local``) holds now.
    ``module`` and ``declaration`` say where a global is from. Compared by identity.
    """

    name: str
    type: Type
    value: Value
    is_const: bool
    module: Any = field(repr=False, default=None)
    declaration: tree.Declaration | None = field(repr=False, default=None)
    is_local: bool = False


@dataclass(frozen=True)
class Address(Value):
    """A pointer into a variable: ``path`` leads from the whole to the part, by fields and indices."""

    type: types.Pointer
    variable: Variable
    path: tuple[str | tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class NumberAddress(Value):
    """A pointer made of a number with ``@bitcast`` or ``@ptrcast``, in the machine's words."""

    type: types.Pointer
    address: int


@dataclass(frozen=True)
class MemoryDsd(Value):
    """A ``mem1d_dsd`` or ``mem4d_dsd``.

    Element ``(i0, i1, ...)``, ``ik < extents[k]``, outermost first, lies ``offset + sum(ik * strides[k])``
    elements behind ``base``, which points at the first element of an array, whatever its shape.
    ``options``: the other fields given (``wavelet_index_offset``, ``save_address``, ...).
    """

    type: Type
    base: Address | NumberAddress
    element: Type
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class FabricDsd(Value):
    """A ``fabin_dsd`` or ``fabout_dsd``. ``options``: the other fields given (``simd_mode``, ...)."""

    type: Type
    extent: int
    queue: Handle | None = None
    color: Handle | None = None
    control: bool = False
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, eq=False)
class Fifo(Value):
    """What ``@allocate_fifo(buffer, options)`` makes; each call makes another."""

    buffer: Address
    options: tuple[tuple[str, Value], ...] = ()
    type: Type = types.FIFO_DSD


NOTHING = Scalar(types.VOID, None)
TRUE, FALSE = Scalar(types.BOOL, True), Scalar(types.BOOL, False)


def boolean(value: bool) -> Scalar:
    """Return ``true`` or ``false``."""
    return TRUE if value else FALSE


def integer(value: int, type_: Type = types.COMPTIME_INT) -> Scalar:
    """Return an integer; without a type a ``comptime_int``."""
    return Scalar(type_, value)


def string(value: str) -> Scalar:
    """Return a ``comptime_string``."""
    return Scalar(types.COMPTIME_STRING, value)


def rounded(value: float, type_: Type) -> float:
    """Return the nearest value of a floating point type, ties to even; ``comptime_float`` keeps all."""
    if not isinstance(type_, types.Float) or not math.isfinite(value):
        return value
    if type_.name in ("f16", "f32"):
        code = "e" if type_.name == "f16" else "f"
        try:
            return float(struct.unpack(code, struct.pack(code, value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    mantissa, exponents = (7, 8) if type_.name == "bf16" else (9, 6)
    bias = (1 << (exponents - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1, 1 - bias)
    unit = math.ldexp(1.0, exponent - mantissa)
    near = round(value / unit) * unit
    return near if abs(near) < math.ldexp(1.0, bias + 1) else math.copysign(math.inf, value)


def zero(type_: Type) -> Value | None:
    """Return what ``@zeros`` holds of an element type, or ``None`` if the type has no zero."""
    if isinstance(type_, types.Integer) or type_ == types.COMPTIME_INT:
        return Scalar(type_, 0)
    if isinstance(type_, types.Float) or type_ == types.COMPTIME_FLOAT:
        return Scalar(type_, 0.0)
    if type_ == types.BOOL:
        return FALSE
    if isinstance(type_, types.Array):
        inner = zero(type_.element)
        return None if inner is None else ArrayValue(type_, (inner,), is_fill=True)
    if isinstance(type_, types.Struct) and type_.kind == "struct":
        fields = tuple(zero(f.type) for f in type_.fields)
        return None if None in fields else StructValue(type_, fields)  # type: ignore[arg-type]
    return None
