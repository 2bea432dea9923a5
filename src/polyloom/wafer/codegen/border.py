"""The programs of adapter PEs: one task after the other, in an order that is the same on all PEs.

Source: dtg_codegen, Sec. 4.2 (adapters); how they work is not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.polyhedra.binding import bind, bind_domain
from polyloom.polyhedra.bounds import box_between, elementwise_maximum, elementwise_minimum
from polyloom.polyhedra.functions import point_of
from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, operation_count, sum_of
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import LINE, Connection, Kind
from polyloom.wafer.codegen.arrays import initialize_code
from polyloom.wafer.codegen.passing import Passed, pass_instructions
from polyloom.wafer.codegen.queue_loops import queues_by_instructions
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.streams import index_names
from polyloom.wafer.dataflow.tasks import InitializeTask
from polyloom.wafer.pe_program.addresses import element_at, point_values, scalar_cost, stored
from polyloom.wafer.pe_program.loops import DATA, InstanceCode, tree_code
from polyloom.wafer.pe_program.tree import (
    Activate,
    Block,
    Code,
    Compute,
    Cost,
    CountUp,
    DataTask,
    Discard,
    Element,
    If,
    IfNextInvocation,
    LocalTask,
    Node,
    Received,
    RoleCode,
    Scope,
    Send,
    SendEnd,
    SetValue,
    Unblock,
    Value,
    Variable,
)
from polyloom.wafer.roles.adapter_work import AdapterRole, AdapterWork, queue_name
from polyloom.wafer.roles.assembly import assemble, where_text
from polyloom.wafer.roles.builder import RoleBuilder

_DIM = isl.dim_type
_BEGIN, _FINISH = "begin", "finish"


def border_role_code(analysis: LayerAnalysis, here: AdapterRole) -> RoleCode:
    """Return the program of one role of adapter PEs."""
    builder = RoleBuilder(analysis, here.role)
    data_tasks: list[DataTask] = []
    local_tasks: list[LocalTask] = []
    then: Code = (Activate(_FINISH),)
    for work in reversed(here.works):
        start, data, local = _tasks_of(builder, work, then)
        data_tasks, local_tasks, then = [*data, *data_tasks], [*local, *local_tasks], start
    buffers = [work.buffer for work in here.works if work.buffer is not None]
    begin = [node for buffer in buffers for node in _clear(builder, buffer)]
    local_tasks.insert(0, LocalTask(_BEGIN, (*begin, *then), False))
    local_tasks.append(LocalTask(_FINISH, (IfNextInvocation((Activate(_BEGIN),)),), False))
    queues = [work.queues() for work in here.works]
    return assemble(
        builder,
        where_text(builder, analysis.border.given.grid),
        buffers,
        list(dict.fromkeys(name for incoming, _ in queues for name in incoming)),
        list(dict.fromkeys(name for _, outgoing in queues for name in outgoing)),
        (),
        _BEGIN,
        data_tasks,
        local_tasks,
    )


def _clear(builder: RoleBuilder, buffer: LocalArray) -> Code:
    return initialize_code(builder, InitializeTask(buffer.tensor, 0), buffer)


def _tasks_of(
    builder: RoleBuilder, work: AdapterWork, then: Code
) -> tuple[Code, list[DataTask], list[LocalTask]]:
    """Return how an adapter's work starts, and its tasks; at its end comes ``then``."""
    adapter = work.adapter
    if adapter.spread and adapter.sparse:
        data = _forwarding_task(builder, work, then)
        return (Unblock(data.queue),), [data], []
    name = work.task
    body = (*_pass_all(builder, work), *then)
    local = [LocalTask(name, body, True)]
    start: Code = (Activate(name),)
    data_tasks: list[DataTask] = []
    if work.buffer is not None:
        for kind in reversed(work.at_ports()):
            task = _keeping_task(builder, work, work.buffer, kind, start)
            data_tasks.insert(0, task)
            start = (Unblock(task.queue),)
    return start, data_tasks, local


# Sparse elements as they come.


