"""Values of one type as another: implicitly, by `@as`, by `@bitcast`."""

from __future__ import annotations

import math
import struct

from polyloom.csl import types, values
from polyloom.csl.comptime.faults import fault
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import PolyloomError, Span

_AS = "convert it with `@as(type, value)`"


def convert(value: Value, target: Type, span: Span) -> Value:
    """Return a value as one of type ``target`` where that needs no word in the program.

    Integers that are known convert to every integer type that holds them; ``comptime_int`` and
    ``comptime_float`` to floating point types; literals to structs, enums and arrays; pointers to arrays to
    many-item pointers, and pointers to pointers to ``const``.
    Errors: ``csl-type``, ``csl-range``, ``csl-field``.
    """
    source = value.type
    if source == target:
        return value
    if isinstance(value, values.Scalar):
        converted = _scalar(value, target, span)
        if converted is not None:
            return converted
    elif isinstance(value, values.StructValue):
        if target == types.COMPTIME_STRUCT:
            return value
        if isinstance(target, types.Struct) and value.type.origin is None:
            return _struct(value, target, span)
        if not value.fields and isinstance(target, types.Array) and target.count == 0:
            return values.ArrayValue(target, ())
    elif isinstance(value, values.TupleValue):
        if isinstance(target, types.Array) and len(value.elements) == target.count:
            return values.ArrayValue(target, tuple(convert(e, target.element, span) for e in value.elements))
    elif isinstance(value, values.Address | values.NumberAddress):
        if isinstance(target, types.Pointer) and points_as(value.type, target):
            return _retyped(value, target)
    elif isinstance(value, values.FunctionValue):
        if isinstance(target, types.Function) and _same_signature(value.type, target):
            return value
    elif isinstance(value, values.Uninitialised):
        return values.Uninitialised(target)
    if value.type == target:
        return value
    raise _mismatch(source, target, span)


def _mismatch(source: Type, target: Type, span: Span) -> PolyloomError:
    helps = [_AS] if _is_plain(source) and _is_plain(target) else [f"give a value of type `{target}`"]
    return fault("csl-type", f"`{source}` where `{target}` is expected", span, helps=helps)


def _is_plain(type_: Type) -> bool:
    return types.is_number(type_) or type_ == types.BOOL


def _scalar(value: values.Scalar, target: Type, span: Span) -> Value | None:
    if isinstance(value.type, types.Integer) or value.type == types.COMPTIME_INT:
        if isinstance(target, types.Integer):
            if not target.least <= value.value <= target.greatest:
                raise fault(
                    "csl-range",
                    f"{value.value} is no `{target}`",
                    span,
                    notes=[f"`{target}` holds {target.least} to {target.greatest}"],
                    helps=["use a wider type, or `@bitcast` for the same bits"],
                )
            return values.Scalar(target, value.value)
        if target == types.COMPTIME_INT:
            return values.Scalar(target, value.value)
        if value.type == types.COMPTIME_INT and (
            isinstance(target, types.Float) or target == types.COMPTIME_FLOAT
        ):
            return values.Scalar(target, values.rounded(_to_float(value.value, span), target))
    if value.type == types.COMPTIME_FLOAT and isinstance(target, types.Float):
        return values.Scalar(target, values.rounded(value.value, target))
    if value.type == types.ENUM_LITERAL and isinstance(target, types.Enum):
        return enum_member(target, value.value, span)
    return None


def _to_float(value: int, span: Span) -> float:
    try:
        return float(value)
    except OverflowError:
        raise fault(
            "csl-range", "an integer too large for a float", span, helps=["use a smaller number"]
        ) from None


def enum_member(enum: types.Enum, name: str, span: Span) -> values.EnumValue:
    """Return the member of that name. Errors: ``csl-field``."""
    for member, number in enum.members:
        if member == name:
            return values.EnumValue(enum, number)
    raise fault(
        "csl-field",
        f"`{enum}` has no member `{name}`",
        span,
        helps=["its members are " + ", ".join(f"`{m}`" for m, _ in enum.members)],
    )


def _struct(value: values.StructValue, target: types.Struct, span: Span) -> Value:
    given = {f.name: v for f, v in zip(value.type.fields, value.fields, strict=True)}
    return struct_of(target, given, span)


def struct_of(target: types.Struct, given: dict[str, Value], span: Span) -> values.StructValue:
    """Return a struct with the fields given, the others by default. Errors: ``csl-field``."""
    names = [f.name for f in target.fields]
    for name in given:
        if name not in names:
            raise fault(
                "csl-field",
                f"`{target}` has no field `{name}`",
                span,
                helps=["its fields are " + ", ".join(f"`{n}`" for n in names)],
            )
    if target.kind == "union":
        return _union_of(target, given, span)
    found: list[Value] = []
    for field in target.fields:
        value = given.get(field.name, field.default)
        if value is None:
            raise fault(
                "csl-field",
                f"field `{field.name}` of `{target}` has no value",
                span,
                helps=[f"add `.{field.name} = ...`; all fields of a struct are set"],
            )
        found.append(convert(value, field.type, span))
    return values.StructValue(target, tuple(found))


