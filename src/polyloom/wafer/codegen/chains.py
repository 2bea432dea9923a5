"""The code of chains: receive, combine, forward and send elements in the order of the output's index.

The sequence of a PE is cut into segments, each one SIMD instruction on the fabric: with no loop around
them if that works, else with loops over one, two, ... outer index dimensions; at last element by element.
Source: dtg_codegen, Sec. 4.2 (communication tasks); docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.expressions import Binary, Read
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain
from polyloom.polyhedra.bounds import box_between, elementwise_maximum
from polyloom.polyhedra.functions import point_of
from polyloom.polyhedra.loops.generate import IntExpression
from polyloom.polyhedra.simplify import plainly
from polyloom.wafer.codegen.segment_code import from_its_base, memory_operand, segment_code, sizes_of
from polyloom.wafer.codegen.segments import Cut, Elements, Segment, cut, cut_at
from polyloom.wafer.codegen.turns import ALL_PES, own_elements
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.machine.instructions import Instruction, combining_instruction, move_instruction
from polyloom.wafer.pe_program.addresses import count_of, scalar_cost, stored
from polyloom.wafer.pe_program.loops import InstanceCode, tree_code
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Element,
    Invoke,
    OperandRef,
    Received,
    Send,
    SendEnd,
    TurnSwitches,
)
from polyloom.wafer.roles.builder import RoleBuilder

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class _ChainOnRole:
    """A chain as the PEs of one role see it: ``elements``: ``{ index[k] -> y_local[...] }`` per kind."""

    chain: Chain
    positions: dict[Part, isl.Set]
    elements: dict[Part, isl.Map]
    is_last: bool

    @property
    def queue_in(self) -> str:
        """The input queue's name."""
        return self.chain.queue(incoming=True)

    @property
    def queue_out(self) -> str:
        """The output queue's name."""
        return self.chain.queue(incoming=False)

    @property
    def ends_here(self) -> bool:
        """Whether the results end in the memory of this role's PEs."""
        return self.is_last and not self.chain.leaves

    @property
    def sparse(self) -> bool:
        """Whether what is sent from here are value-position pairs."""
        return self.is_last and self.chain.sparse


def chain_code(builder: RoleBuilder, chain: Chain) -> Code:
    """Return the body of the task that does a chain's work on the PEs of a role."""
    here = _on_role(builder, chain)
    if chain.turns is not None:
        return _own_turn(builder, here, chain.turns)
    if not any(not p.is_empty() for p in here.positions.values()) and not here.sparse:
        return ()
    if builder.simd and not here.sparse:
        table = _instructions(here)
        pieces = None if table is None else cut(_kinds(here))
        if table is not None and pieces is not None:
            makers = {s.elements.name: _maker(builder, here, pieces, s, table) for s in pieces.segments}
            return segment_code(builder, pieces, makers)
    return _scalar_code(builder, here)


def _own_turn(builder: RoleBuilder, here: _ChainOnRole, depth: int) -> Code:
    """Send the PE's own elements; behind them of each round a wavelet for its switch, and the next one."""
    array = builder.analysis.arrays[here.chain.tensor]
    contexts = builder.role.context, ALL_PES  # places that are one function on all PEs may hide it on a few
    cuts = (cut_at([own_elements(here.chain, array, context)], depth) for context in contexts)
    pieces = next((found for found in cuts if found is not None), None)
    assert pieces is not None, "it was cut so for all PEs"
    (segment,) = pieces.segments
    move = move_instruction(here.chain.type)
    operands = _operands(builder, here, segment, sizes_of(builder, pieces, segment))
    switches = int(not here.positions[Part.FORWARD].is_empty()) + int(not here.is_last)
    assert operands.memory is not None
    code = (*_instruction(Part.OWN, move, operands), TurnSwitches(here.queue_out, switches))
    place = builder.array(here.chain.tensor)
    maker = from_its_base(builder, pieces, segment, operands.memory, place, code)
    return segment_code(builder, pieces, {Part.OWN.value: maker})


