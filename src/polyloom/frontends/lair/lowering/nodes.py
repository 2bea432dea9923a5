"""A node with values for its parameters becomes a program."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.names import check_new
from polyloom.frontends.lair.lowering.scope import Bindings, Scope, open_scope
from polyloom.frontends.lair.lowering.statements import Lowered, lower_statement, reads_of, renamed, target
from polyloom.frontends.lair.syntax.tree import Graph, Name, Node, Statement
from polyloom.ir.host import Buffer
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement as Statement_


def lower_node(node: Node, bindings: Bindings) -> Program:
    """Return the program of one node: its statements in order, over the node's own tensor names.

    A statement has the node's name, or NODE_OUTPUT where the node has several.
    """
    scope = open_scope(node, bindings)
    faults = Faults()
    statements = [part for part in node.body if isinstance(part, Statement)]
    lowered = _lower_body(statements, scope, faults)
    with faults.collect():
        check_outputs_written(node, {target(s).text for s in statements})
    faults.raise_any()
    tensors = {one.tensor.name: one.tensor for one in lowered}
    return assemble(scope, tensors, _named(node.name.text, lowered))


def _lower_body(statements: list[Statement], scope: Scope, faults: Faults) -> list[Lowered]:
    readable: dict[str, Buffer] = {name: scope.declared[name] for name in scope.inputs}
    written: dict[str, Name] = {}
    broken: set[str] = set()
    lowered: list[Lowered] = []
    for part in statements:
        name = target(part).text
        with faults.collect():
            check_single_assignment(target(part), scope, written)
            if broken.isdisjoint(reads_of(part)):
                lowered.append(lower_statement(part, scope, readable))
                readable[name] = lowered[-1].tensor
        _keep_going(name, scope, readable, broken)
        written.setdefault(name, target(part))
    return lowered


def _keep_going(name: str, scope: Scope, readable: dict[str, Buffer], broken: set[str]) -> None:
    """After an error, let later statements read a declared tensor; do not report those that read another."""
    if name not in readable and name in scope.declared:
        readable[name] = scope.declared[name]
    if name not in readable:
        broken.add(name)


def _named(node: str, lowered: list[Lowered]) -> tuple[Statement_, ...]:
    if len(lowered) == 1:
        return (lowered[0].statement,)
    return tuple(renamed(one.statement, f"{node}_{one.tensor.name}") for one in lowered)


def check_single_assignment(name: Name, scope: Scope, written: Mapping[str, Name]) -> None:
    """Refuse to write an input, a parameter, or a tensor that is written already; or a reserved name."""
    check_new([name])
    if name.text in scope.inputs:
        fail(
            "lair-writes-input",
            f"`{name.text}` is an input and cannot be written",
            name.span,
            help="write to an output or to a new tensor",
        )
    if name.text in written:
        fail(
            "lair-single-assignment",
            f"`{name.text}` is defined by two statements",
            name.span,
            label="defined again",
            notes=[f"first at {written[name.text].span}"],
            help="write to a new tensor; a reduction combines instances of one statement only",
        )
    if name.text in scope.bindings.sizes or name.text in scope.bindings.types:
        fail(
            "lair-duplicate-name",
            f"`{name.text}` is a parameter and cannot be written",
            name.span,
            help="choose another name for the tensor",
        )


def check_outputs_written(item: Node | Graph, written: Collection[str]) -> None:
    """Refuse declared outputs and internal tensors that nothing writes."""
    faults = Faults()
    declared = [*item.outputs, *(p for p in item.body if not isinstance(p, Statement) and hasattr(p, "name"))]
    for part in declared:
        if part.name.text not in written:
            with faults.collect():
                fail(
                    "lair-never-written",
                    f"`{part.name.text}` is declared but never written",
                    part.name.span,
                    help="add the statement that defines it, or remove it",
                )
    faults.raise_any()


def assemble(scope: Scope, written: Mapping[str, Buffer], statements: tuple[Statement_, ...]) -> Program:
    """Return the program: inputs, outputs, then internal tensors in the order of their definition."""
    outside = {*scope.inputs, *scope.outputs}
    order = [statement.write.buffer for statement in statements]
    internal = tuple(written[name] for name in order if name not in outside)
    declared = tuple(scope.declared[name] for name in (*scope.inputs, *scope.outputs))
    return Program.of(scope.item.name.text, (*declared, *internal), scope.inputs, scope.outputs, statements)