def _forwarding_task(builder: RoleBuilder, work: AdapterWork, then: Code) -> DataTask:
    """Send on what the row or column needs, under its index there."""
    adapter = work.adapter
    (whole,) = work.at_ports()
    queue, out = (
        queue_name(adapter, whole.origin, incoming=True),
        queue_name(adapter, LINE, incoming=False),
    )
    needed = next(kind for kind in work.kinds if kind.targets)
    arriving = _arriving(builder, work, whole)
    wanted = _arriving(builder, work, needed)
    names = _index_variables(queue, adapter.rank)
    code = builder.code(arriving, names)
    index = sum_of([(1, Name("index")), (-1, _shift(builder, adapter))])
    value = Compute.of(Variable(DATA), adapter.type)
    body: Code = (Cost(operations=operation_count(index)), Send(out, value, adapter.type, index))
    condition = code.condition(wanted)
    if condition is not None:
        body = (Cost(operations=operation_count(condition), branches=1), If(condition, body))
    end = _forwarding_end(builder, work, whole, needed, (Block(queue), *then))
    return DataTask(
        queue=queue,
        name=f"handle_{adapter.name}",
        type=adapter.type,
        body=body,
        end_name=f"end_{adapter.name}",
        end=end,
        blocking=True,
    )


def _index_variables(queue: str, rank: int) -> dict[str, str]:
    """Return the names of the outer index variables in the code."""
    return {name: f"{queue}_{name}" for name in index_names(rank)[:-1]}


def _arriving(builder: RoleBuilder, work: AdapterWork, kind: Kind) -> isl.Set:
    """Return ``[PE_X, PE_Y, index_0, index] -> { : }``: the index values at which elements of a kind come."""
    indices = kind.here(work.adapter).apply(_without_port(work.adapter))
    return bind(indices, index_names(work.adapter.rank)).intersect(builder.role.context)


def _without_port(adapter: Adapter) -> isl.Map:
    """Return ``{ at[p, k...] -> index[k...] }``."""
    k = ", ".join(f"k{n}" for n in range(adapter.rank))
    return isl.Map(f"{{ at[p, {k}] -> index[{k}] }}")


def _shift(builder: RoleBuilder, adapter: Adapter) -> IntExpression:
    """Return what the innermost index counts from on the row or column of a PE."""
    least = bind_domain(adapter.least, (adapter.line.parameter,)).intersect_params(builder.role.context)
    return builder.code().value(least.dim_max(least.dim(_DIM.set) - 1))


def _forwarding_end(
    builder: RoleBuilder, work: AdapterWork, whole: Kind, needed: Kind, finished: Code
) -> Code:
    """Pass on the end of each chunk that the row or column has; count them; after the last go on."""
    queue, out = (
        queue_name(work.adapter, whole.origin, incoming=True),
        queue_name(work.adapter, LINE, incoming=False),
    )
    send: Code = (SendEnd(out),)
    if work.adapter.rank == 1:
        return (*send, *finished)
    names = index_names(work.adapter.rank)[:-1]
    chunks, kept = _chunks(builder, work, whole), _outer(builder, work, needed)
    kept = box_between(elementwise_minimum(kept), elementwise_maximum(kept))
    code = builder.code(bind(chunks, names), _index_variables(queue, work.adapter.rank))
    condition = code.condition(bind(kept, names))
    if condition is not None:
        send = (Cost(operations=operation_count(condition), branches=1), If(condition, send))
    return (*send, *_counted(builder, work, whole, finished))


def _outer(builder: RoleBuilder, work: AdapterWork, kind: Kind) -> isl.Set:
    """Return ``[PE_X, PE_Y] -> { index[outer] }`` of a kind."""
    adapter = work.adapter
    indices = kind.here(adapter).apply(_without_port(adapter)).intersect_params(builder.role.context)
    return indices.project_out(_DIM.set, adapter.rank - 1, 1).set_tuple_name("index")


