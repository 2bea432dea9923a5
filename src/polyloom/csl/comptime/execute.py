"""Statements and calls, carried out at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polyloom.csl import types, values
from polyloom.csl.comptime import operators
from polyloom.csl.comptime.conversion import convert
from polyloom.csl.comptime.evaluate import chosen_prong, evaluate, named, resolve_type, truth
from polyloom.csl.comptime.faults import fault
from polyloom.csl.comptime.places import load, place, store
from polyloom.csl.comptime.scope import Scope
from polyloom.csl.syntax import tree
from polyloom.csl.types import Type
from polyloom.csl.values import Value
from polyloom.diagnostics import Span


@dataclass(frozen=True)
class Outcome:
    """How a statement ends if not at its end: by ``return``, ``break`` or ``continue``."""

    kind: str
    label: str | None = None
    value: Value | None = None


def execute(node: tree.Statement, scope: Scope) -> Outcome | None:
    """Carry a statement out in a scope, in which a declaration binds its name.

    Errors: ``NotComptime`` where it needs or changes what is known at run time; diagnostics.
    """
    return _EXECUTORS[type(node)](node, scope)


def _block(node: tree.Block, scope: Scope) -> Outcome | None:
    inner = scope.child()
    for statement in node.body:
        outcome = execute(statement, inner)
        if outcome is not None:
            if outcome.kind == "break" and outcome.label is not None and outcome.label == node.label:
                return None
            return outcome
    return None


def block_value(node: tree.Block, scope: Scope) -> Value:
    """Return the value of a block: that of the ``break`` with its label, or nothing."""
    inner = scope.child()
    for statement in node.body:
        outcome = execute(statement, inner)
        if outcome is not None:
            if outcome.kind == "break" and outcome.label == node.label:
                return outcome.value or values.NOTHING
            raise fault(
                "csl-jump",
                f"`{outcome.kind}` leaves a block that is a value",
                statement.span,
                helps=["end the block with `break :label value`"],
            )
    return values.NOTHING


def statement_value(node: tree.Statement, scope: Scope) -> Value:
    """Return the value of a prong's body."""
    if isinstance(node, tree.ExpressionStatement):
        return evaluate(node.expression, scope)
    outcome = execute(node, scope)
    if outcome is not None:
        raise fault("csl-jump", f"`{outcome.kind}` inside a value", node.span, helps=["use a statement"])
    return values.NOTHING


def _declaration(node: tree.Declaration, scope: Scope) -> None:
    wanted = None if node.type is None else resolve_type(node.type, scope)
    value = None if node.value is None else named(evaluate(node.value, scope, wanted), node.name)
    check_declaration(node)
    if node.kind == "const":
        assert value is not None
        scope.bind(node.name, value)
        return
    if value is None:
        assert wanted is not None
        value = values.Uninitialised(wanted)
    scope.bind(node.name, values.Variable(node.name, wanted or value.type, value, False, is_local=True))


def check_declaration(node: tree.Declaration) -> None:
    """Check that a declaration has what its kind needs. Errors: ``csl-declaration``."""
    if node.kind == "const" and node.value is None and node.linkage != "extern":
        raise fault("csl-declaration", "a `const` needs a value", node.name_span, helps=["add `= value`"])
    if node.kind == "var" and node.value is None and node.type is None:
        raise fault(
            "csl-declaration",
            "a `var` needs a type or a value",
            node.name_span,
            helps=["add `: type` or `= value`"],
        )


def _assign(node: tree.Assign, scope: Scope) -> None:
    if isinstance(node.target, tree.Name) and node.target.name == "_" and node.operator is None:
        evaluate(node.value, scope)
        return
    address = place(node.target, scope)
    value = evaluate(node.value, scope)
    if node.operator is not None:
        value = operators.binary(node.operator, load(address, node.target.span), value, node.span)
    store(address, convert(value, address.type.target, node.value.span), node.target.span)


def _expression(node: tree.ExpressionStatement, scope: Scope) -> Outcome | None:
    if isinstance(node.expression, tree.Switch):
        return _switch(node.expression, scope)
    if isinstance(node.expression, tree.BlockExpression):
        return _block(node.expression.block, scope)
    if isinstance(node.expression, tree.IfExpression):
        return _if_expression(node.expression, scope)
    evaluate(node.expression, scope)
    return None


def _if_expression(node: tree.IfExpression, scope: Scope) -> Outcome | None:
    branch = node.then if truth(node.condition, scope) else node.otherwise
    return None if branch is None else _expression(tree.ExpressionStatement(branch.span, branch), scope)


def _switch(node: tree.Switch, scope: Scope) -> Outcome | None:
    chosen = chosen_prong(node, evaluate(node.subject, scope), scope)
    return None if chosen is None else execute(chosen.body, scope.child())


def _if(node: tree.If, scope: Scope) -> Outcome | None:
    branch = node.then if truth(node.condition, scope) else node.otherwise
    return None if branch is None else execute(branch, scope.child())


def _while(node: tree.While, scope: Scope) -> Outcome | None:
    while truth(node.condition, scope):
        scope.module.program.spend(node.span)
        outcome = execute(node.body, scope.child())
        if outcome is not None and not _continues(outcome, node.label):
            return None if _breaks(outcome, node.label) else outcome
        if node.step is not None:
            execute(node.step, scope)
    return None


