"""The code of arriving streams: tasks for sparse elements, loops or one instruction for dense tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain
from polyloom.polyhedra.functions import compose
from polyloom.polyhedra.loops.generate import IntExpression, Name, operation_count
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.polyhedra.simplify import with_explicit_divs
from polyloom.wafer.codegen.chains import chunk_extents
from polyloom.wafer.codegen.compute import compute_code
from polyloom.wafer.codegen.filters import filter_of
from polyloom.wafer.codegen.passing import Passed, pass_instructions
from polyloom.wafer.dataflow.line_traffic import beside
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.pe_program.addresses import (
    coalesced,
    count_of,
    element_at_point,
    flat_strides,
    point_values,
    stored,
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
    Variable,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.roles.work import StreamOnRole, WholeStore
from polyloom.wafer.simd.whole_stream import WholeStream

_DIM = isl.dim_type


def element_body(builder: RoleBuilder, here: StreamOnRole) -> Code:
    """Return what one element ``data`` with its index does: it is kept, and instances run."""
    arriving = here.stream.arriving().params().intersect(builder.role.context)
    code = builder.code(arriving, here.names())
    nodes: Code = ()
    if here.store is not None:
        nodes += _store_element(builder, here, arriving)
    for analysis in here.drives:
        nodes += compute_code(builder, analysis, code)
    return nodes


def _store_element(builder: RoleBuilder, here: StreamOnRole, arriving: isl.Set) -> Code:
    """Keep the element if the PE needs it. The element is a function of the PE and the index."""
    array = builder.array(here.stream.tensor)
    code = builder.code(arriving, here.names())
    kept = here.stream.arriving().intersect(array.held()).intersect_params(builder.role.context)
    local = kept.apply(isl.Map.from_multi_aff(array.map))
    element = Element(array.name, point_values(local, code))
    value = Compute.of(Variable(DATA), here.stream.type)
    body: Code = stored(element, value)
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
    received = Compute.of(Received(here.queue, here.stream.type), here.stream.type)

    def instance(arguments: Sequence[IntExpression]) -> Code:
        bind = tuple(
            SetInteger(name, argument, declare=True)
            for name, argument in zip(names, arguments, strict=True)
            if argument != Name(name)
        )
        code = (*bind, SetValue(DATA, here.stream.type, received), *body)
        return (Scope(code),) if several else code

    several = len(list(leaves_in(tree))) > 1
    return tree_code(tree, {"index": instance})


def whole_instruction(builder: RoleBuilder, here: StreamOnRole, then: str) -> Code | None:
    """Return one instruction that receives a whole dense stream, beside the main thread, if it was chosen."""
    if here.whole_store is not None:
        return _whole_store(builder, here, here.whole_store, then)
    if here.whole_compute is not None:
        return _whole_compute(builder, here, here.whole_compute, then)
    return None


def _whole_store(builder: RoleBuilder, here: StreamOnRole, whole: WholeStore, then: str) -> Code:
    """Keep all elements."""
    array, code = builder.array(here.stream.tensor), builder.code()
    access = whole.nest.access(whole.local_at)
    sizes = point_values(whole.nest.size.intersect_params(builder.role.context), code)
    kept, (strides,) = without_units(sizes, flat_strides(access, array))
    target = builder.memory_operand(f"{here.label}_store", *coalesced(kept, strides))
    source = builder.fabric_operand(f"{here.label}_receive", here.queue, count_of(sizes), output=False)
    start = whole.nest.start.intersect_params(builder.role.context)
    builder.setup.append((SetBase(target, element_at_point(array, access, start, code)),))
    return (Invoke(move_instruction(here.stream.type).name, target, (source,), then),)


def store_segments(builder: RoleBuilder, here: StreamOnRole) -> Code | None:
    """Return instructions for a dense stream of which the PE keeps a part: what is kept, what goes by.

    None where the stream also drives a statement, or where instructions would be for single elements. Where
    what the PE needs has holes, all that has a cell is kept: nobody reads the others.
    """
    if here.store is None or here.kept is None or here.in_box is None or here.drives:
        return None
    indices = here.stream.indices().intersect_params(builder.role.context)
    going = {
        name: bind_domain(passing, PE_PARAMETERS).intersect_params(builder.role.context)
        for name, passing in here.store.passing.items()
        if builder.role.overlaps(passing.domain())
    }
    found = _segments(builder, here, here.kept, going)
    if found is not None or here.in_box.is_equal(here.kept):
        return found
    kept = with_explicit_divs(here.in_box.domain().intersect(indices))
    return _segments(builder, here, here.in_box, beside(kept, indices.subtract(kept)))


def _segments(
    builder: RoleBuilder, here: StreamOnRole, local: isl.Map, going: Mapping[str, isl.Set]
) -> Code | None:
    indices = here.stream.indices().intersect_params(builder.role.context)
    kept = with_explicit_divs(local.domain().intersect(indices))
    parts = [
        Passed(name=f"{here.label}_store", items=kept, origin=here.queue, targets=(), kept=True, local=local)
    ]
    for name, items in going.items():
        label = f"{here.label}_{name}"
        parts.append(Passed(name=label, items=items, origin=here.queue, targets=(), kept=False, local=None))
    array, filtering = builder.array(here.stream.tensor), filter_of(builder, here.queue, parts, indices)
    if filtering is not None:
        code = pass_instructions(builder, parts[:1], here.stream.type, array)
        if code is not None:
            builder.filters.append(filtering)
            return code
    return pass_instructions(builder, parts, here.stream.type, array)


def _whole_compute(builder: RoleBuilder, here: StreamOnRole, whole: WholeStream, then: str) -> Code:
    """Run all instances of the only task that the stream drives."""
    (analysis,) = here.drives
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
