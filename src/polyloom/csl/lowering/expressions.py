"""Expressions: the front end is asked first for what is known, the rest becomes typed nodes."""

from __future__ import annotations

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import builtins, calls, tree
from polyloom.csl.lowering.body import Body, Memory, Operand, Register, fail
from polyloom.csl.lowering.conversions import moved, read, typed, write
from polyloom.csl.lowering.emitted.c_types import size_of
from polyloom.csl.lowering.operators import COMPARISONS, SHIFTS, combine
from polyloom.csl.lowering.places import place
from polyloom.csl.lowering.statements import block_value, declared, switch
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span


def operand(body: Body, node: syntax.Expression, wanted: Type | None) -> Operand:
    """Lower an expression. Errors: those of the language, with the place."""
    value = body.evaluate(node)
    return value if value is not None else _lower(body, node, wanted)


def _lower(body: Body, node: syntax.Expression, wanted: Type | None) -> Operand:
    match node:
        case syntax.Name() | syntax.Field() | syntax.Index() | syntax.Dereference():
            return _read(body, node)
        case syntax.Binary():
            return _binary(body, node, wanted)
        case syntax.Unary(operator="&"):
            return _address(body, node)
        case syntax.Unary():
            return _unary(body, node, wanted)
        case syntax.IfExpression():
            return _choice(body, node, wanted)
        case syntax.Switch():
            return _switch(body, node, wanted)
        case syntax.Call():
            return calls.call(body, node)
        case syntax.Builtin():
            return builtins.builtin(body, node, wanted)
        case syntax.StructLiteral():
            return _struct(body, node, wanted)
        case syntax.ListLiteral():
            return _list(body, node, wanted)
        case syntax.BlockExpression():
            return _block(body, node, wanted)
        case syntax.Comptime(value=inner):
            return comptime.evaluate(inner, body.scope, wanted)
    return fail("csl-runtime", "this must be known at compile time", node.span)


def _read(body: Body, node: syntax.Expression) -> Operand:
    if isinstance(node, syntax.Field) and _is_computed(node.base):
        whole = body.operand(node.base)
        field = whole.type.field(node.name) if isinstance(whole.type, types.Struct) else None
        if field is not None and not isinstance(whole, Value):
            return tree.Field(field.type, whole, node.name)
    found = place(body, node)
    if found is None:
        return fail("csl-runtime", "this has no value at run time", node.span)
    return read(body, found, node.span)


def _is_computed(node: syntax.Expression) -> bool:
    return isinstance(node, syntax.Call | syntax.Builtin | syntax.StructLiteral | syntax.IfExpression)


# ---- Operators


def _binary(body: Body, node: syntax.Binary, wanted: Type | None) -> Operand:
    if node.operator in ("and", "or"):
        return _logical(body, node)
    hint = None if node.operator in COMPARISONS else wanted
    left = body.operand(node.left, hint)
    right = body.operand(node.right, None if node.operator in SHIFTS else hint)
    return combine(body, node.operator, left, right, node)


def _logical(body: Body, node: syntax.Binary) -> Operand:
    left = body.operand(node.left, types.BOOL)
    if isinstance(left, Value):
        truth = comptime.convert(left, types.BOOL, node.left.span)
        decides = truth == values.boolean(node.operator == "or")
        return truth if decides else body.operand(node.right, types.BOOL)
    first = typed(body, left, types.BOOL, node.left.span)
    with body.collected() as statements:
        second = typed(body, body.operand(node.right, types.BOOL), types.BOOL, node.right.span)
    if not statements:
        return tree.Binary(types.BOOL, node.operator, first, second, node.span)
    result = tree.Local(types.BOOL, body.fresh("truth"))
    body.out.append(tree.Declare(result.name, types.BOOL, first))
    condition = result if node.operator == "and" else tree.Unary(types.BOOL, "!", result)
    body.out.append(tree.If(condition, (*statements, tree.Assign(result, second))))
    return result


def _unary(body: Body, node: syntax.Unary, wanted: Type | None) -> Operand:
    inner = body.operand(node.operand, wanted)
    if isinstance(inner, Value):
        return comptime.unary(node.operator, inner, node.span)
    kind = inner.type
    fits = {
        "-": isinstance(kind, types.Integer | types.Float),
        "!": kind == types.BOOL,
        "~": isinstance(kind, types.Integer),
    }
    if not fits[node.operator]:
        fail("csl-type", f"`{node.operator}` is not defined for `{kind}`", node.span)
    return tree.Unary(kind, node.operator, inner)


