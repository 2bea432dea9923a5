"""How values of CSL lie in memory and in C: sizes in bytes, names of C types."""

from __future__ import annotations

from polyloom.csl import types
from polyloom.csl.types import Type
from polyloom.diagnostics import PolyloomError, Span, error

WORD = 2
"""Bytes of the machine's words: the largest alignment that a value needs."""
C_BITS = (8, 16, 32, 64)
_FLOATS = {types.F16: "half", types.F32: "float"}
_SIXTEEN_BITS = types.HANDLES | {types.TYPE}


def has_layout(kind: Type) -> bool:
    """Return whether values of the type can lie in memory."""
    match kind:
        case types.Integer(bits=bits):
            return bits in C_BITS
        case types.Float():
            return kind in _FLOATS
        case types.Array(element=element):
            return has_layout(element)
        case types.Struct(kind=sort, fields=fields):
            return sort == "struct" and all(has_layout(field.type) for field in fields)
        case types.Pointer() | types.Enum():
            return True
    return kind == types.BOOL or kind in types.HANDLES


def check_layout(kind: Type, span: Span) -> None:
    """Refuse a type that has no values at run time. Errors: ``csl-runtime-type``."""
    if not has_layout(kind) and kind not in types.DESCRIPTORS:
        raise PolyloomError(
            error(
                "csl-runtime-type",
                f"there are no values of type `{kind}` at run time",
                span,
                helps=[
                    "integers have 8, 16, 32 or 64 bits at run time, floats are f16 or f32; "
                    "everything else must be known at compile time"
                ],
            )
        )


def size_of(kind: Type) -> int:
    """Return the bytes of a value."""
    match kind:
        case types.Integer(bits=bits) | types.Float(bits=bits):
            return bits // 8
        case types.Array(element=element):
            return kind.count * size_of(element)
        case types.Struct(fields=fields):
            end = _field_ends(kind)[-1] if fields else 0
            return end + end % min(alignment(kind), WORD)
        case types.Enum(tag=tag):
            return size_of(tag)
    return 1 if kind == types.BOOL else WORD


def alignment(kind: Type) -> int:
    """Return the alignment of a value inside another one."""
    match kind:
        case types.Array(element=element):
            return alignment(element)
        case types.Struct(fields=fields):
            return max((alignment(field.type) for field in fields), default=1)
    return min(size_of(kind), WORD)


def field_offset(kind: types.Struct, name: str) -> int:
    """Return where a field begins in its struct, in bytes."""
    for field, end in zip(kind.fields, _field_ends(kind), strict=True):
        if field.name == name:
            return end - size_of(field.type)
    raise KeyError(name)


def _field_ends(kind: types.Struct) -> list[int]:
    ends, end = [], 0
    for field in kind.fields:
        end += -end % alignment(field.type)
        end += size_of(field.type)
        ends.append(end)
    return ends


def c_type(kind: Type) -> str:
    """Return the C type of a value in a register."""
    match kind:
        case types.Integer(bits=bits, signed=signed):
            return f"{'' if signed else 'u'}int{bits}_t"
        case types.Float():
            return _FLOATS[kind]
        case types.Pointer():
            return "uint16_t"
        case types.Enum(tag=tag):
            return c_type(tag)
        case types.Struct():
            return f"struct {struct_name(kind)}"
        case types.Named(name="bool" | "void" as name):
            return name
    return "csl_dsd" if kind in types.DESCRIPTORS else "uint16_t"


def letters(kind: Type) -> str:
    """Return how the functions of the contract spell a number: ``i16``, ``u32``, ``f16``."""
    match kind:
        case types.Integer() | types.Float():
            return str(kind)
        case types.Enum(tag=tag):
            return str(tag)
        case types.Named(name="bool"):
            return "bool"
    return "u16"


def struct_name(kind: types.Struct) -> str:
    """Return the name of a struct in C: made of its fields, so that equal structs are one."""
    parts = "_".join(f"{field.name}_{_mangled(field.type)}" for field in kind.fields)
    return f"s_{parts}"


def struct_definition(kind: types.Struct) -> str:
    """Return the definition of a struct in C, laid out as in memory."""
    fields = " ".join(f"{c_type(field.type)} {field.name};" for field in kind.fields)
    return f"struct {struct_name(kind)} {{ {fields} }} __attribute__((packed));"


def _mangled(kind: Type) -> str:
    return "".join(c if c.isalnum() else "_" for c in c_type(kind))
