"""Values as typed expressions, and the conversions that the language makes by itself.

At run time these are: an array's address to the address of its first element (``*[n]T`` to ``[*]T``), a
pointer to a pointer to const, a struct literal to a struct type with the same fields. Numbers are
converted by themselves only where they are known at compile time and the type can hold them; everything
else needs ``@as``.
"""

from __future__ import annotations

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Memory, Operand, Place, Register, fail
from polyloom.csl.lowering.emitted.c_types import check_layout, field_offset, size_of
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Source, Span

NO_SPAN = Span(Source("", ""), 0, 0)


def typed(body: Body, operand: Operand, wanted: Type, span: Span) -> tree.Expression:
    """Return an operand as an expression of the type. Errors: ``csl-type``, ``csl-runtime-type``."""
    if isinstance(operand, Value):
        return constant(body, comptime.convert(operand, wanted, span), span)
    kind = operand.type
    if kind == wanted:
        return operand
    if isinstance(wanted, types.Pointer) and comptime.points_as(kind, wanted):
        return with_type(operand, wanted)
    if isinstance(operand, tree.StructValue) and isinstance(wanted, types.Struct):
        return _struct(body, operand, wanted, span)
    return fail(
        "csl-type",
        f"found a value of type `{kind}`, expected `{wanted}`",
        span,
        f"of type `{kind}`",
        _way_out(kind, wanted),
    )


def with_type(expression: tree.Expression, kind: Type) -> tree.Expression:
    """Return the same bits under another type of pointers."""
    return tree.Bits(kind, expression) if not isinstance(expression, tree.Address) else tree.Address(
        kind, expression.symbol, expression.offset
    )  # fmt: skip


def _way_out(kind: Type, wanted: Type) -> str:
    if types.is_number(kind) and types.is_number(wanted):
        return f"numbers of different types are not converted by themselves: write `@as({wanted}, ...)`"
    if isinstance(kind, types.Pointer) and isinstance(wanted, types.Pointer):
        return f"write `@ptrcast({wanted}, ...)` if the address is meant"
    return f"give it a value of type `{wanted}`"


def _struct(body: Body, operand: tree.StructValue, wanted: types.Struct, span: Span) -> tree.Expression:
    given = dict(operand.fields)
    fields = []
    for field in wanted.fields:
        if field.name not in given and field.default is None:
            fail("csl-type", f"the field `{field.name}` of `{wanted}` is missing", span)
        value = given.pop(field.name, field.default)
        fields.append((field.name, typed(body, value, field.type, span)))
    for name in given:
        fail("csl-type", f"`{wanted}` has no field `{name}`", span)
    body.unit.use_struct(wanted)
    return tree.StructValue(wanted, tuple(fields))


def constant(body: Body, value: Value, span: Span) -> tree.Expression:
    """Return a value that is known at compile time as an expression. Errors: ``csl-runtime-type``."""
    match value:
        case values.Scalar(type=kind, value=number):
            check_layout(kind, span)
            return tree.Constant(kind, number)
        case values.EnumValue(type=kind, value=number) | values.Handle(type=kind, id=number):
            return tree.Constant(kind, number)
        case values.Address():
            return address(body, value)
        case values.NumberAddress(type=kind, address=number):
            return tree.Constant(kind, number)
        case values.MemoryDsd() | values.FabricDsd() | values.Fifo():
            return body.unit.descriptor(body, value, span)
        case values.StructValue(type=struct, fields=fields):
            check_layout(struct, span)
            body.unit.use_struct(struct)
            parts = zip(struct.fields, fields, strict=True)
            return tree.StructValue(struct, tuple((f.name, constant(body, v, span)) for f, v in parts))
        case values.ArrayValue(type=array):
            check_layout(array, span)
            return tree.Load(array, body.unit.constant_array(value), span.text, span)
    check_layout(value.type, span)
    return fail("csl-runtime-type", f"a value of type `{value.type}` is known at compile time only", span)