def _address(body: Body, node: syntax.Unary) -> Operand:
    found = place(body, node.operand)
    if not isinstance(found, Memory):
        return fail("csl-address", "this has no address", node.span, "", "take the address of a variable")
    return _pointer(found)


def _pointer(found: Memory) -> tree.Expression:
    kind = types.Pointer(found.type, found.is_const)
    if isinstance(found.address, tree.Address):
        return tree.Address(kind, found.address.symbol, found.address.offset)
    return tree.Bits(kind, found.address)


# ---- Values made of statements


def _choice(body: Body, node: syntax.IfExpression, wanted: Type | None) -> Operand:
    condition = body.operand(node.condition, types.BOOL)
    if isinstance(condition, Value):
        taken = comptime.convert(condition, types.BOOL, node.condition.span) == values.TRUE
        branch = node.then if taken else node.otherwise
        return values.NOTHING if branch is None else body.operand(branch, wanted)
    test = typed(body, condition, types.BOOL, node.condition.span)
    if node.otherwise is None:
        return fail("csl-type", "an `if` that gives a value needs an `else`", node.span)
    with body.collected() as first:
        then = body.operand(node.then, wanted)
    with body.collected() as second:
        otherwise = body.operand(node.otherwise, wanted)
    kind = _result_type(then, otherwise, wanted, node.span)
    with _Into(body, first):
        a = typed(body, then, kind, node.then.span)
    with _Into(body, second):
        b = typed(body, otherwise, kind, node.otherwise.span)
    if not first and not second:
        return tree.Select(kind, test, a, b)
    result = declared(body, "chosen", kind)
    body.out.append(tree.If(test, (*first, tree.Assign(result, a)), (*second, tree.Assign(result, b))))
    return result


class _Into:
    """Emit into a list that was collected before."""

    def __init__(self, body: Body, statements: list[tree.Statement]) -> None:
        self.body, self.statements = body, statements

    def __enter__(self) -> None:
        self.outer, self.body.out = self.body.out, self.statements

    def __exit__(self, *_: object) -> None:
        self.body.out = self.outer


def _result_type(then: Operand, otherwise: Operand, wanted: Type | None, span: Span) -> Type:
    for kind in (then.type, otherwise.type, wanted):
        if kind is not None and not types.is_comptime_only(kind):
            return kind
    return fail(
        "csl-type", f"the type of the value is not known: `{then.type}` or `{otherwise.type}`", span, "",
        "write `@as(T, ...)` around one of them",
    )  # fmt: skip


def _switch(body: Body, node: syntax.Switch, wanted: Type | None) -> Operand:
    kind = wanted
    if kind is None or types.is_comptime_only(kind):
        return fail(
            "csl-type",
            "the type of the `switch` is not known",
            node.span,
            "",
            "declare the type of the result",
        )
    result = declared(body, "chosen", kind)
    switch(body, node, Register(kind, result))
    return result


def _block(body: Body, node: syntax.BlockExpression, wanted: Type | None) -> Operand:
    return block_value(body, node.block, wanted)


def _struct(body: Body, node: syntax.StructLiteral, wanted: Type | None) -> Operand:
    kind = wanted if node.type is None else body.type_of(node.type)
    fields = []
    for given in node.fields:
        field = kind.field(given.name) if isinstance(kind, types.Struct) else None
        value = body.operand(given.value, field.type if field else None)
        fields.append((given.name, value, given.span, field))
    named = tuple(
        (name, typed(body, value, field.type if field else value.type, span))
        for name, value, span, field in fields
    )
    anonymous = types.Struct("struct", "", tuple(types.StructField(n, v.type) for n, v in named))
    literal = tree.StructValue(anonymous, named)
    if isinstance(kind, types.Struct):
        return typed(body, literal, kind, node.span)
    body.unit.use_struct(anonymous)
    return literal


def _list(body: Body, node: syntax.ListLiteral, wanted: Type | None) -> Operand:
    kind = wanted if node.type is None else body.type_of(node.type)
    if not isinstance(kind, types.Array):
        return fail("csl-type", "a tuple of values that are not known at compile time", node.span)
    if len(node.elements) != kind.count:
        return fail("csl-type", f"{len(node.elements)} elements, expected {kind.count}", node.span)
    whole = body.unit.local_object(body.symbol, body.fresh("list"), kind)
    base = tree.Address(types.Pointer(kind), whole)
    for index, element in enumerate(node.elements):
        value = typed(body, body.operand(element, kind.element), kind.element, element.span)
        write(body, Memory(kind.element, moved(base, index * size_of(kind.element))), value, element.span)
    return tree.Load(kind, base, node.span.text, node.span)
