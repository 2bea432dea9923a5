"""The types of CSL: immutable, compared by what they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal


class Type:
    """A type; ``str`` of it is how CSL spells it."""

    __slots__ = ()


@dataclass(frozen=True)
class Named(Type):
    """A type that is only its name: ``bool``, ``void``, ``comptime_int``, ``color``, ``mem1d_dsd``, ..."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Integer(Type):
    """``i16``, ``u32``; any width from 0 to 16777215 bits."""

    bits: int
    signed: bool

    def __str__(self) -> str:
        return f"{'i' if self.signed else 'u'}{self.bits}"

    @property
    def least(self) -> int:
        """The least value."""
        return -(1 << (self.bits - 1)) if self.signed and self.bits else 0

    @property
    def greatest(self) -> int:
        """The greatest value."""
        return (1 << (self.bits - (1 if self.signed and self.bits else 0))) - 1

    def wrapped(self, value: int) -> int:
        """Return the value of this type that has the same low bits."""
        low = value & ((1 << self.bits) - 1)
        return low - (1 << self.bits) if self.signed and low > self.greatest else low


@dataclass(frozen=True)
class Float(Type):
    """``f16``, ``f32``, ``bf16``, ``cb16``."""

    name: str
    bits: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Array(Type):
    """``[2, 3]f32``, in row-major order."""

    shape: tuple[int, ...]
    element: Type

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.shape))}]{self.element}"

    @property
    def count(self) -> int:
        """The number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Pointer(Type):
    """``*T``, ``*const T``; ``many``: ``[*]T``, ``[*]const T``."""

    target: Type
    is_const: bool = False
    many: bool = False

    def __str__(self) -> str:
        return f"{'[*]' if self.many else '*'}{'const ' if self.is_const else ''}{self.target}"


@dataclass(frozen=True)
class Function(Type):
    """``fn(u32)void`` or ``task(f16)void``. ``None`` as a parameter: ``anytype``; as the result: generic."""

    kind: Literal["fn", "task"]
    parameters: tuple[Type | None, ...]
    result: Type | None

    def __str__(self) -> str:
        parameters = ", ".join("anytype" if p is None else str(p) for p in self.parameters)
        return f"{self.kind}({parameters}){'' if self.result is None else self.result}"


@dataclass(frozen=True)
class StructField:
    """A field of a struct or union; ``default``: the value where a literal leaves it out, or ``None``."""

    name: str
    type: Type
    default: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class Struct(Type):
    """A struct or union.

    ``origin``: the node that declares it, ``None`` for the type of an anonymous literal. Types of one
    origin and equal fields are one type.
    """

    kind: Literal["struct", "union"]
    name: str = field(compare=False)
    fields: tuple[StructField, ...]
    layout: str = ""
    origin: object = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.kind, self.fields, self.layout, self.origin))

    def __str__(self) -> str:
        if self.name:
            return self.name
        return f"{self.kind} {{ {', '.join(f'{f.name}: {f.type}' for f in self.fields)} }}"

    def field(self, name: str) -> StructField | None:
        """Return the field of that name, if there is one."""
        return next((f for f in self.fields if f.name == name), None)


@dataclass(frozen=True)
class Tuple(Type):
    """The type of ``.{ 1, RAMP }``; it has no name in CSL."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f".{{ {', '.join(map(str, self.elements))} }}"


@dataclass(frozen=True)
class Enum(Type):
    """``enum(u16) { a, b = 3 }``; ``members``: names with their numbers."""

    name: str = field(compare=False)
    tag: Integer
    members: tuple[tuple[str, int], ...]
    origin: object = None

    def __str__(self) -> str:
        return self.name or f"enum({self.tag})"


VOID = Named("void")
BOOL = Named("bool")
COMPTIME_INT = Named("comptime_int")
COMPTIME_FLOAT = Named("comptime_float")
COMPTIME_STRING = Named("comptime_string")
ENUM_LITERAL = Named("enum literal")
TYPE = Named("type")
MODULE = Named("imported_module")
RANGE = Named("range")
COMPTIME_STRUCT = Named("comptime_struct")
"""Any struct; SDK 2.10 has it no more, our libraries' text may use it."""

COLOR = Named("color")
DIRECTION = Named("direction")
INPUT_QUEUE = Named("input_queue")
OUTPUT_QUEUE = Named("output_queue")
DATA_TASK_ID = Named("data_task_id")
LOCAL_TASK_ID = Named("local_task_id")
CONTROL_TASK_ID = Named("control_task_id")
MICROTHREAD_ID = Named("ut_id")

DSR_DEST = Named("dsr_dest")
DSR_SRC0 = Named("dsr_src0")
DSR_SRC1 = Named("dsr_src1")
XDSR = Named("xdsr")
STRIDE_REGISTER = Named("sr")

MEM1D_DSD = Named("mem1d_dsd")
MEM4D_DSD = Named("mem4d_dsd")
FABIN_DSD = Named("fabin_dsd")
FABOUT_DSD = Named("fabout_dsd")
FIFO_DSD = Named("fifo_dsd")

I8, I16, I32, I64 = (Integer(n, True) for n in (8, 16, 32, 64))
U8, U16, U32, U64 = (Integer(n, False) for n in (8, 16, 32, 64))
F16, F32 = Float("f16", 16), Float("f32", 32)
BF16, CB16 = Float("bf16", 16), Float("cb16", 16)

HANDLES = frozenset(
    {
        COLOR,
        DIRECTION,
        INPUT_QUEUE,
        OUTPUT_QUEUE,
        DATA_TASK_ID,
        LOCAL_TASK_ID,
        CONTROL_TASK_ID,
        MICROTHREAD_ID,
        DSR_DEST,
        DSR_SRC0,
        DSR_SRC1,
        XDSR,
        STRIDE_REGISTER,
    }
)
"""Types whose values are a small number that means something to the machine."""

DESCRIPTORS = frozenset({MEM1D_DSD, MEM4D_DSD, FABIN_DSD, FABOUT_DSD, FIFO_DSD})

_BY_NAME: dict[str, Type] = {
    str(t): t
    for t in (
        *(VOID, BOOL, TYPE, MODULE, F16, F32, BF16, CB16),
        *(COMPTIME_INT, COMPTIME_FLOAT, COMPTIME_STRING),
        *HANDLES,
        *DESCRIPTORS,
    )
}

WIDEST = 16777215
"""The most bits of an integer type."""


def type_named(name: str) -> Type | None:
    """Return the type that a name means without a declaration, if it means one."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    digits = name[1:]
    if name[:1] in ("i", "u") and digits.isascii() and digits.isdigit() and len(digits) <= len(str(WIDEST)):
        bits = int(digits)
        return Integer(bits, name[0] == "i") if bits <= WIDEST and str(bits) == digits else None
    return None


def is_number(type_: Type) -> bool:
    """Return whether values of the type can be added."""
    return isinstance(type_, Integer | Float) or type_ in (COMPTIME_INT, COMPTIME_FLOAT)


def is_comptime_only(type_: Type) -> bool:
    """Return whether values of the type exist at compile time only."""
    if isinstance(type_, Array):
        return is_comptime_only(type_.element)
    if isinstance(type_, Struct):
        return any(is_comptime_only(f.type) for f in type_.fields)
    return isinstance(type_, Tuple) or type_ in _COMPTIME_ONLY


_COMPTIME_ONLY = frozenset(
    {VOID, COMPTIME_INT, COMPTIME_FLOAT, COMPTIME_STRING, ENUM_LITERAL, TYPE, MODULE, RANGE}
)
