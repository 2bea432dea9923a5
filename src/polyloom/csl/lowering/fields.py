"""Fields of a literal that a builtin takes, whether they are known at compile time or at run time."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Operand, fail
from polyloom.csl.lowering.conversions import NO_SPAN, typed
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span


@dataclass(frozen=True)
class Fields:
    """Fields by name: nodes of a literal, or values of a struct that is known."""

    body: Body
    span: Span
    nodes: dict[str, syntax.Expression]
    values: dict[str, Value]

    def __contains__(self, name: str) -> bool:
        return name in self.nodes or name in self.values

    def names(self) -> tuple[str, ...]:
        """Return the names of all fields."""
        return (*self.nodes, *self.values)

    def operand(self, name: str, wanted: Type | None) -> Operand | None:
        """Return a field, or None if it is not given."""
        if name in self.nodes:
            return self.body.operand(self.nodes[name], wanted)
        return self.values.get(name)

    def known(self, name: str, wanted: Type | None) -> Value | None:
        """Return a field that must be known at compile time, or None if it is not given."""
        value = self.operand(name, wanted)
        if value is not None and not isinstance(value, Value):
            return fail("csl-not-comptime", f"`.{name}` must be known at compile time", self.span)
        return value

    def expression(self, name: str, kind: Type) -> tree.Expression | None:
        """Return a field as an expression of a type, or None if it is not given."""
        value = self.operand(name, kind)
        if value is None:
            return None
        return typed(self.body, value, kind, self.nodes[name].span if name in self.nodes else self.span)

    def flag(self, name: str) -> bool:
        """Return whether a field is given and true."""
        value = self.known(name, types.BOOL)
        return value is not None and comptime.convert(value, types.BOOL, self.span) == values.TRUE


def fields_of(body: Body, node: syntax.Expression | None) -> Fields:
    """Return the fields of a literal, of a branch that is chosen at compile time, or of a known struct."""
    if node is None:
        return Fields(body, NO_SPAN, {}, {})
    match node:
        case syntax.StructLiteral():
            return Fields(body, node.span, {field.name: field.value for field in node.fields}, {})
        case syntax.IfExpression(condition=condition, then=then, otherwise=otherwise):
            known = comptime.evaluate(condition, body.scope, types.BOOL)
            return fields_of(body, then if known == values.TRUE else otherwise)
    value = body.operand(node)
    if isinstance(value, values.StructValue):
        parts = zip(value.type.fields, value.fields, strict=True)
        return Fields(body, node.span, {}, {field.name: inner for field, inner in parts})
    return fail(
        "csl-arguments", f"`{value.type}` where options are expected", node.span, "", "write `.{ ... }`"
    )
