"""The program of a role: its tasks, and which task's end lets which other one start.

An invocation begins with the initialisation of local memory; streams are taken in when what their
statements need is there; local statements and chains follow; after the last of them the PE is ready
for the next invocation.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.polyhedra.loops.generate import Number
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.codegen.arrays import initialize_code, state_code
from polyloom.wafer.codegen.chains import chain_code
from polyloom.wafer.codegen.compute import compute_code
from polyloom.wafer.codegen.moves import move_code, move_queues
from polyloom.wafer.codegen.queue_loops import queues_by_instructions
from polyloom.wafer.codegen.streams import (
    element_body,
    end_of_chunk,
    receive_all,
    store_segments,
    whole_instruction,
)
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.pe_program.tree import (
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
from polyloom.wafer.program.precedence import BEGIN, SynchronisationPolicy, needs_of
from polyloom.wafer.program.terms_in_place import with_terms_in_place
from polyloom.wafer.roles.activities import Activity, RoleActivities
from polyloom.wafer.roles.assembly import assemble, where_text
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.roles.work import StreamOnRole, parts_on
from polyloom.wafer.simd.decision import SimdAnalysis

_FINISH = "finish"


def role_code(analysis: LayerAnalysis, here: RoleActivities, policy: SynchronisationPolicy) -> RoleCode:
    """Return the program of one role."""
    builder, activities = RoleBuilder(analysis, here.role), here.activities
    before = _reduced({name: set(needs) for name, needs in needs_of(analysis, here, policy).items()})
    starts = {activity.name: _start_node(activity) for activity in activities}
    after = _after(activities, before, starts)
    data_tasks: list[DataTask] = []
    local_tasks: list[LocalTask] = [LocalTask(BEGIN, (), False)]
    for activity in activities:
        done = after[activity.name]
        if isinstance(activity.work, StreamOnRole) and activity.work.stream.sparse:
            data_tasks.append(_sparse_task(builder, activity.work, done))
        else:
            local_tasks += _tasks_of(builder, activity, done)
    counters = _waiting_counters(activities, before)
    local_tasks[0] = LocalTask(BEGIN, _begin_code(builder, counters, after[BEGIN]), False)
    local_tasks.append(LocalTask(_FINISH, _finish_code(builder), False))
    code = _assemble(builder, activities, counters, data_tasks, local_tasks)
    if not analysis.options.has(Extension.FIRST_TERMS):
        return code
    chains = [activity.name for activity in activities if isinstance(activity.work, Chain)]
    return with_terms_in_place(code, chains, [array.name for array in analysis.arrays.values()])


def _reduced(needs: dict[str, set[str]]) -> dict[str, set[str]]:
    """Drop what is implied: if C waits for B and B for A, C need not wait for A."""
    known: dict[str, set[str]] = {}

    def ancestors(name: str) -> set[str]:
        if name not in known:
            direct = needs.get(name, set())
            known[name] = direct.union(*(ancestors(n) for n in direct))
        return known[name]

    return {
        name: {n for n in direct if not any(n in ancestors(m) for m in direct if m != n)}
        for name, direct in needs.items()
    }


def _start_node(activity: Activity) -> Node:
    if isinstance(activity.work, StreamOnRole) and activity.work.stream.sparse:
        return Unblock(activity.work.queue)
    return Activate(activity.name)


def _after(
    activities: Sequence[Activity], before: dict[str, set[str]], starts: dict[str, Node]
) -> dict[str, Code]:
    """Return, for ``begin`` and each activity, the code at its end: what it lets start."""
    followed = {n for needs in before.values() for n in needs}
    leaves = {activity.name for activity in activities} - followed or {BEGIN}
    everything = {**before, _FINISH: leaves}
    begin_to = {**starts, _FINISH: Activate(_FINISH)}
    result: dict[str, Code] = {}
    for name in (BEGIN, *(activity.name for activity in activities)):
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


def _waiting_counters(activities: Sequence[Activity], before: dict[str, set[str]]) -> dict[str, int]:
    followed = {n for needs in before.values() for n in needs}
    leaves = {activity.name for activity in activities} - followed
    counts = {**{name: len(needs) for name, needs in before.items()}, _FINISH: len(leaves)}
    return {f"{name}_waiting": count for name, count in counts.items() if count > 1}


def _sparse_task(builder: RoleBuilder, here: StreamOnRole, done: Code) -> DataTask:
    return DataTask(
        queue=here.queue,
        name=f"handle_{here.label}",
        type=here.stream.type,
        body=element_body(builder, here),
        end_name=f"end_{here.label}",
        end=end_of_chunk(builder, here, done),
    )


def _tasks_of(builder: RoleBuilder, activity: Activity, done: Code) -> list[LocalTask]:
    if isinstance(activity.work, Chain):
        chained = queues_by_instructions(builder, chain_code(builder, activity.work))
        return [LocalTask(activity.name, (*chained, *done), True)]
    if isinstance(activity.work, Move):
        moved = queues_by_instructions(builder, move_code(builder, activity.work))
        return [LocalTask(activity.name, (*moved, *done), True)]
    if isinstance(activity.work, SimdAnalysis):
        return [
            LocalTask(activity.name, (*compute_code(builder, activity.work, builder.code()), *done), False)
        ]
    return _dense_tasks(builder, activity, activity.work, done)


def _dense_tasks(builder: RoleBuilder, activity: Activity, here: StreamOnRole, done: Code) -> list[LocalTask]:
    finished = f"end_{here.label}"
    whole = whole_instruction(builder, here, finished)
    if whole is not None:
        return [LocalTask(activity.name, whole, False), LocalTask(finished, done, False)]
    body = store_segments(builder, here) or receive_all(builder, here, element_body(builder, here))
    return [LocalTask(activity.name, (*queues_by_instructions(builder, body), *done), True)]


def _begin_code(builder: RoleBuilder, counters: dict[str, int], starts: Code) -> Code:
    nodes: list[Node] = []
    for task in builder.analysis.graph.initialize:
        array = builder.analysis.arrays.get(task.tensor)
        if task.tensor in builder.begun:
            continue
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
    return (IfNextInvocation((*nodes, Activate(BEGIN))),)


def _assemble(
    builder: RoleBuilder,
    activities: Sequence[Activity],
    counters: dict[str, int],
    data_tasks: list[DataTask],
    local_tasks: list[LocalTask],
) -> RoleCode:
    inputs = [activity.work.queue for activity in activities if isinstance(activity.work, StreamOnRole)]
    outputs: list[str] = []
    for activity in activities:
        if isinstance(activity.work, Move):
            taken, given = move_queues(builder, activity.work)
            inputs += taken
            outputs += given
        if isinstance(activity.work, Chain):
            if parts_on(builder.role, activity.work) - {Part.OWN}:
                inputs.append(activity.work.queue(incoming=True))
            if not (builder.role.overlaps(activity.work.last) and not activity.work.leaves):
                outputs.append(activity.work.queue(incoming=False))
    return assemble(
        builder,
        where_text(builder, builder.analysis.mapping.grid),
        [a for a in builder.analysis.arrays.values() if _on(builder, a)],
        list(dict.fromkeys(inputs)),
        list(dict.fromkeys(outputs)),
        tuple(counters),
        BEGIN,
        data_tasks,
        local_tasks,
    )


def _on(builder: RoleBuilder, array: LocalArray) -> bool:
    return builder.role.overlaps(array.elements.domain())