def _for(node: tree.For, scope: Scope) -> Outcome | None:
    for at, element in enumerate(sequence(node, scope)):
        scope.module.program.spend(node.span)
        inner = scope.child()
        inner.bind(node.element.name, element)
        if node.index is not None:
            inner.bind(node.index.name, values.Scalar(types.U16, at))
        outcome = execute(node.body, inner)
        if outcome is not None and not _continues(outcome, node.label):
            return None if _breaks(outcome, node.label) else outcome
    return None


def sequence(node: tree.For, scope: Scope) -> Sequence[Value] | values.ArrayValue | _Numbers:
    """Return what a loop goes over, in order. Errors: ``csl-type``."""
    found = evaluate(node.sequence, scope)
    if isinstance(found, values.Range):
        return _Numbers(found)
    if isinstance(found, values.Address):
        found = load(found, node.sequence.span)
    if isinstance(found, values.ArrayValue):
        return found
    if isinstance(found, values.TupleValue):
        return found.elements
    raise fault(
        "csl-type",
        f"a loop goes over a range or an array, this is a `{found.type}`",
        node.sequence.span,
        helps=["write `for (@range(u16, n)) |i| { ... }`"],
    )


class _Numbers:
    def __init__(self, span: values.Range) -> None:
        self.of = span

    def __iter__(self) -> Any:
        numbers = range(self.of.start, self.of.stop, self.of.step)
        return (values.Scalar(self.of.of, i) for i in numbers)


def _continues(outcome: Outcome, label: str | None) -> bool:
    return outcome.kind == "continue" and outcome.label in (None, label)


def _breaks(outcome: Outcome, label: str | None) -> bool:
    return outcome.kind == "break" and outcome.label in (None, label)


def _return(node: tree.Return, scope: Scope) -> Outcome:
    return Outcome("return", None, values.NOTHING if node.value is None else evaluate(node.value, scope))


def _break(node: tree.Break, scope: Scope) -> Outcome:
    return Outcome("break", node.label, None if node.value is None else evaluate(node.value, scope))


_EXECUTORS: dict[type, Callable[[Any, Scope], Outcome | None]] = {
    tree.Block: _block,
    tree.Declaration: _declaration,
    tree.Assign: _assign,
    tree.ExpressionStatement: _expression,
    tree.If: _if,
    tree.While: _while,
    tree.For: _for,
    tree.Return: _return,
    tree.Break: _break,
    tree.Continue: lambda node, scope: Outcome("continue", node.label),
}


def call(
    function: values.FunctionValue,
    arguments: Sequence[Value],
    span: Span,
    caller: Scope,
    spans: Sequence[Span] = (),
) -> Value:
    """Return what a function gives for arguments that are known; ``caller``: whose effects it may use.

    Errors: ``csl-call``, ``NotComptime`` where its body touches what is known at run time only.
    """
    node = function.function
    if node.kind == "task":
        raise fault(
            "csl-call", f"task `{node.name}` is called", span, helps=["tasks are activated: `@activate(id)`"]
        )
    check_count(node, len(arguments), span)
    if node.body is None:
        raise fault(
            "csl-call",
            f"`{node.name}` is `extern` and called at compile time",
            span,
            helps=["call it at run time"],
        )
    scope = Scope(function.module, None, caller.effects, is_comptime=True)
    for at, (parameter, value) in enumerate(zip(node.parameters, arguments, strict=True)):
        where = spans[at] if at < len(spans) else span
        scope.bind(parameter.name, convert(value, parameter_type(parameter, scope) or value.type, where))
    result = resolve_type(node.result, scope)
    return _result(node, _run(node, node.body, scope, span), result, span)


def check_count(node: tree.Function, count: int, span: Span) -> None:
    """Check the number of arguments. Errors: ``csl-call``."""
    if count != len(node.parameters):
        names = ", ".join(p.name for p in node.parameters)
        raise fault(
            "csl-call",
            f"`{node.name}` takes {len(node.parameters)} arguments, not {count}",
            span,
            helps=[f"write `{node.name}({names})`"],
        )


def parameter_type(parameter: tree.Parameter, scope: Scope) -> Type | None:
    """Return a parameter's type in a scope where those before it are bound; ``None`` for ``anytype``."""
    return None if isinstance(parameter.type, tree.AnyType) else resolve_type(parameter.type, scope)


def _run(node: tree.Function, body: tree.Block, scope: Scope, span: Span) -> Outcome | None:
    program = scope.module.program
    program.spend(span)
    program.enter(span)
    try:
        return _block(body, scope)
    finally:
        program.leave()


def _result(node: tree.Function, outcome: Outcome | None, result: Type, span: Span) -> Value:
    if outcome is not None and outcome.kind != "return":
        raise fault("csl-jump", f"`{outcome.kind}` outside a loop", span, helps=["remove it"])
    if outcome is None or outcome.value is None:
        if result != types.VOID:
            raise fault(
                "csl-return",
                f"`{node.name}` ends without a value",
                node.name_span,
                helps=[f"return a `{result}` on every way"],
            )
        return values.NOTHING
    return convert(outcome.value, result, span)
