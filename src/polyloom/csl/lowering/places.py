"""Places: what can be assigned to, and what ``&`` takes the address of."""

from __future__ import annotations

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Memory, Place, Register, fail
from polyloom.csl.lowering.conversions import address, part, read, typed
from polyloom.csl.lowering.emitted.c_types import size_of
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.values import Value
from polyloom.diagnostics import Span


def place(body: Body, node: syntax.Expression) -> Place | None:
    """Return the place that an expression means, or None if it means a value."""
    match node:
        case syntax.Name(name=name):
            return _named(body, name, node.span)
        case syntax.Field(base=base, name=name):
            return _field(body, base, name, node.span)
        case syntax.Index(base=base, indices=indices):
            return _element(body, base, indices, node.span)
        case syntax.Dereference(base=base):
            return _pointed(body, base, node.span)
    return None


def _named(body: Body, name: str, span: Span) -> Place | None:
    found = body.scope.lookup(name)
    if isinstance(found, comptime.Runtime):
        return found.payload  # type: ignore[no-any-return]
    if isinstance(found, values.Variable):
        return of_variable(body, found)
    if found is None:
        fail("csl-name", f"there is no `{name}`", span)
    return None


def of_variable(body: Body, variable: values.Variable) -> Place:
    """Return the place of a variable of a module."""
    if variable.type in types.DESCRIPTORS:
        return Register(variable.type, body.unit.dsd_variable(variable), variable.is_const)
    pointer = types.Pointer(variable.type, variable.is_const)
    return Memory(variable.type, tree.Address(pointer, body.unit.symbol_of(variable)), variable.is_const)


def _field(body: Body, base: syntax.Expression, name: str, span: Span) -> Place | None:
    whole = body.evaluate(base)
    if isinstance(whole, values.ModuleValue):
        member = whole.module.member(name)
        return of_variable(body, member) if isinstance(member, values.Variable) else None
    found = place(body, base)
    if found is not None and isinstance(found.type, types.Pointer):
        found = _pointed(body, base, span)
    if found is None:
        return None
    if not (isinstance(found.type, types.Struct) and found.type.field(name)):
        return fail("csl-name", f"`{found.type}` has no field `{name}`", span)
    return part(found, name)


def _pointed(body: Body, base: syntax.Expression, span: Span) -> Place | None:
    pointer = body.operand(base)
    if isinstance(pointer, values.Address):
        expression: tree.Expression = address(body, pointer)
    elif isinstance(pointer, Value):
        expression = typed(body, pointer, pointer.type, span)
    else:
        expression = pointer
    kind = expression.type
    if not isinstance(kind, types.Pointer):
        return fail("csl-type", f"`{kind}` is no pointer", span, "", "dereference a pointer")
    if kind.many:
        return fail(
            "csl-type", f"`{kind}` points at an unknown number of elements", span, "", "give an index"
        )
    return Memory(kind.target, expression, kind.is_const)


def _element(
    body: Body, base: syntax.Expression, indices: tuple[syntax.Expression, ...], span: Span
) -> Place | None:
    whole = indexed_array(body, base, span)
    if whole is None:
        return None
    if isinstance(whole.type, types.Pointer):
        kind = whole.type
        return Memory(kind.target, _many(body, whole, indices, span), kind.is_const)
    assert isinstance(whole.type, types.Array)
    shape, element = whole.type.shape, whole.type.element
    if len(indices) != len(shape):
        fail("csl-index", f"{len(indices)} indices of `{whole.type}`", span, "", f"give {len(shape)} of them")
    at, rest = whole.address, whole.type.count
    for extent, index in zip(shape, indices, strict=True):
        rest //= max(extent, 1)
        at = _offset(body, at, index, rest * size_of(element), extent, types.Pointer(element), span)
    return Memory(element, at, whole.is_const)


def _many(body: Body, whole: Memory, indices: tuple[syntax.Expression, ...], span: Span) -> tree.Expression:
    kind = whole.type
    assert isinstance(kind, types.Pointer)
    if len(indices) != 1:
        fail("csl-index", f"{len(indices)} indices of `{kind}`", span, "", "give one")
    size = size_of(kind.target)
    return _offset(body, whole.address, indices[0], size, None, types.Pointer(kind.target), span)


def indexed_array(body: Body, base: syntax.Expression, span: Span) -> Memory | None:
    """Return the array that is indexed; of a ``[*]T`` its address, under the pointer's type."""
    value = body.evaluate(base)
    found: Place | None = None
    if isinstance(value, values.Address | values.NumberAddress):
        kind = value.type
        at = address(body, value) if isinstance(value, values.Address) else typed(body, value, kind, span)
        return Memory(kind if kind.many else kind.target, at, kind.is_const)
    if isinstance(value, values.ArrayValue):
        found = place(body, base)
        if found is None:
            return Memory(value.type, body.unit.constant_array(value), True)
    found = found or place(body, base)
    if found is None:
        return _computed(body, base, span)
    if isinstance(found.type, types.Pointer):
        pointer, kind = read(body, found, span), found.type
        return Memory(kind if kind.many else kind.target, pointer, kind.is_const)
    if isinstance(found.type, types.Array) and isinstance(found, Memory):
        return found
    return fail("csl-type", f"`{found.type}` has no elements", span, "", "index an array or a pointer")


def _computed(body: Body, base: syntax.Expression, span: Span) -> Memory | None:
    whole = body.operand(base)
    if isinstance(whole, values.ArrayValue):
        return Memory(whole.type, body.unit.constant_array(whole), True)
    if isinstance(whole, tree.Load) and isinstance(whole.type, types.Array):
        return Memory(whole.type, whole.address, True)
    if not isinstance(whole, Value) and isinstance(whole.type, types.Pointer):
        kind = whole.type
        return Memory(kind if kind.many else kind.target, whole, kind.is_const)
    return None


def _offset(
    body: Body,
    base: tree.Expression,
    index: syntax.Expression,
    size: int,
    count: int | None,
    kind: types.Type,
    span: Span,
) -> tree.Expression:
    value = body.operand(index)
    if isinstance(value, Value):
        number = comptime.whole_number(value, index.span, "an index")
        if count is not None and not 0 <= number < count:
            fail("csl-bounds", f"index {number} of {count} elements", index.span)
        if isinstance(base, tree.Address):
            return tree.Address(kind, base.symbol, base.offset + number * size)
        expression: tree.Expression = tree.Constant(types.I32, number)
    else:
        if not isinstance(value.type, types.Integer):
            fail("csl-type", f"an index of type `{value.type}`", index.span, "", "an index is an integer")
        expression = value
    return tree.Offset(kind, base, expression, size, count, span.text, span)