def _union_of(target: types.Struct, given: dict[str, Value], span: Span) -> values.StructValue:
    if len(given) != 1:
        raise fault(
            "csl-field", f"a literal of the union `{target}` sets one field", span, helps=["set exactly one"]
        )
    ((name, value),) = given.items()
    active = next(i for i, f in enumerate(target.fields) if f.name == name)
    converted = convert(value, target.fields[active].type, span)
    fields = tuple(
        converted if i == active else values.Uninitialised(f.type) for i, f in enumerate(target.fields)
    )
    return values.StructValue(target, fields, active)


def points_as(source: Type, target: types.Pointer) -> bool:
    """Return whether a pointer of type ``source`` serves as one of type ``target``."""
    if not isinstance(source, types.Pointer) or (source.is_const and not target.is_const):
        return False
    if source.target == target.target:
        return source.many == target.many or target.many
    return target.many and isinstance(source.target, types.Array) and source.target.element == target.target


def _retyped(value: values.Address | values.NumberAddress, target: types.Pointer) -> Value:
    if isinstance(value, values.NumberAddress):
        return values.NumberAddress(target, value.address)
    return values.Address(target, value.variable, value.path)


def _same_signature(source: types.Function, target: types.Function) -> bool:
    return (
        source.kind == target.kind
        and source.parameters == target.parameters
        and source.result == target.result
    )


def cast(value: Value, target: Type, span: Span) -> Value:
    """Return ``@as(target, value)``.

    Floats round towards zero to integers; a number is the boolean "is not zero"; integers keep their low
    bits. Errors: ``csl-type``, ``csl-range`` for a float that no integer of the type is near.
    """
    if value.type == target:
        return value
    source = value.type
    if isinstance(value, values.EnumValue) and isinstance(target, types.Integer):
        return values.Scalar(target, target.wrapped(value.value))
    if isinstance(target, types.Enum) and isinstance(value, values.Scalar) and isinstance(value.value, int):
        return _enum_of(value.value, target, span)
    if not (isinstance(value, values.Scalar) and _is_plain(source) and _is_plain(target)):
        return convert(value, target, span)
    number = value.value
    if target == types.BOOL:
        return values.boolean(bool(number))
    if isinstance(target, types.Float) or target == types.COMPTIME_FLOAT:
        return values.Scalar(target, values.rounded(_to_float(number, span), target))
    if isinstance(number, float):
        if not math.isfinite(number):
            raise fault("csl-range", f"{number} is no integer", span, helps=["convert finite numbers only"])
        number = math.trunc(number)
        if isinstance(target, types.Integer):
            return convert(values.integer(number), target, span)
    if isinstance(target, types.Integer):
        return values.Scalar(target, target.wrapped(int(number)))
    return values.Scalar(target, int(number))


def _enum_of(number: int, enum: types.Enum, span: Span) -> Value:
    if number not in [n for _, n in enum.members]:
        raise fault(
            "csl-range",
            f"{number} is no member of `{enum}`",
            span,
            helps=["its members are " + ", ".join(f"`{m}` = {n}" for m, n in enum.members)],
        )
    return values.EnumValue(enum, number)


_FLOAT_CODES = {"f16": ("e", "H"), "f32": ("f", "I")}


def bitcast(value: Value, target: Type, span: Span) -> Value:
    """Return the value of type ``target`` that has the same bits. Errors: ``csl-type``."""
    if value.type == target:
        return value
    if isinstance(target, types.Pointer):
        if isinstance(value, values.Scalar) and isinstance(value.value, int):
            return values.NumberAddress(target, value.value & 0xFFFF)
        if isinstance(value, values.Address | values.NumberAddress):
            return _retyped(value, target)
    bits = _bits_of(value, target, span)
    if isinstance(target, types.Integer):
        return values.Scalar(target, target.wrapped(bits))
    if isinstance(target, types.Float) and target.name in _FLOAT_CODES:
        code, word = _FLOAT_CODES[target.name]
        return values.Scalar(target, struct.unpack("<" + code, struct.pack("<" + word, bits))[0])
    if target == types.BOOL:
        return values.boolean(bool(bits & 1))
    raise _mismatch(value.type, target, span)


def _bits_of(value: Value, target: Type, span: Span) -> int:
    source = value.type
    if isinstance(value, values.NumberAddress):
        return value.address
    if not isinstance(value, values.Scalar):
        raise _mismatch(source, target, span)
    if source == types.COMPTIME_INT and isinstance(target, types.Integer | types.Float):
        return int(value.value) & ((1 << target.bits) - 1)
    wide = _width(source)
    if wide is None or wide != _width(target):
        raise fault(
            "csl-type",
            f"`{source}` and `{target}` differ in width",
            span,
            helps=["`@bitcast` keeps the bits; convert the number with `@as` first"],
        )
    if isinstance(source, types.Float):
        if source.name not in _FLOAT_CODES:
            raise _mismatch(source, target, span)
        code, word = _FLOAT_CODES[source.name]
        return int(struct.unpack("<" + word, struct.pack("<" + code, value.value))[0])
    return int(value.value) & ((1 << wide) - 1)


def _width(type_: Type) -> int | None:
    if isinstance(type_, types.Integer | types.Float):
        return type_.bits
    return 1 if type_ == types.BOOL else 16 if isinstance(type_, types.Pointer) else None
