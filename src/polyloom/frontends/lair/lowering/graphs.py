"""A graph becomes a program: each call is replaced by the program of what it calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from polyloom.diagnostics import Diagnostic, PolyloomError
from polyloom.frontends.lair.lowering.bindings import from_call
from polyloom.frontends.lair.lowering.calls import (
    check_arguments,
    check_arguments_match,
    check_outputs,
    resolve,
)
from polyloom.frontends.lair.lowering.checks import check_single_access
from polyloom.frontends.lair.lowering.faults import Faults, fail
from polyloom.frontends.lair.lowering.inline import Names, renamed_program
from polyloom.frontends.lair.lowering.nodes import (
    assemble,
    check_outputs_written,
    check_single_assignment,
    lower_node,
)
from polyloom.frontends.lair.lowering.scope import Bindings, Scope, check_names, open_scope
from polyloom.frontends.lair.syntax.tree import Graph, Invocation, Name, Node
from polyloom.ir.host import Buffer
from polyloom.ir.program import Part, Program
from polyloom.ir.statements import Statement
from polyloom.ir.types import ElementType

DEEPEST = 40
"""The longest chain of graphs that call each other."""

MOST_STATEMENTS = 20_000
"""The most statements of a program, all calls replaced."""


_Key = tuple[str, frozenset[tuple[str, ElementType]], frozenset[tuple[str, int]]]


@dataclass(frozen=True)
class Callers:
    """The items of the file by name, and the graphs that led here, the outermost first.

    ``lowered``: what was lowered already, by name and parameters, so that no call is lowered twice.
    """

    items: Mapping[str, Node | Graph]
    chain: tuple[str, ...] = ()
    lowered: dict[_Key, Program] = field(default_factory=dict)


def lower_item(item: Node | Graph, bindings: Bindings, callers: Callers) -> Program:
    """Return the program of a node or graph with values for its parameters."""
    key = (item.name.text, frozenset(bindings.types.items()), frozenset(bindings.sizes.items()))
    if key not in callers.lowered:
        callers.lowered[key] = _lower_new(item, bindings, callers)
    return callers.lowered[key]


def _lower_new(item: Node | Graph, bindings: Bindings, callers: Callers) -> Program:
    check_names(item)
    if isinstance(item, Node):
        return lower_node(item, bindings)
    _check_chain(item, callers)
    return _lower_graph(item, bindings, replace(callers, chain=(*callers.chain, item.name.text)))


def _check_chain(graph: Graph, callers: Callers) -> None:
    if graph.name.text in callers.chain:
        round_trip = [*callers.chain[callers.chain.index(graph.name.text) :], graph.name.text]
        fail(
            "lair-recursion",
            f"the graph `{graph.name.text}` calls itself",
            graph.name.span,
            notes=[" -> ".join(round_trip)],
            help="a graph describes a fixed list of statements and cannot recur",
        )
    if len(callers.chain) >= DEEPEST:
        fail(
            "lair-too-deep",
            f"graphs call each other more than {DEEPEST} deep",
            graph.name.span,
            help="call the inner nodes directly",
        )


@dataclass
class _Assembly:
    """What the calls made so far have added to a graph's program."""

    scope: Scope
    names: Names
    readable: dict[str, Buffer]
    tensors: dict[str, Buffer] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)


def _lower_graph(graph: Graph, bindings: Bindings, callers: Callers) -> Program:
    scope = open_scope(graph, bindings)
    calls = [part for part in graph.body if isinstance(part, Invocation)]
    faults = Faults()
    outputs = [name for call in calls for name in call.outputs]
    counts = Counter(call.callee.text for call in calls)
    assembly = _Assembly(
        scope,
        Names({*scope.declared, *(n.text for n in outputs)}, counts),
        {name: scope.declared[name] for name in scope.inputs},
    )
    written: dict[str, Name] = {}
    for call in calls:
        with faults.collect():
            _add_call(call, assembly, callers, written, outputs)
        _keep_going(call, assembly, written)
    with faults.collect():
        check_outputs_written(graph, {n.text for n in outputs})
    faults.raise_any()
    program = assemble(scope, assembly.tensors, tuple(assembly.statements))
    return replace(program, parts=tuple(assembly.parts))


def _add_call(
    call: Invocation,
    assembly: _Assembly,
    callers: Callers,
    written: Mapping[str, Name],
    later: Sequence[Name],
) -> None:
    faults = Faults()
    for name in call.outputs:
        with faults.collect():
            check_single_assignment(name, assembly.scope, written)
    faults.raise_any()
    item = resolve(call, callers.items)
    if assembly.broken & {a.text for a in call.arguments if isinstance(a, Name)}:
        return
    arguments = check_arguments(call, item, assembly.readable, {n.text for n in later})
    bindings = from_call(call, item, arguments, assembly.scope.bindings)
    check_arguments_match(call, item, arguments, bindings)
    callee = _lower_called(call, item, bindings, callers)
    check_outputs(call, callee, assembly.scope)
    _check_count(call, len(assembly.statements) + len(callee.statements))
    _add(call, callee, arguments, assembly)


def _lower_called(call: Invocation, item: Node | Graph, bindings: Bindings, callers: Callers) -> Program:
    """Lower what is called; its errors say where it was called."""
    try:
        return lower_item(item, bindings, callers)
    except PolyloomError as fault:
        where = f"in the call of `{item.name.text}` at {call.callee.span}"
        raise PolyloomError(*(_noted(d, where) for d in fault.diagnostics)) from None


def _noted(diagnostic: Diagnostic, where: str) -> Diagnostic:
    if any(note.startswith("in the call of") for note in diagnostic.notes):
        return diagnostic
    return replace(diagnostic, notes=(*diagnostic.notes, where))


def _check_count(call: Invocation, count: int) -> None:
    if count > MOST_STATEMENTS:
        fail(
            "lair-too-large",
            f"the graph has more than {MOST_STATEMENTS} statements",
            call.callee.span,
            help="split it into several graphs that are compiled one by one",
        )


def _add(call: Invocation, callee: Program, arguments: Sequence[Buffer], assembly: _Assembly) -> None:
    actual = dict(zip(callee.inputs, (t.name for t in arguments), strict=True))
    actual |= dict(zip(callee.outputs, (n.text for n in call.outputs), strict=True))
    program = renamed_program(call, callee, actual, assembly.names)
    for statement in program.statements:
        check_single_access(statement, call.callee.span)
    outer = {t.name: t for t in arguments}
    for tensor in program.tensors:
        if tensor.name not in outer:
            assembly.tensors[tensor.name] = tensor
    for name in call.outputs:
        assembly.readable[name.text] = program.buffer(name.text)
    assembly.statements += program.statements
    assembly.parts.append(_part(call, program, assembly))


def _part(call: Invocation, program: Program, assembly: _Assembly) -> Part:
    """Name a call after what it calls; where that is called again, after the call's first output."""
    several = assembly.names.calls[program.name] > 1
    name = call.outputs[0].text if several and call.outputs else program.name
    return Part(name, tuple(s.name for s in program.statements))


def _keep_going(call: Invocation, assembly: _Assembly, written: dict[str, Name]) -> None:
    for name in call.outputs:
        written.setdefault(name.text, name)
        if name.text not in assembly.readable and name.text in assembly.scope.declared:
            assembly.readable[name.text] = assembly.scope.declared[name.text]
        if name.text not in assembly.readable:
            assembly.broken.add(name.text)
