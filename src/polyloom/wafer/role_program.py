"""The program of a role: its tasks, and which task's end lets which other one start.

An invocation begins with the initialisation of local memory; streams are taken in when what their
statements need is there; local statements and chains follow; after the last of them the PE is ready
for the next invocation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polyloom.polyhedra.loops import Number
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.array_code import initialize_code, state_code
from polyloom.wafer.chain_code import chain_code, chain_queues
from polyloom.wafer.chains import Chain, Part
from polyloom.wafer.code import (
    Activate,
    Code,
    Cost,
    CountDown,
    DataTask,
    IfNextInvocation,
    LocalTask,
    Node,
    RoleCode,
    SetInteger,
    Unblock,
)
from polyloom.wafer.compute_code import compute_code
from polyloom.wafer.memory import LocalArray
from polyloom.wafer.move_code import kinds_on, move_code, move_queues
from polyloom.wafer.moves import Move
from polyloom.wafer.order import communication_order, last_awaited
from polyloom.wafer.role_assembly import assemble, where_text
from polyloom.wafer.role_context import RoleBuilder
from polyloom.wafer.roles import Role, pes_of
from polyloom.wafer.sides import Side
from polyloom.wafer.simd import SimdAnalysis
from polyloom.wafer.stream_code import (
    StreamOnRole,
    element_body,
    end_of_chunk,
    receive_all,
    store_instruction,
    streams_on,
    whole_instruction,
)
from polyloom.wafer.tasks import TaskGraph, TaskKind

_BEGIN, _FINISH = "begin", "finish"


@dataclass(frozen=True, eq=False)
class _Unit:
    """A piece of an invocation: a stream, local statement, chain or move; ``writes``: what it completes."""

    name: str
    work: StreamOnRole | SimdAnalysis | Chain | Move
    needs: tuple[str, ...]
    reads: frozenset[str]
    writes: frozenset[str]


def role_code(analysis: LayerAnalysis, role: Role) -> RoleCode:
    """Return the program of one role."""
    builder = RoleBuilder(analysis, role)
    units = _units(builder)
    before = _reduced({unit.name: set(unit.needs) for unit in units})
    starts = {unit.name: _start_node(unit) for unit in units}
    after = _after(units, before, starts)
    data_tasks: list[DataTask] = []
    local_tasks: list[LocalTask] = [LocalTask(_BEGIN, (), False)]
    for unit in units:
        done = after[unit.name]
        if isinstance(unit.work, StreamOnRole) and unit.work.stream.sparse:
            data_tasks.append(_sparse_task(builder, unit.work, done))
        else:
            local_tasks += _unit_tasks(builder, unit, done)
    counters = _waiting_counters(units, before)
    local_tasks[0] = LocalTask(_BEGIN, _begin_code(builder, counters, after[_BEGIN]), False)
    local_tasks.append(LocalTask(_FINISH, _finish_code(builder), False))
    return _assemble(builder, units, counters, data_tasks, local_tasks)


def _units(builder: RoleBuilder) -> list[_Unit]:
    """Return what happens on the role's PEs in one invocation, in an order in which it can happen."""
    streams = streams_on(builder)
    found: list[_Unit] = [_stream_unit(here) for here in streams]
    present = [a for a in builder.analysis.simd if a.task.kind is TaskKind.LOCAL and _runs(builder, a)]
    found += [_local_unit(analysis) for analysis in present]
    for result in builder.analysis.graph.results:
        found += [_step_unit(step) for step in result.steps if _takes_part(builder, step)]
    graph = builder.analysis.graph
    order = communication_order(graph) if builder.analysis.border.adapters else None
    return [_with_needs(unit, found, graph, order) for unit in found]


def _runs(builder: RoleBuilder, analysis: SimdAnalysis) -> bool:
    return builder.role.overlaps(pes_of(analysis.task.instances))


def _parts_on(builder: RoleBuilder, chain: Chain) -> frozenset[Part]:
    """Return what a role's PEs do with elements of a chain."""
    return frozenset(part for part in Part if builder.role.overlaps(pes_of(chain.positions(part))))


def _takes_part(builder: RoleBuilder, step: Chain | Move) -> bool:
    if isinstance(step, Move):
        return bool(kinds_on(builder, step))
    return bool(_parts_on(builder, step))


