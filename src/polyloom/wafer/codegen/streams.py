"""The code of arriving streams: tasks for sparse elements, loops or one instruction for dense tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain, unbind_domain
from polyloom.polyhedra.functions import compose
from polyloom.polyhedra.loops.generate import IntExpression, Name, instances_in, operation_count
from polyloom.polyhedra.simplify import settled
from polyloom.wafer.codegen.chains import chunk_extents
from polyloom.wafer.codegen.compute import compute_code
from polyloom.wafer.codegen.passing import Passed, pass_instructions
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import StoreTask
from polyloom.wafer.machine.descriptor_nests import find_nest, linear_function
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.pe_program.addresses import (
    coalesced,
    count_of,
    element_at_point,
    flat_strides,
    point_values,
    scalar_cost,
    without_units,
)
from polyloom.wafer.pe_program.loops import DATA, named_loops, tree_code
from polyloom.wafer.pe_program.tree import (
    Block,
    Code,
    Compute,
    Cost,
    CountUp,
    Element,
    If,
    Invoke,
    OperandRef,
    Received,
    Scope,
    SetBase,
    SetInteger,
    SetValue,
    StoreElement,
    Variable,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdAnalysis

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class StreamOnRole:
    """A stream as the PEs of one role receive it: what is kept, and what it drives."""

    stream: Stream
    label: str
    store: StoreTask | None
    drives: tuple[SimdAnalysis, ...]

    @property
    def queue(self) -> str:
        """The input queue's name."""
        return f"{self.label}_in"

    def names(self) -> dict[str, str]:
        """Return the names of the outer index variables in the code: ``x_index_0``, ..."""
        names = self.stream.index_names
        return {name: f"{self.label}_{name}" for name in names[:-1]}


def streams_on(builder: RoleBuilder) -> tuple[StreamOnRole, ...]:
    """Return the streams that a role receives, in the order of ``iport_map``."""
    graph, role = builder.analysis.graph, builder.role
    received = [s for s in graph.streams if role.overlaps(s.receivers)]
    result: list[StreamOnRole] = []
    for stream in received:
        alone = [s for s in received if stream.tensor in (s.tensor, s.name)] == [stream]
        stores = [s for s in graph.stores if s.stream is stream and role.overlaps(s.stored.domain())]
        drives = [a for a in builder.analysis.simd if a.task.stream is stream and _present(builder, a)]
        label = stream.tensor if alone else stream.name
        result.append(StreamOnRole(stream, label, stores[0] if stores else None, tuple(drives)))
    return tuple(result)


def _present(builder: RoleBuilder, analysis: SimdAnalysis) -> bool:
    known = analysis.task.known.intersect(builder.role.context)
    return not known.is_empty()


def element_body(builder: RoleBuilder, here: StreamOnRole) -> Code:
    """Return what one element ``data`` with its index does: it is kept, and instances run."""
    arriving = here.stream.arriving().params().intersect(builder.role.context)
    code = builder.code(arriving, here.names())
    nodes: Code = ()
    if here.store is not None:
        nodes += _store_element(builder, here, here.store, arriving)
    for analysis in here.drives:
        nodes += compute_code(builder, analysis, code)
    return nodes


def _store_element(builder: RoleBuilder, here: StreamOnRole, store: StoreTask, arriving: isl.Set) -> Code:
    """Keep the element if the PE needs it. The element is a function of the PE and the index."""
    array = builder.array(here.stream.tensor)
    code = builder.code(arriving, here.names())
    kept = here.stream.arriving().intersect(array.held()).intersect_params(builder.role.context)
    local = kept.apply(isl.Map.from_multi_aff(array.map))
    element = Element(array.name, point_values(local, code))
    value = Compute(Read(0, here.stream.type), ((0, Variable(DATA)),))
    body: Code = (scalar_cost(value, [element]), StoreElement(element, value))
    condition = code.condition(kept)
    if condition is None:
        return body
    return (Cost(operations=operation_count(condition), branches=1), If(condition, body))


def end_of_chunk(builder: RoleBuilder, here: StreamOnRole, finished: Code) -> Code:
    """Count the chunks; after the last one, block the queue and go on."""
    body: Code = (Block(here.queue), *finished)
    rank = here.stream.index_rank
    chunks = chunk_extents(here.stream.carried, rank).intersect_params(builder.role.context)
    if rank == 1:
        return body
    code = builder.code()
    for k in range(rank - 1):
        counter = builder.counter(f"{here.label}_index_{k}")
        last = code.value(chunks.dim_max(k).add_constant_val(isl.Val(1)))
        body = (CountUp(counter, last, body),)
    return (*body, *(node for more in builder.at_chunk.get(here.stream.name, ()) for node in more))