def _on_role(builder: RoleBuilder, chain: Chain) -> _ChainOnRole:
    context = builder.role.context
    array = builder.analysis.arrays[chain.tensor]
    to_local = isl.Map.from_multi_aff(array.map)
    positions = {p: chain.positions(p).intersect_params(context) for p in Part}
    is_last = builder.role.overlaps(chain.last)
    kept = [Part.COMBINE, Part.OWN]
    if is_last and not chain.leaves:
        kept.append(Part.FORWARD)
    elements = {p: chain.element_at().intersect_domain(positions[p]).apply_range(to_local) for p in kept}
    return _ChainOnRole(chain, positions, elements, is_last)


def _instructions(here: _ChainOnRole) -> dict[Part, Instruction] | None:
    """Return the instruction for each kind that occurs; None where one has none."""
    move = move_instruction(here.chain.type)
    result = {Part.OWN: move, Part.FORWARD: move}
    if not here.positions[Part.COMBINE].is_empty():
        operator = here.chain.reduction.operator
        combine = None if operator is None else combining_instruction(operator, here.chain.type)
        if combine is None:
            return None
        result[Part.COMBINE] = combine
    return result


def _kinds(here: _ChainOnRole) -> list[Elements]:
    """Return the elements of each kind that occurs."""
    occurring = (part for part in Part if not here.positions[part].is_empty())
    return [Elements(part.value, here.positions[part], here.elements.get(part)) for part in occurring]


def _maker(
    builder: RoleBuilder, here: _ChainOnRole, pieces: Cut, segment: Segment, table: Mapping[Part, Instruction]
) -> InstanceCode:
    """Declare a segment's operands; return the function that makes its code at given outer indices."""
    part, array = Part(segment.elements.name), builder.array(here.chain.tensor)
    sizes = sizes_of(builder, pieces, segment)
    operands = _operands(builder, here, segment, sizes)
    code = _instruction(part, table[part], operands)
    if operands.memory is None:
        return lambda arguments: code
    return from_its_base(builder, pieces, segment, operands.memory, array, code)


@dataclass(frozen=True)
class _Operands:
    memory: OperandRef | None
    incoming: OperandRef | None
    outgoing: OperandRef | None


def _operands(
    builder: RoleBuilder, here: _ChainOnRole, segment: Segment, sizes: Sequence[IntExpression]
) -> _Operands:
    """Declare a segment's operands; what is complete in memory already stays as it is."""
    part, array = Part(segment.elements.name), builder.array(here.chain.tensor)
    label, count = f"{here.chain.name}_{part.value}", count_of(sizes)
    stays = here.ends_here and part is Part.OWN
    memory = None if stays else memory_operand(builder, label, segment, sizes, array)
    incoming = outgoing = None
    if part is not Part.OWN:
        incoming = builder.fabric_operand(f"{label}_in", here.queue_in, count, output=False)
    if not here.ends_here:
        outgoing = builder.fabric_operand(f"{label}_out", here.queue_out, count, output=True)
    return _Operands(memory, incoming, outgoing)


def _instruction(part: Part, instruction: Instruction, operands: _Operands) -> Code:
    target = operands.outgoing or operands.memory
    if target is None:
        return ()
    sources = {
        Part.COMBINE: (operands.incoming, operands.memory),
        Part.OWN: (operands.memory,),
        Part.FORWARD: (operands.incoming,),
    }[part]
    return (Invoke(instruction.name, target, tuple(source for source in sources if source is not None)),)