def _chunks(builder: RoleBuilder, work: AdapterWork, kind: Kind) -> isl.Set:
    """Return all tuples of outer indices at the port of a PE: from 0 to the largest of each."""
    outer = _outer(builder, work, kind)
    zero = point_of(isl.MultiAff.zero(outer.get_space().from_range()))
    return box_between(zero, elementwise_maximum(outer)).intersect_params(outer.params())


def _counted(builder: RoleBuilder, work: AdapterWork, kind: Kind, finished: Code) -> Code:
    """Count an end of chunk; after the last one comes ``finished``."""
    if work.adapter.rank == 1:
        return finished
    outer = _outer(builder, work, kind)
    queue, code, body = queue_name(work.adapter, kind.origin, incoming=True), builder.code(), finished
    for k, name in enumerate(index_names(work.adapter.rank)[:-1]):
        counter = builder.counter(f"{queue}_{name}")
        body = (CountUp(counter, code.value(outer.dim_max(k).add_constant_val(isl.Val(1))), body),)
    return body


def _keeping_task(
    builder: RoleBuilder, work: AdapterWork, buffer: LocalArray, kind: Kind, then: Code
) -> DataTask:
    """Keep the sparse elements of a port; the rest of the buffer is zero."""
    adapter = work.adapter
    queue = queue_name(adapter, kind.origin, incoming=True)
    code = builder.code(_arriving(builder, work, kind), _index_variables(queue, adapter.rank))
    k = index_names(adapter.rank)
    bound = isl.Set(f"[{', '.join(k)}] -> {{ at[p, {', '.join(k)}] }}")
    local = kind.here(adapter).intersect(bound).intersect_params(builder.role.context)
    element = Element(buffer.name, point_values(local.apply(isl.Map.from_multi_aff(buffer.map)), code))
    value = Compute.of(Variable(DATA), adapter.type)
    body: Code = stored(element, value)
    end = _counted(builder, work, kind, (Block(queue), *then))
    name = f"{adapter.name}_{kind.origin.name}"
    return DataTask(
        queue=queue, name=f"handle_{name}", type=adapter.type, body=body, end_name=f"end_{name}", end=end
    )


# Element by element.


def _pass_all(builder: RoleBuilder, work: AdapterWork) -> Code:
    """Return what takes all elements in their order and sends each where it goes."""
    return _instructions(builder, work) or queues_by_instructions(builder, _element_by_element(builder, work))


def _instructions(builder: RoleBuilder, work: AdapterWork) -> Code | None:
    """Pass elements on by instructions; value-position pairs are made one by one, at ports and lines."""
    adapter = work.adapter
    makes_pairs = adapter.sparse and any(not target.step for kind in work.kinds for target in kind.targets)
    if makes_pairs or work.buffer is not None:
        return None
    parts = [
        Passed(
            name=f"{adapter.name}_{number}",
            items=_items(builder, work, kind),
            origin=queue_name(adapter, kind.origin, incoming=True),
            targets=tuple(queue_name(adapter, target, incoming=False) for target in kind.targets),
            kept=False,
            local=None,
        )
        for number, kind in enumerate(work.kinds)
    ]
    return pass_instructions(builder, parts, adapter.type, None)


def _items(builder: RoleBuilder, work: AdapterWork, kind: Kind) -> isl.Set:
    k = ", ".join(["p", *(f"k{n}" for n in range(work.adapter.rank))])
    named = isl.Map(f"{{ at[{k}] -> index[{k}] }}")
    return kind.here(work.adapter).apply(named).intersect_params(builder.role.context)


def _element_by_element(builder: RoleBuilder, work: AdapterWork) -> Code:
    """Return loops that take all elements in their order and send each where it goes."""
    make: dict[str, InstanceCode] = {}
    schedule: isl.UnionMap | None = None
    for number, kind in enumerate(work.kinds):
        name = f"pass_{number}"
        items = kind.here(work.adapter).intersect_params(builder.role.context)
        visited = isl.UnionMap.from_map(_visit(items, name))
        schedule = visited if schedule is None else schedule.union(visited)
        make[name] = _maker(builder, work, kind)
    assert schedule is not None
    if work.adapter.sparse:
        for target in dict.fromkeys(t for kind in work.kinds for t in kind.targets if not t.step):
            name = f"end_{target.name}"
            schedule = schedule.union(isl.UnionMap.from_map(_ends(builder, work, target, name)))
            make[name] = _end_maker(queue_name(work.adapter, target, incoming=False))
    return tree_code(builder.code().loops(schedule), make)


