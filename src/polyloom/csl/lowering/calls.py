"""Calls: one specialised function of C for each use of what is known at compile time.

Parameters that are ``comptime``, of a type that exists at compile time only, or that name something of the
machine (a color, a queue, a function) disappear where the argument is known; the others are passed.
"""

from __future__ import annotations

from polyloom.csl import comptime, types, values
from polyloom.csl.lowering import tree
from polyloom.csl.lowering.body import Body, Operand, Register, fail
from polyloom.csl.lowering.conversions import typed
from polyloom.csl.syntax import tree as syntax
from polyloom.csl.types import Type
from polyloom.csl.values import Value


def call(body: Body, node: syntax.Call) -> Operand:
    """Lower a call of a function of the program. Errors: ``csl-call`` and those of the function."""
    callee = body.operand(node.callee)
    if not isinstance(callee, values.FunctionValue):
        return fail(
            "csl-call",
            "what is called must be known at compile time",
            node.callee.span,
            "",
            "call a function by its name, or a parameter that is one",
        )
    return call_function(body, callee, node)


def call_function(body: Body, callee: values.FunctionValue, node: syntax.Call) -> Operand:
    """Lower a call of a known function."""
    function = callee.function
    if function.kind == "task":
        fail(
            "csl-call", f"`{function.name}` is a task", node.span, "", "tasks are activated: `@activate(id)`"
        )
    if len(node.arguments) != len(function.parameters):
        count = len(function.parameters)
        fail(
            "csl-call",
            f"{len(node.arguments)} arguments of `{function.name}`",
            node.span,
            "",
            f"give {count}",
        )
    special = Specialisation(body, callee)
    for parameter, argument in zip(function.parameters, node.arguments, strict=True):
        special.give(parameter, argument)
    name, result = body.unit.function(special)
    return tree.Call(result, name, tuple(special.passed), body.unit.is_one_statement(name))


class Specialisation:
    """What a function is called with: values that are known, and expressions that are passed."""

    def __init__(self, body: Body, callee: values.FunctionValue) -> None:
        self.body, self.callee = body, callee
        self.scope = comptime.Scope(callee.module)
        self.known: list[tuple[str, Value]] = []
        self.passed: list[tree.Expression] = []
        self.parameters: list[tuple[syntax.Parameter, Type]] = []

    @property
    def key(self) -> object:
        """What distinguishes this function from others of the same text."""
        kinds = tuple((parameter.name, kind) for parameter, kind in self.parameters)
        return id(self.callee.function), id(self.callee.module), tuple(self.known), kinds

    def give(self, parameter: syntax.Parameter, argument: syntax.Expression) -> None:
        """Take the next argument."""
        body = self.body
        wanted: Type | None = None
        if not isinstance(parameter.type, syntax.AnyType):
            wanted = self._type(parameter.type)
        value = body.operand(argument, wanted)
        if isinstance(value, Value) and wanted is not None and wanted not in types.HANDLES:
            value = comptime.convert(value, wanted, argument.span)
        kind = wanted or value.type
        if isinstance(value, Value) and self._disappears(parameter, kind):
            self.known.append((parameter.name, value))
            self.scope.bind(parameter.name, value)
            return
        if parameter.is_comptime:
            fail("csl-not-comptime", f"`{parameter.name}` must be known at compile time", argument.span)
        self.passed.append(typed(body, value, kind, argument.span))
        self.parameters.append((parameter, kind))
        local = tree.Local(kind, parameter.name)
        self.scope.bind(parameter.name, comptime.Runtime(Register(kind, local, is_const=True)))

    def type_of(self, parameter: syntax.Parameter) -> Type:
        """Return the type that a parameter declares."""
        return self._type(parameter.type)

    def _type(self, node: syntax.Expression) -> Type:
        outer, self.body.scope = self.body.scope, self.scope
        try:
            return self.body.type_of(node)
        finally:
            self.body.scope = outer

    def result(self) -> Type:
        """Return the type of the result."""
        return self._type(self.callee.function.result)

    @staticmethod
    def _disappears(parameter: syntax.Parameter, kind: Type) -> bool:
        special = kind in types.HANDLES or kind in types.DESCRIPTORS or isinstance(kind, types.Function)
        return (
            parameter.is_comptime or special or types.is_comptime_only(kind) or isinstance(kind, types.Struct)
        )
