"""Expressions that name a place: its address, what lies there, and what is put there."""

from __future__ import annotations

from math import prod

from polyloom.csl import types, values
from polyloom.csl.comptime.faults import NotComptime, fault
from polyloom.csl.comptime.scope import Runtime, Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span

Step = str | tuple[int, ...]


def place(node: tree.Expression, scope: Scope) -> values.Address:
    """Return the address of what an expression names: a variable, an element, what a pointer points at.

    Of a value that lies nowhere the address is that of a copy. Errors: ``NotComptime`` where the way there
    needs a value of run time (not for a module's ``var`` itself), and those of ``evaluate``.
    """
    if isinstance(node, tree.Name):
        return _named(node, scope)
    if isinstance(node, tree.Field):
        return _field(node, scope)
    if isinstance(node, tree.Index):
        return _element(node, scope)
    if isinstance(node, tree.Dereference):
        return pointed_at(_evaluate(node.base, scope), node.span)
    return _copy(_evaluate(node, scope))


def _evaluate(node: tree.Expression, scope: Scope) -> Value:
    from polyloom.csl.comptime.evaluate import evaluate

    return evaluate(node, scope)


def _named(node: tree.Name, scope: Scope) -> values.Address:
    found = scope.lookup(node.name)
    if isinstance(found, Runtime):
        raise NotComptime(node.span, f"`{node.name}`")
    if isinstance(found, values.Variable):
        return values.Address(types.Pointer(found.type, found.is_const), found)
    return _copy(_evaluate(node, scope))


def _copy(value: Value) -> values.Address:
    variable = values.Variable("", value.type, value, is_const=True, is_local=True)
    return values.Address(types.Pointer(value.type, True), variable)


def _field(node: tree.Field, scope: Scope) -> values.Address:
    base = place(node.base, scope)
    target = base.type.target
    if target == types.MODULE:
        module = load(base, node.base.span)
        assert isinstance(module, values.ModuleValue)
        found = module.module.required(node.name, node.span)
        if isinstance(found, values.Variable):
            return values.Address(types.Pointer(found.type, found.is_const), found)
        return _copy(found)
    if isinstance(target, types.Pointer):
        base = pointed_at(load(base, node.base.span), node.span)
        target = base.type.target
    if isinstance(target, types.Struct):
        field = target.field(node.name)
        if field is not None:
            pointer = types.Pointer(field.type, base.type.is_const)
            return values.Address(pointer, base.variable, (*base.path, node.name))
    from polyloom.csl.comptime.evaluate import field_of

    return _copy(field_of(_whole(base, node.base.span), node.name, node.span))


def _whole(address: values.Address, span: Span) -> Value:
    """Return what lies at an address, or something of its type where only the type matters."""
    if isinstance(address.type.target, types.Struct):
        return values.StructValue(address.type.target, (values.NOTHING,) * len(address.type.target.fields))
    return load(address, span)


def _element(node: tree.Index, scope: Scope) -> values.Address:
    base = place(node.base, scope)
    if isinstance(base.type.target, types.Pointer):
        base = _through(load(base, node.base.span), node.span)
    target = base.type.target
    if not isinstance(target, types.Array):
        return _copy(_evaluate(node, scope))
    index = indices(node, target, scope)
    return values.Address(
        types.Pointer(target.element, base.type.is_const), base.variable, (*base.path, index)
    )


def _through(value: Value, span: Span) -> values.Address:
    """Return the address of the array that a pointer leads to, also where it points at its first element."""
    address = pointed_at(value, span)
    if address.type.many:
        whole = type_at(address.variable.type, address.path)
        if isinstance(whole, types.Array):
            return values.Address(types.Pointer(whole, address.type.is_const), address.variable, address.path)
        raise fault(
            "csl-pointer",
            "a pointer into the middle of an array is indexed at compile time",
            span,
            helps=["index the array itself"],
        )
    return address


def pointed_at(value: Value, span: Span) -> values.Address:
    """Return where a pointer points. Errors: ``csl-pointer``; ``NotComptime`` where it is not known."""
    if isinstance(value, values.Address):
        return value
    if isinstance(value, values.NumberAddress):
        raise NotComptime(span, f"what lies at address {value.address}")
    if isinstance(value, values.Uninitialised):
        raise NotComptime(span, "where the pointer points")
    raise fault(
        "csl-pointer",
        f"`{value.type}` is no pointer",
        span,
        helps=["`.*` and `&` belong to pointers: `p.*`, `&x`"],
    )