def receive_all(builder: RoleBuilder, here: StreamOnRole, body: Code) -> Code:
    """Return loops that receive a dense stream element by element, in its order."""
    indices = here.stream.indices().intersect_params(builder.role.context)
    order = isl.Map.identity(indices.get_space().map_from_set()).intersect_domain(indices)
    names = [here.names().get(name, name) for name in here.stream.index_names]
    tree = named_loops(builder.code().loops(isl.UnionMap.from_map(order.reset_tuple_id(_DIM.out))), names)
    received = Compute(Read(0, here.stream.type), ((0, Received(here.queue, here.stream.type)),))

    def instance(arguments: Sequence[IntExpression]) -> Code:
        bind = tuple(
            SetInteger(name, argument, declare=True)
            for name, argument in zip(names, arguments, strict=True)
            if argument != Name(name)
        )
        code = (*bind, SetValue(DATA, here.stream.type, received), *body)
        return (Scope(code),) if several else code

    several = len(list(instances_in(tree))) > 1
    return tree_code(tree, {"index": instance})


def store_instruction(builder: RoleBuilder, here: StreamOnRole, then: str) -> Code | None:
    """Return one instruction that stores a whole dense stream beside the main thread, where it can."""
    if here.store is None or here.drives or not builder.simd:
        return None
    array = builder.array(here.stream.tensor)
    to_local = _index_to_local(builder, here)
    indices = here.stream.indices().intersect_params(builder.role.context)
    if not indices.is_subset(to_local.domain()):
        return None
    nest, function = find_nest(indices, ()), linear_function(to_local)
    if nest is None or function is None:
        return None
    code = builder.code()
    access = nest.access(function)
    sizes = point_values(nest.size.intersect_params(builder.role.context), code)
    kept, (strides,) = without_units(sizes, flat_strides(access, array))
    target = builder.memory_operand(f"{here.label}_store", *coalesced(kept, strides))
    source = builder.fabric_operand(f"{here.label}_receive", here.queue, count_of(sizes), output=False)
    start = nest.start.intersect_params(builder.role.context)
    builder.setup.append((SetBase(target, element_at_point(array, access, start, code)),))
    return (Invoke(move_instruction(here.stream.type).name, target, (source,), then),)


def store_segments(builder: RoleBuilder, here: StreamOnRole) -> Code | None:
    """Return instructions for a dense stream of which the PE keeps a part: what is kept, what goes by.

    None where the stream also drives a statement, or where instructions would be for single elements.
    """
    if here.store is None or here.drives:
        return None
    to_local = _index_to_local(builder, here)
    indices = here.stream.indices().intersect_params(builder.role.context)
    kept = settled(to_local.domain().intersect(indices))
    parts = [Passed(f"{here.label}_store", kept, here.queue, (), True, to_local)]
    for name, going in here.store.passing.items():
        if builder.role.overlaps(going.domain()):
            items = bind_domain(going, PE_PARAMETERS).intersect_params(builder.role.context)
            parts.append(Passed(f"{here.label}_{name}", items, here.queue, (), False, None))
    return pass_instructions(builder, parts, here.stream.type, builder.array(here.stream.tensor))


def _index_to_local(builder: RoleBuilder, here: StreamOnRole) -> isl.Map:
    """Return ``[PE_X, PE_Y] -> { index[k] -> x_local[...] }`` for the elements that the PE keeps."""
    array = builder.array(here.stream.tensor)
    kept = here.stream.arriving().intersect(array.held()).intersect_params(builder.role.context)
    by_index = unbind_domain(kept, "index", here.stream.index_names)
    return by_index.apply_range(isl.Map.from_multi_aff(array.map))


def whole_instruction(builder: RoleBuilder, here: StreamOnRole, then: str) -> Code | None:
    """Return one instruction that works on a whole dense stream as it comes, where that was decided."""
    if here.store is not None or len(here.drives) != 1 or here.drives[0].whole is None:
        return None
    analysis, whole = here.drives[0], here.drives[0].whole
    context, code = builder.role.context, builder.code()
    order = whole.nest.access(whole.instance_at)
    sizes = point_values(whole.nest.size.intersect_params(context), code)
    start = whole.nest.start.intersect_params(context)
    operands: dict[int, OperandRef] = {}
    for operand in analysis.operands:
        array = builder.array(operand.tensor)
        access = compose(compose(order, operand.access), array.map)
        kept, (strides,) = without_units(sizes, flat_strides(access, array))
        name = f"{analysis.task.name}_{operand.tensor}"
        operands[operand.position] = builder.memory_operand(name, *coalesced(kept, strides))
        base = element_at_point(array, access, start, code)
        builder.setup.append((SetBase(operands[operand.position], base),))
    assert analysis.task.trigger is not None
    operands[analysis.task.trigger] = builder.fabric_operand(
        f"{here.label}_receive", here.queue, count_of(sizes), output=False
    )
    sources = tuple(
        operands[e.position] if isinstance(e, Read) else Compute(e, ()) for e in whole.match.operands
    )
    return (Invoke(whole.match.instruction.name, operands[ACCUMULATOR], sources, then),)