def _end_maker(queue: str) -> InstanceCode:
    return lambda arguments: (SendEnd(queue),)


def _visit(items: isl.Set, name: str) -> isl.Map:
    """Return ``{ name[p, k...] -> [p, outer..., 0, innermost] }`` on the items."""
    dims = [f"i{n}" for n in range(items.dim(_DIM.set))]
    order = [*dims[:-1], "0", dims[-1]]
    text = f"{{ {name}[{', '.join(dims)}] -> [{', '.join(order)}] }}"
    return isl.Map(text).intersect_domain(items.set_tuple_name(name))


def _ends(builder: RoleBuilder, work: AdapterWork, target: Connection, name: str) -> isl.Map:
    """Return ``{ name[p, outer...] -> [p, outer..., 1, 0] }``: an end after every chunk.

    At a port, outer indices count from 0; on a row or column, from the smallest there.
    """
    items: isl.Set | None = None
    for kind in work.kinds:
        if target in kind.targets:
            here = kind.here(work.adapter).intersect_params(builder.role.context)
            items = here if items is None else items.union(here)
    assert items is not None
    outer = items.project_out(_DIM.set, work.adapter.rank, 1).set_tuple_name(name)
    low = elementwise_minimum(outer)
    if target.entry is not None:
        zeros = ", ".join(["p", *["0"] * (work.adapter.rank - 1)])
        dims = ", ".join(["p", *(f"k{n}" for n in range(work.adapter.rank - 1))])
        low = low.apply(isl.Map(f"{{ {name}[{dims}] -> {name}[{zeros}] }}"))
    box = box_between(low, elementwise_maximum(outer))
    dims_of = [f"i{n}" for n in range(work.adapter.rank)]
    text = f"{{ {name}[{', '.join(dims_of)}] -> [{', '.join([*dims_of, '1', '0'])}] }}"
    return isl.Map(text).intersect_domain(box)


def _maker(builder: RoleBuilder, work: AdapterWork, kind: Kind) -> InstanceCode:
    adapter = work.adapter
    shift = _shift(builder, adapter) if LINE in kind.targets and adapter.sparse else Number(0)

    def make(arguments: Sequence[IntExpression]) -> Code:
        source = _source(builder, work, kind, arguments)
        value = Compute.of(source, adapter.type)
        if not kind.targets:
            return () if isinstance(source, Element) else (Discard(value),)
        cost = scalar_cost(value)
        if len(kind.targets) == 1:
            return (cost, _send(adapter, kind.targets[0], value, arguments[-1], shift))
        held = Compute.of(Variable(DATA), adapter.type)
        sends = (_send(adapter, target, held, arguments[-1], shift) for target in kind.targets)
        return (cost, Scope((SetValue(DATA, adapter.type, value), *sends)))

    return make


def _source(builder: RoleBuilder, work: AdapterWork, kind: Kind, arguments: Sequence[IntExpression]) -> Value:
    if work.buffer is not None and kind.origin.entry is not None:
        return element_at(work.buffer, work.buffer.map, arguments, builder.code())
    return Received(queue_name(work.adapter, kind.origin, incoming=True), work.adapter.type)


def _send(
    adapter: Adapter, target: Connection, value: Compute, index: IntExpression, shift: IntExpression
) -> Node:
    """Send to a neighbour, or, as a value-position pair where that is what is expected, on."""
    queue = queue_name(adapter, target, incoming=False)
    if target.step or not adapter.sparse:
        return Send(queue, value, adapter.type)
    counted = sum_of([(1, index), (-1, shift)]) if target.is_line else index
    return Send(queue, value, adapter.type, counted)