def indices(node: tree.Index, array: types.Array, scope: Scope) -> tuple[int, ...]:
    """Return the indices of an element, one a dimension; a flat index counts all of them in row-major order.

    Errors: ``csl-index``.
    """
    shape = array.shape
    found = tuple(whole_number(_evaluate(i, scope), i.span, "an index") for i in node.indices)
    if len(found) != len(shape):
        raise fault(
            "csl-index",
            f"{len(found)} {'index' if len(found) == 1 else 'indices'} for `{array}`",
            node.span,
            helps=[f"give it {len(shape)}, as `a[{', '.join('ijkl'[: len(shape)])}]`"],
        )
    for given, size, part in zip(found, shape, node.indices, strict=True):
        if not 0 <= given < size:
            raise fault(
                "csl-index",
                f"index {given} is outside `{array}`",
                part.span,
                helps=[
                    f"indices of this dimension go from 0 to {size - 1}" if size else "the array is empty"
                ],
            )
    return found


def whole_number(value: Value, span: Span, wanted: str) -> int:
    """Return an integer. Errors: ``csl-type``."""
    if isinstance(value, values.Scalar) and isinstance(value.value, int) and value.type != types.BOOL:
        return value.value
    raise fault(
        "csl-type", f"{wanted} is an integer, this is `{value.type}`", span, helps=["give an integer"]
    )


def flat(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Return the row-major position of an element."""
    return sum(i * prod(shape[k + 1 :]) for k, i in enumerate(index))


def type_at(type_: Type, path: tuple[Step, ...]) -> Type:
    """Return the type of the part of a variable that a path leads to."""
    for step in path:
        if isinstance(step, str):
            assert isinstance(type_, types.Struct)
            field = type_.field(step)
            assert field is not None
            type_ = field.type
        else:
            assert isinstance(type_, types.Array)
            type_ = type_.element
    return type_


def load(address: values.Address, span: Span) -> Value:
    """Return what lies at an address. Errors: ``NotComptime`` for what a program may change as it runs."""
    variable = address.variable
    if not (variable.is_const or variable.is_local):
        raise NotComptime(span, f"`{variable.name}`")
    value = variable.value
    for step in address.path:
        if isinstance(step, str) and isinstance(value, values.StructValue):
            value = value.get(step) or value
        elif isinstance(step, tuple) and isinstance(value, values.ArrayValue):
            value = value.at(flat(step, value.type.shape))
    if isinstance(value, values.Uninitialised):
        raise fault(
            "csl-uninitialised",
            f"`{variable.name}` is read before it is written",
            span,
            helps=["give it a value in its declaration"],
        )
    return value


def store(address: values.Address, value: Value, span: Span) -> None:
    """Put a value where an address leads. Errors: ``csl-constant``; ``NotComptime`` for a global."""
    variable = address.variable
    if variable.is_const:
        raise fault(
            "csl-constant",
            f"`{variable.name or 'this value'}` cannot be changed",
            span,
            helps=["declare it with `var`"],
        )
    if not variable.is_local:
        raise NotComptime(span, f"`{variable.name}`")
    variable.value = _replaced(variable.value, address.path, value)


def _replaced(whole: Value, path: tuple[Step, ...], part: Value) -> Value:
    if not path:
        return part
    step, rest = path[0], path[1:]
    if isinstance(whole, values.Uninitialised):
        whole = _blank(whole)
    if isinstance(step, str):
        assert isinstance(whole, values.StructValue)
        at = next(i for i, f in enumerate(whole.type.fields) if f.name == step)
        new = _replaced(whole.fields[at], rest, part)
        fields = (*whole.fields[:at], new, *whole.fields[at + 1 :])
        return values.StructValue(whole.type, fields, at if whole.type.kind == "union" else None)
    assert isinstance(whole, values.ArrayValue)
    at = flat(step, whole.type.shape)
    elements = tuple(whole) if whole.is_fill else whole.elements
    new = _replaced(elements[at], rest, part)
    return values.ArrayValue(whole.type, (*elements[:at], new, *elements[at + 1 :]))


def _blank(value: values.Uninitialised) -> Value:
    type_ = value.type
    if isinstance(type_, types.Array):
        return values.ArrayValue(type_, (values.Uninitialised(type_.element),), is_fill=True)
    if isinstance(type_, types.Struct):
        return values.StructValue(type_, tuple(values.Uninitialised(f.type) for f in type_.fields))
    return value
