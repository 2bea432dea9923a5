"""Expressions and types, computed at compile time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polyloom.csl import types, values
from polyloom.csl.comptime import operators
from polyloom.csl.comptime.conversion import convert, enum_member, struct_of
from polyloom.csl.comptime.faults import NotComptime, fault, not_comptime
from polyloom.csl.comptime.places import flat, indices, load, place, pointed_at, whole_number
from polyloom.csl.comptime.scope import Runtime, Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span, near


def evaluate(node: tree.Expression, scope: Scope, expected: Type | None = None) -> Value:
    """Return the value of an expression, of type ``expected`` if one is given.

    Errors: ``NotComptime`` as soon as it needs what is known at run time; diagnostics for what is wrong.
    """
    value = _EVALUATORS[type(node)](node, scope)
    return value if expected is None or value.type == expected else convert(value, expected, node.span)


def resolve_type(node: tree.Expression, scope: Scope) -> Type:
    """Return the type that an expression means. Errors: ``csl-type``, ``csl-not-comptime``."""
    try:
        value = evaluate(node, scope)
    except NotComptime as found:
        raise not_comptime(found, "types are known at compile time") from None
    if isinstance(value, values.TypeValue):
        return value.of
    raise fault(
        "csl-type", f"a type is expected, this is a `{value.type}`", node.span, helps=["write a type"]
    )


def known_name(name: str) -> Value | None:
    """Return what a name means without a declaration: a type, a direction."""
    found = types.type_named(name)
    if found is not None:
        return values.TypeValue(found)
    if name in values.DIRECTIONS:
        return values.Handle(types.DIRECTION, values.DIRECTIONS.index(name))
    return None


def _name(node: tree.Name, scope: Scope) -> Value:
    found = scope.lookup(node.name)
    if found is None:
        known = known_name(node.name)
        if known is not None:
            return known
        if node.name == str(types.COMPTIME_STRUCT):
            return _comptime_struct(node, scope)
        raise unknown_name(node.name, node.span, scope)
    if isinstance(found, Runtime):
        raise NotComptime(node.span, f"`{node.name}`")
    return read(found, node.span)


def _comptime_struct(node: tree.Name, scope: Scope) -> Value:
    if scope.module.file.path is not None:
        scope.module.program.warn(
            "csl-removed",
            "SDK 2.10 has no `comptime_struct`",
            node.span,
            "declare a struct with its fields; a `param` may be left without a type",
        )
    return values.TypeValue(types.COMPTIME_STRUCT)


def unknown_name(name: str, span: Span, scope: Scope) -> Exception:
    """Return the error of a name that means nothing here."""
    names = {*scope.module.names(), *values.DIRECTIONS}
    inner: Scope | None = scope
    while inner is not None:
        names |= set(inner.names)
        inner = inner.parent
    meant = near(name, names)
    help_ = f"did you mean `{meant}`?" if meant else "declare it, or import the module that has it"
    return fault("csl-unknown", f"`{name}` is not declared", span, helps=[help_])


def read(found: Value | values.Variable, span: Span) -> Value:
    """Return the value of a member or a local. Errors: ``NotComptime`` for a module's ``var``."""
    if isinstance(found, values.Variable):
        return load(values.Address(types.Pointer(found.type), found), span)
    return found


def _field(node: tree.Field, scope: Scope) -> Value:
    if isinstance(node.base, tree.Name | tree.Field | tree.Index):
        address = place(node.base, scope)
        if isinstance(address.type.target, types.Struct) and not address.type.many:
            return load(place(node, scope), node.span)
        base = load(address, node.base.span)
    else:
        base = evaluate(node.base, scope)
    return field_of(base, node.name, node.span)


def field_of(base: Value, name: str, span: Span) -> Value:
    """Return a member of a module, a struct or an enum. Errors: ``csl-field``, ``csl-unknown``."""
    if isinstance(base, values.ModuleValue):
        return read(base.module.required(name, span), span)
    if isinstance(base, values.Address) and isinstance(base.type.target, types.Struct):
        base = load(base, span)
    if isinstance(base, values.StructValue):
        found = base.get(name)
        if found is not None:
            return found
        helps = ["its fields are " + ", ".join(f"`{f.name}`" for f in base.type.fields)]
        if not base.type.fields:
            helps = ["it has none"]
        raise fault("csl-field", f"there is no field `{name}`", span, helps=helps)
    if isinstance(base, values.TypeValue) and isinstance(base.of, types.Enum):
        return enum_member(base.of, name, span)
    shown = f"`{base.of}`" if isinstance(base, values.TypeValue) else f"a `{base.type}`"
    raise fault(
        "csl-field", f"{shown} has no fields", span, helps=["fields belong to structs, enums and modules"]
    )