def _scalar_code(builder: RoleBuilder, here: _ChainOnRole) -> Code:
    """Element by element, in the order of the index; for a sparse output an end after each chunk."""
    schedule: isl.UnionMap | None = None
    for part in Part:
        if here.positions[part].is_empty():
            continue
        visited = isl.UnionMap.from_map(_element_schedule(here, part))
        schedule = visited if schedule is None else schedule.union(visited)
    if here.sparse:
        ends = isl.UnionMap.from_map(_end_schedule(builder, here))
        schedule = ends if schedule is None else schedule.union(ends)
    if schedule is None:
        return ()
    make: dict[str, InstanceCode] = {part.value: _element_maker(builder, here, part) for part in Part}
    make["end"] = lambda arguments: (SendEnd(here.queue_out),)
    return tree_code(builder.code().loops(schedule), make)


def _element_schedule(here: _ChainOnRole, part: Part) -> isl.Map:
    """Return ``{ part[index, local] -> [outer, 0, innermost, local] }``."""
    rank = here.chain.index_rank
    local = here.elements.get(part)
    points = here.positions[part] if local is None else local.wrap().flatten()
    points = points.set_tuple_name(part.value)
    names = [f"i{k}" for k in range(points.dim(_DIM.set))]
    order = [*names[: rank - 1], "0", *names[rank - 1 :]]
    order += ["0"] * (rank + 1 + _local_rank(here) - len(order))
    text = f"{{ {part.value}[{', '.join(names)}] -> [{', '.join(order)}] }}"
    return isl.Map(text).intersect_domain(points)


def _local_rank(here: _ChainOnRole) -> int:
    return int(next(iter(here.elements.values())).dim(_DIM.out))


def _end_schedule(builder: RoleBuilder, here: _ChainOnRole) -> isl.Map:
    """Return ``{ end[outer] -> [outer, 1, 0, ...] }``: an end for every tuple of outer indices."""
    chunks = chunk_extents(here.chain.order, here.chain.index_rank).intersect_params(builder.role.context)
    depth = here.chain.index_rank - 1
    names = [f"i{k}" for k in range(depth)]
    order = [*names, "1", *["0"] * (1 + _local_rank(here))]
    every = isl.Map(f"{{ end[{', '.join(names)}] -> [{', '.join(order)}] }}")
    return every.intersect_domain(chunks.set_tuple_name("end"))


def chunk_extents(order: isl.Map, rank: int) -> isl.Set:
    """Return ``[PE_X, PE_Y] -> { [outer] }``: all tuples of outer indices, from 0 to the largest of each.

    ``order``: ``{ x[i] -> [PE[x, y] -> index[k]] }``.
    """
    indices = bind_domain(order.range().unwrap(), PE_PARAMETERS)
    outer = indices.project_out(_DIM.set, rank - 1, 1)
    if rank == 1:
        return outer.reset_tuple_id()
    outer = outer.reset_tuple_id()
    zero = point_of(isl.MultiAff.zero(outer.get_space().from_range()))
    box = box_between(zero, elementwise_maximum(outer)).intersect_params(outer.params())
    return plainly(box)


def _element_maker(builder: RoleBuilder, here: _ChainOnRole, part: Part) -> InstanceCode:
    chain, rank = here.chain, here.chain.index_rank
    array = builder.array(chain.tensor)

    def make(arguments: Sequence[IntExpression]) -> Code:
        index = arguments[rank - 1] if here.sparse else None
        local = Element(array.name, tuple(arguments[rank:]))
        value = _element_value(here, part, local)
        if here.ends_here:
            if part is Part.OWN:
                return ()
            return stored(local, value)
        return (scalar_cost(value), Send(here.queue_out, value, chain.type, index))

    return make


def _element_value(here: _ChainOnRole, part: Part, local: Element) -> Compute:
    element = here.chain.type
    received = Received(here.queue_in, element)
    if part is Part.OWN:
        return Compute.of(local, element)
    if part is Part.FORWARD:
        return Compute.of(received, element)
    operator = here.chain.reduction.operator
    assert operator is not None
    return Compute(Binary(operator, Read(0, element), Read(1, element)), ((0, received), (1, local)))
