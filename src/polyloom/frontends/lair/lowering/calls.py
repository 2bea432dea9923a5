"""The checks of one call in a graph: what is called, with which tensors, into which."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.names import counted, suggestion
from polyloom.frontends.lair.lowering.scope import Bindings, Scope, tensor
from polyloom.frontends.lair.syntax.tree import Declaration, Expression, Graph, Invocation, Name, Node
from polyloom.ir.evaluation.inputs import described
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program


def resolve(call: Invocation, items: Mapping[str, Node | Graph]) -> Node | Graph:
    """Return the node or graph that is called. Errors: ``lair-unknown-node``."""
    name = call.callee.text
    if name not in items:
        fail(
            "lair-unknown-node",
            f"there is no node or graph `{name}`",
            call.callee.span,
            help=suggestion(name, items),
        )
    return items[name]


def check_arguments(
    call: Invocation, item: Node | Graph, readable: Mapping[str, Buffer], later: Collection[str]
) -> list[Buffer]:
    """Return the tensors passed: as many as there are inputs, each a name that is defined before.

    Errors: ``lair-call-arguments``, ``lair-read-before-definition``, ``lair-unknown-name``.
    """
    if len(call.arguments) != len(item.inputs):
        names = ", ".join(d.name.text for d in item.inputs) or "none"
        fail(
            "lair-call-arguments",
            f"`{item.name.text}` has {counted(len(item.inputs), 'input')}, but {len(call.arguments)} given",
            call.callee.span,
            help=f"its inputs: {names}",
        )
    faults = Faults()
    found = []
    for argument in call.arguments:
        with faults.collect():
            found.append(_argument(argument, readable, later))
    faults.raise_any()
    return found


def _argument(argument: Expression, readable: Mapping[str, Buffer], later: Collection[str]) -> Buffer:
    if not isinstance(argument, Name):
        fail(
            "lair-call-arguments",
            f"`{argument.span.text}` is not the name of a tensor",
            argument.span,
            help="a call takes whole tensors; compute in a node",
        )
    if argument.text in readable:
        return readable[argument.text]
    if argument.text in later:
        fail(
            "lair-read-before-definition",
            f"`{argument.text}` is read before it is defined",
            argument.span,
            help="move the call that defines it up",
        )
    return fail(
        "lair-unknown-name",
        f"there is no tensor `{argument.text}`",
        argument.span,
        help=suggestion(argument.text, readable),
    )


def check_arguments_match(
    call: Invocation, item: Node | Graph, arguments: Sequence[Buffer], bindings: Bindings
) -> None:
    """Refuse tensors whose type or shape is not that of the input. Errors: ``lair-call-mismatch``."""
    faults = Faults()
    for expression, declaration, actual in zip(call.arguments, item.inputs, arguments, strict=True):
        with faults.collect():
            _check_argument(expression, declaration, actual, tensor(declaration, bindings))
    faults.raise_any()


def _check_argument(expression: Expression, declaration: Declaration, actual: Buffer, formal: Buffer) -> None:
    if (actual.type, actual.extents) != (formal.type, formal.extents):
        fail(
            "lair-call-mismatch",
            f"`{actual.name}` does not fit the input `{formal.name}`",
            expression.span,
            label=f"is {described(actual)}",
            notes=[f"`{formal.name}` is {described(formal)} here, declared at {declaration.span}"],
            help="check the sizes and types in the call",
        )


def check_outputs(call: Invocation, callee: Program, scope: Scope) -> None:
    """Refuse a wrong number of outputs, or one that does not fit its declaration.

    Errors: ``lair-call-outputs``, ``lair-call-mismatch``.
    """
    if len(call.outputs) != len(callee.outputs):
        fail(
            "lair-call-outputs",
            f"`{callee.name}` has {counted(len(callee.outputs), 'output')}, but {len(call.outputs)} taken",
            call.outputs[0].span,
            help=f"its outputs: {', '.join(callee.outputs)}",
        )
    for name, formal in zip(call.outputs, map(callee.buffer, callee.outputs), strict=True):
        _check_output(name, formal, scope.declared.get(name.text))


def _check_output(name: Name, formal: Buffer, declared: Buffer | None) -> None:
    if declared is not None and (declared.type, declared.extents) != (formal.type, formal.extents):
        fail(
            "lair-call-mismatch",
            f"`{name.text}` does not fit the output `{formal.name}`",
            name.span,
            label=f"declared as {described(declared)}",
            notes=[f"the call gives {described(formal)}"],
            help="change the declaration, or the sizes and types in the call",
        )