def _stream_unit(here: StreamOnRole) -> _Unit:
    tensor = here.stream.tensor
    reads = {a.tensor for d in here.drives for a in d.task.statement.reads} - {tensor}
    writes = {d.task.statement.write.tensor for d in here.drives}
    if here.store is not None:
        writes.add(tensor)
    return _Unit(f"receive_{here.label}", here, (), frozenset(reads), frozenset(writes))


def _local_unit(analysis: SimdAnalysis) -> _Unit:
    statement = analysis.task.statement
    reads = frozenset(access.tensor for access in statement.reads)
    return _Unit(f"compute_{statement.name}", analysis, (), reads, frozenset({statement.write.tensor}))


def _step_unit(chain: Chain | Move) -> _Unit:
    if isinstance(chain, Move):
        both = frozenset({chain.tensor})
        return _Unit(f"move_{chain.name}", chain, (), both, both)
    writes = frozenset() if chain.leaves else frozenset({chain.tensor})
    verb = "send" if chain.leaves else chain.verb
    side = f"_{chain.side.value}" if chain.leaves or chain.level else ""
    level = f"_level_{chain.level}" if chain.level else ""
    return _Unit(f"{verb}_{chain.tensor}{side}{level}", chain, (), frozenset({chain.tensor}), writes)


def _with_needs(
    unit: _Unit, units: Sequence[_Unit], graph: TaskGraph, order: Mapping[tuple[str, Side], int] | None
) -> _Unit:
    """Add the units that must end before this one starts: those that complete what it reads.

    A chain stalls its PE. So that no stream of the same invocation waits behind it for something that
    waits for the chain, it starts after all streams that do not wait for it, or for a later chain, on any
    PE; and chains run in the same order on all PEs. With an ``order``, streams come in it.
    """
    needs = [_BEGIN]
    for other in units:
        if other is unit:
            continue
        if isinstance(unit.work, Chain | Move) and isinstance(other.work, Chain | Move):
            ordered = _chain_number(graph, other.work) < _chain_number(graph, unit.work)
        elif isinstance(unit.work, Chain | Move) and isinstance(other.work, StreamOnRole):
            ordered = last_awaited(graph, other.work.stream) < _chain_number(graph, unit.work)
        elif isinstance(unit.work, StreamOnRole) and isinstance(other.work, StreamOnRole):
            ordered = (order is not None) and order[_key(other.work)] < order[_key(unit.work)]
        else:
            ordered = False
        if ordered or (other.writes & unit.reads and not _both_chains(unit, other)):
            needs.append(other.name)
    return replace(unit, needs=tuple(needs))


def _both_chains(unit: _Unit, other: _Unit) -> bool:
    return isinstance(unit.work, Chain | Move) and isinstance(other.work, Chain | Move)


def _chain_number(graph: TaskGraph, chain: Chain | Move) -> int:
    """Return the place of a chain or move in the order that all PEs keep."""
    names = [step.name for result in graph.results for step in result.steps]
    return names.index(chain.name)


def _key(here: StreamOnRole) -> tuple[str, Side]:
    return here.stream.tensor, here.stream.side