def _index(node: tree.Index, scope: Scope) -> Value:
    base = evaluate(node.base, scope)
    if isinstance(base, values.TupleValue):
        at = tuple_index(node, scope, len(base.elements))
        return base.elements[at]
    if isinstance(base, values.Address):
        address = place(node, scope)
        return load(address, node.span)
    if isinstance(base, values.ArrayValue):
        found = base.at(flat(indices(node, base.type, scope), base.type.shape))
        if isinstance(found, values.Uninitialised):
            return load(place(node, scope), node.span)
        return found
    pointed_at(base, node.base.span)
    raise AssertionError


def tuple_index(node: tree.Index, scope: Scope, count: int) -> int:
    """Return the index of a tuple's element. Errors: ``csl-index``."""
    if len(node.indices) != 1:
        raise fault("csl-index", "a tuple has one index", node.span, helps=["write `t[0]`"])
    at = whole_number(evaluate(node.indices[0], scope), node.indices[0].span, "an index")
    if not 0 <= at < count:
        raise fault("csl-index", f"index {at} in a tuple of {count}", node.span, helps=["indices begin at 0"])
    return at


def _unary(node: tree.Unary, scope: Scope) -> Value:
    if node.operator != "&":
        return operators.unary(node.operator, evaluate(node.operand, scope), node.span)
    address = place(node.operand, scope)
    if isinstance(address.variable.value, values.FunctionValue) and not address.path:
        return address.variable.value
    return address


def _binary(node: tree.Binary, scope: Scope) -> Value:
    if node.operator in ("and", "or"):
        left = truth(node.left, scope)
        if left == (node.operator == "or"):
            return values.boolean(left)
        return values.boolean(truth(node.right, scope))
    left_value, right_value = evaluate(node.left, scope), evaluate(node.right, scope)
    return operators.binary(node.operator, left_value, right_value, node.span)


def truth(node: tree.Expression, scope: Scope) -> bool:
    """Return the value of a condition. Errors: ``csl-type``."""
    value = evaluate(node, scope)
    if value.type == types.BOOL and isinstance(value, values.Scalar):
        return bool(value.value)
    raise fault(
        "csl-type",
        f"a condition is a `bool`, this is a `{value.type}`",
        node.span,
        helps=["compare it: `x != 0`"],
    )


def _call(node: tree.Call, scope: Scope) -> Value:
    from polyloom.csl.comptime.execute import call

    callee = evaluate(node.callee, scope)
    if not isinstance(callee, values.FunctionValue):
        raise fault("csl-call", f"a `{callee.type}` cannot be called", node.span, helps=["call a function"])
    arguments = [evaluate(a, scope) for a in node.arguments]
    return call(callee, arguments, node.span, scope, [a.span for a in node.arguments])


def _builtin(node: tree.Builtin, scope: Scope) -> Value:
    from polyloom.csl.comptime.builtins import perform

    return perform(node, scope)


def _if(node: tree.IfExpression, scope: Scope) -> Value:
    if truth(node.condition, scope):
        return evaluate(node.then, scope)
    return values.NOTHING if node.otherwise is None else evaluate(node.otherwise, scope)


def _switch(node: tree.Switch, scope: Scope) -> Value:
    from polyloom.csl.comptime.execute import statement_value

    chosen = chosen_prong(node, evaluate(node.subject, scope), scope)
    return values.NOTHING if chosen is None else statement_value(chosen.body, scope.child())


def chosen_prong(node: tree.Switch, subject: Value, scope: Scope) -> tree.Prong | None:
    """Return the prong that a value selects. Errors: ``csl-switch`` where there is none."""
    for prong in node.prongs:
        if not prong.cases:
            return prong
        for case in prong.cases:
            given = evaluate(case, scope, subject.type)
            if operators.binary("==", subject, given, case.span) == values.TRUE:
                return prong
    raise fault("csl-switch", "no prong is for this value", node.subject.span, helps=["add `else => {}`"])


def _block(node: tree.BlockExpression, scope: Scope) -> Value:
    from polyloom.csl.comptime.execute import block_value

    return block_value(node.block, scope)


def _struct_literal(node: tree.StructLiteral, scope: Scope) -> Value:
    given: dict[str, Value] = {}
    for field in node.fields:
        if field.name in given:
            raise fault("csl-field", f"`{field.name}` is set twice", field.span, helps=["set it once"])
        given[field.name] = evaluate(field.value, scope)
    if node.type is not None:
        target = resolve_type(node.type, scope)
        if not isinstance(target, types.Struct):
            raise fault("csl-type", f"`{target}` has no fields", node.type.span, helps=["name a struct"])
        return struct_of(target, given, node.span)
    fields = tuple(types.StructField(n, v.type) for n, v in given.items())
    return values.StructValue(types.Struct("struct", "", fields), tuple(given.values()))


def _list_literal(node: tree.ListLiteral, scope: Scope) -> Value:
    if node.type is None:
        elements = tuple(evaluate(e, scope) for e in node.elements)
        return values.TupleValue(types.Tuple(tuple(e.type for e in elements)), elements)
    target = resolve_type(node.type, scope)
    if not isinstance(target, types.Array):
        raise fault(
            "csl-type", f"`{target}` is no array type", node.type.span, helps=["write `[3]u16{ 1, 2, 3 }`"]
        )
    if len(node.elements) != target.count:
        raise fault(
            "csl-type",
            f"{len(node.elements)} elements for `{target}`",
            node.span,
            helps=[f"give it {target.count}, in row-major order"],
        )
    return values.ArrayValue(target, tuple(evaluate(e, scope, target.element) for e in node.elements))