def path_offset(value: values.Address) -> int:
    """Return how many bytes behind the beginning of its variable an address points."""
    kind, offset = value.variable.type, 0
    for step in value.path:
        if isinstance(step, str):
            assert isinstance(kind, types.Struct)
            field = kind.field(step)
            assert field is not None
            offset, kind = offset + field_offset(kind, step), field.type
        else:
            assert isinstance(kind, types.Array)
            index = 0
            for extent, i in zip(kind.shape, step, strict=True):
                index = index * extent + i
            offset, kind = offset + index * size_of(kind.element), kind.element
    return offset


def address(body: Body, value: values.Address) -> tree.Address:
    """Return the address of (a part of) a variable of a module."""
    return tree.Address(value.type, body.unit.symbol_of(value.variable), path_offset(value))


# ---- Places


def read(body: Body, place: Place, span: Span) -> tree.Expression:
    """Return what a place holds. A struct in memory is read field by field."""
    if isinstance(place, Register):
        expression: tree.Expression = place.variable
        for name in place.fields:
            field = expression.type.field(name)  # type: ignore[attr-defined]
            expression = tree.Field(field.type, expression, name)
        return expression
    if isinstance(place.type, types.Struct):
        body.unit.use_struct(place.type)
        parts = [(f.name, part(place, f.name)) for f in place.type.fields]
        return tree.StructValue(place.type, tuple((name, read(body, p, span)) for name, p in parts))
    check_layout(place.type, span)
    return tree.Load(place.type, place.address, span.text, span)


def part(place: Place, name: str) -> Place:
    """Return the place of a field."""
    assert isinstance(place.type, types.Struct)
    field = place.type.field(name)
    assert field is not None
    if isinstance(place, Register):
        return Register(field.type, place.variable, place.is_const, (*place.fields, name))
    return Memory(field.type, moved(place.address, field_offset(place.type, name)), place.is_const)


def moved(base: tree.Expression, offset: int) -> tree.Expression:
    """Return an address some bytes further on."""
    if offset == 0:
        return base
    if isinstance(base, tree.Address):
        return tree.Address(base.type, base.symbol, base.offset + offset)
    return tree.Binary(types.U16, "+", tree.Bits(types.U16, base), tree.Constant(types.U16, offset), NO_SPAN)


def write(body: Body, place: Place, value: tree.Expression, span: Span) -> None:
    """Emit an assignment. Arrays are copied, structs go field by field."""
    if isinstance(place, Register):
        _write_register(body, place, value)
    elif isinstance(place.type, types.Array):
        assert isinstance(value, tree.Load)
        size = size_of(place.type)
        body.out.append(tree.Copy(place.address, value.address, size, span.text))
    elif isinstance(place.type, types.Struct):
        source = _named(body, value)
        for field in place.type.fields:
            inner: tree.Expression = (
                dict(source.fields)[field.name]
                if isinstance(source, tree.StructValue)
                else tree.Field(field.type, source, field.name)
            )
            write(body, part(place, field.name), inner, span)
    else:
        body.out.append(tree.Store(place.type, place.address, value, span.text, span))


def _write_register(body: Body, place: Register, value: tree.Expression) -> None:
    if not place.fields:
        body.out.append(tree.Assign(place.variable, value))
        return
    assert isinstance(place.variable, tree.Local)
    body.out.append(tree.AssignField(place.variable, ".".join(place.fields), value))


def _named(body: Body, value: tree.Expression) -> tree.Expression:
    """Return a struct whose fields can be read without evaluating it twice."""
    name = body.fresh("whole")
    body.out.append(tree.Declare(name, value.type, value))
    return tree.Local(value.type, name)


def simple(body: Body, expression: tree.Expression, name: str = "value") -> tree.Expression:
    """Return an expression that may be evaluated more than once, with the same result."""
    if isinstance(expression, tree.Constant | tree.Address | tree.Local):
        return expression
    fresh = body.fresh(name)
    body.out.append(tree.Declare(fresh, expression.type, expression))
    return tree.Local(expression.type, fresh)