def _reduced(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """Drop what is implied: if C waits for B and B for A, C need not wait for A."""

    def ancestors(name: str) -> set[str]:
        direct = needs.get(name, set())
        return direct | {a for n in direct for a in ancestors(n)}

    return {
        name: {n for n in direct if not any(n in ancestors(m) for m in direct if m != n)}
        for name, direct in needs.items()
    }


def _start_node(unit: _Unit) -> Node:
    if isinstance(unit.work, StreamOnRole) and unit.work.stream.sparse:
        return Unblock(unit.work.queue)
    return Activate(unit.name)


def _after(units: Sequence[_Unit], before: dict[str, set[str]], starts: dict[str, Node]) -> dict[str, Code]:
    """Return, for ``begin`` and each unit, the code at its end: what it lets start."""
    followed = {n for needs in before.values() for n in needs}
    leaves = {unit.name for unit in units} - followed or {_BEGIN}
    everything = {**before, _FINISH: leaves}
    begin_to = {**starts, _FINISH: Activate(_FINISH)}
    result: dict[str, Code] = {}
    for name in (_BEGIN, *(unit.name for unit in units)):
        code: list[Node] = []
        for follower, needs in everything.items():
            if name not in needs:
                continue
            if len(needs) == 1:
                code.append(begin_to[follower])
            else:
                code.append(CountDown(f"{follower}_waiting", (begin_to[follower],)))
        result[name] = tuple(code)
    return result


def _waiting_counters(units: Sequence[_Unit], before: dict[str, set[str]]) -> dict[str, int]:
    followed = {n for needs in before.values() for n in needs}
    leaves = {unit.name for unit in units} - followed
    counts = {**{name: len(needs) for name, needs in before.items()}, _FINISH: len(leaves)}
    return {f"{name}_waiting": count for name, count in counts.items() if count > 1}


def _sparse_task(builder: RoleBuilder, here: StreamOnRole, done: Code) -> DataTask:
    return DataTask(
        here.queue,
        f"handle_{here.label}",
        here.stream.type,
        element_body(builder, here),
        f"end_{here.label}",
        end_of_chunk(builder, here, done),
    )


def _unit_tasks(builder: RoleBuilder, unit: _Unit, done: Code) -> list[LocalTask]:
    if isinstance(unit.work, Chain):
        return [LocalTask(unit.name, (*chain_code(builder, unit.work), *done), True)]
    if isinstance(unit.work, Move):
        return [LocalTask(unit.name, (*move_code(builder, unit.work), *done), True)]
    if isinstance(unit.work, SimdAnalysis):
        return [LocalTask(unit.name, (*compute_code(builder, unit.work, builder.code()), *done), False)]
    return _dense_tasks(builder, unit, unit.work, done)


def _dense_tasks(builder: RoleBuilder, unit: _Unit, here: StreamOnRole, done: Code) -> list[LocalTask]:
    finished = f"end_{here.label}"
    whole = store_instruction(builder, here, finished) or whole_instruction(builder, here, finished)
    if whole is not None:
        return [LocalTask(unit.name, whole, False), LocalTask(finished, done, False)]
    body = receive_all(builder, here, element_body(builder, here))
    return [LocalTask(unit.name, (*body, *done), True)]


def _begin_code(builder: RoleBuilder, counters: dict[str, int], starts: Code) -> Code:
    nodes: list[Node] = []
    for task in builder.analysis.graph.initialize:
        array = builder.analysis.arrays.get(task.tensor)
        if array is not None and builder.role.overlaps(array.elements.domain()):
            nodes += initialize_code(builder, task, array)
    if counters:
        nodes.append(Cost(stores=len(counters)))
    nodes += [SetInteger(name, Number(count)) for name, count in counters.items()]
    return (*nodes, *starts)


def _finish_code(builder: RoleBuilder) -> Code:
    """Make ready for the next invocation: residents that a state replaces, then begin again."""
    nodes: list[Node] = []
    for old, new in builder.analysis.mapping.state:
        arrays = builder.analysis.arrays
        if old in arrays and builder.role.overlaps(arrays[old].elements.domain()):
            nodes += state_code(builder, arrays[old], arrays[new])
    return (IfNextInvocation((*nodes, Activate(_BEGIN))),)


def _assemble(
    builder: RoleBuilder,
    units: Sequence[_Unit],
    counters: dict[str, int],
    data_tasks: list[DataTask],
    local_tasks: list[LocalTask],
) -> RoleCode:
    inputs = [unit.work.queue for unit in units if isinstance(unit.work, StreamOnRole)]
    outputs: list[str] = []
    for unit in units:
        if isinstance(unit.work, Move):
            taken, given = move_queues(builder, unit.work)
            inputs += taken
            outputs += given
        if isinstance(unit.work, Chain):
            incoming, outgoing = chain_queues(unit.work)
            if _parts_on(builder, unit.work) - {Part.OWN}:
                inputs.append(incoming)
            if not (builder.role.overlaps(unit.work.last) and not unit.work.leaves):
                outputs.append(outgoing)
    return assemble(
        builder,
        where_text(builder, builder.analysis.mapping.grid),
        [a for a in builder.analysis.arrays.values() if _on(builder, a)],
        list(dict.fromkeys(inputs)),
        list(dict.fromkeys(outputs)),
        tuple(counters),
        _BEGIN,
        data_tasks,
        local_tasks,
    )


def _on(builder: RoleBuilder, array: LocalArray) -> bool:
    return builder.role.overlaps(array.elements.domain())