def _array_type(node: tree.ArrayType, scope: Scope) -> Value:
    shape: list[int] = []
    for size in node.sizes:
        if isinstance(size, tree.Name) and size.name == "_":
            raise fault(
                "csl-type", "the size of an array is written out", size.span, helps=["write a number"]
            )
        number = whole_number(evaluate(size, scope), size.span, "the size of an array")
        if number < 0:
            raise fault(
                "csl-range", f"an array of {number} elements", size.span, helps=["sizes are 0 or more"]
            )
        shape.append(number)
    return values.TypeValue(types.Array(tuple(shape), resolve_type(node.element, scope)))


def _pointer_type(node: tree.PointerType, scope: Scope) -> Value:
    return values.TypeValue(types.Pointer(resolve_type(node.target, scope), node.is_const, node.many))


def _function_type(node: tree.FunctionType, scope: Scope) -> Value:
    parameters = tuple(resolve_type(p, scope) for p in node.parameters)
    return values.TypeValue(types.Function(node.kind, parameters, resolve_type(node.result, scope)))


def _struct_type(node: tree.StructType, scope: Scope) -> Value:
    fields: list[types.StructField] = []
    for member in node.members:
        if any(f.name == member.name for f in fields):
            raise fault("csl-twice", f"`{member.name}` is declared twice", member.span, helps=["rename one"])
        assert member.type is not None
        type_ = resolve_type(member.type, scope)
        default = None if member.value is None else evaluate(member.value, scope, type_)
        fields.append(types.StructField(member.name, type_, default))
    return values.TypeValue(types.Struct(node.kind, "", tuple(fields), node.layout, node))


def _enum_type(node: tree.EnumType, scope: Scope) -> Value:
    tag = types.U16 if node.tag is None else resolve_type(node.tag, scope)
    if not isinstance(tag, types.Integer):
        raise fault("csl-type", "an enum is of an integer type", node.span, helps=["write `enum(u16)`"])
    members: list[tuple[str, int]] = []
    number = 0
    for member in node.members:
        if member.value is not None:
            given = evaluate(member.value, scope, tag)
            number = whole_number(given, member.value.span, "a member")
        if any(member.name == m or number == n for m, n in members):
            raise fault("csl-twice", f"`{member.name}` is declared twice", member.span, helps=["rename one"])
        members.append((member.name, number))
        number += 1
    return values.TypeValue(types.Enum("", tag, tuple(members), node))


def _any_type(node: tree.AnyType, scope: Scope) -> Value:
    raise fault("csl-type", "`anytype` is for parameters only", node.span, helps=["write a type"])


def _tensor_access(node: tree.TensorAccess, scope: Scope) -> Value:
    raise fault(
        "csl-access",
        "an access stands as `.tensor_access` of `@get_dsd` only",
        node.span,
        helps=["write `@get_dsd(mem1d_dsd, .{ .tensor_access = ... })`"],
    )


def named(value: Value, name: str) -> Value:
    """Return the value of a declaration; a struct or enum without a name takes that of the declaration."""
    of = value.of if isinstance(value, values.TypeValue) else None
    if isinstance(of, types.Struct | types.Enum) and not of.name:
        return values.TypeValue(replace(of, name=name))
    return value


_EVALUATORS: dict[type, Callable[[Any, Scope], Value]] = {
    tree.Integer: lambda node, scope: values.Scalar(types.COMPTIME_INT, node.value),
    tree.Float: lambda node, scope: values.Scalar(types.COMPTIME_FLOAT, node.value),
    tree.String: lambda node, scope: values.Scalar(types.COMPTIME_STRING, node.value),
    tree.Boolean: lambda node, scope: values.boolean(node.value),
    tree.EnumLiteral: lambda node, scope: values.Scalar(types.ENUM_LITERAL, node.name),
    tree.Name: _name,
    tree.Field: _field,
    tree.Index: _index,
    tree.Dereference: lambda node, scope: load(place(node, scope), node.span),
    tree.Unary: _unary,
    tree.Binary: _binary,
    tree.Call: _call,
    tree.Builtin: _builtin,
    tree.IfExpression: _if,
    tree.Switch: _switch,
    tree.BlockExpression: _block,
    tree.Comptime: lambda node, scope: evaluate(node.value, scope),
    tree.StructLiteral: _struct_literal,
    tree.ListLiteral: _list_literal,
    tree.TensorAccess: _tensor_access,
    tree.ArrayType: _array_type,
    tree.PointerType: _pointer_type,
    tree.FunctionType: _function_type,
    tree.StructType: _struct_type,
    tree.EnumType: _enum_type,
    tree.AnyType: _any_type,
}
