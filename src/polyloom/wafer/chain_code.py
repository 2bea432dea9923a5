"""The code of chains: receive, combine, forward and send elements in the order of the output's index.

The sequence of a PE is cut into segments, each one SIMD instruction on the fabric: with no loop around
them if that works, else with loops over one, two, ... outer index dimensions; at last element by element.
Source: dtg_codegen, Sec. 4.2 (communication tasks); docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import islpy as isl

from polyloom.ir.expressions import Binary, Read
from polyloom.polyhedra.binding import PE_PARAMETERS, bind_domain, project_out_parameters
from polyloom.polyhedra.bounds import box_between, constant_point, elementwise_maximum
from polyloom.polyhedra.functions import point_of
from polyloom.polyhedra.loops import IntExpression, Tree, replace_name
from polyloom.wafer.call_cost import is_fixed
from polyloom.wafer.chains import Chain, Part
from polyloom.wafer.code import (
    Code,
    Compute,
    Cost,
    Element,
    Invoke,
    OperandRef,
    Received,
    Send,
    SendEnd,
    SetBase,
    StoreElement,
)
from polyloom.wafer.instructions import Instruction, combining_instruction, move_instruction
from polyloom.wafer.nests import Nest, find_nest
from polyloom.wafer.role_context import (
    RoleBuilder,
    address_operations,
    coalesced,
    count_of,
    element_at_point,
    flat_strides,
    point_values,
    scalar_cost,
    without_units,
)
from polyloom.wafer.segments import inner_function, outer_names, precedes, split_map, visit_outer
from polyloom.wafer.tree_code import InstanceCode, tree_code

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class _Segment:
    """The elements of one kind at fixed outer indices, as a nest, and where they are in local memory."""

    part: Part
    nest: Nest
    local: isl.MultiAff | None


@dataclass(frozen=True, eq=False)
class _ChainOnRole:
    """A chain as the PEs of one role see it: ``elements``: ``{ index[k] -> y_local[...] }`` per kind."""

    chain: Chain
    queue_in: str
    queue_out: str
    positions: dict[Part, isl.Set]
    elements: dict[Part, isl.Map]
    is_last: bool

    @property
    def ends_here(self) -> bool:
        """Whether the results end in the memory of this role's PEs."""
        return self.is_last and not self.chain.leaves

    @property
    def sparse(self) -> bool:
        """Whether what is sent from here are value-position pairs."""
        return self.is_last and self.chain.sparse


def chain_queues(chain: Chain) -> tuple[str, str]:
    """Return the names of a chain's input and output queue."""
    return f"{chain.name}_parts", f"{chain.name}_out"


def chain_code(builder: RoleBuilder, chain: Chain) -> Code:
    """Return the body of the task that does a chain's work on the PEs of a role."""
    here = _on_role(builder, chain)
    if not any(not p.is_empty() for p in here.positions.values()) and not here.sparse:
        return ()
    rank = chain.index_rank
    if builder.simd and not here.sparse and _instructions(here) is not None:
        for depth in range(rank):
            segments = _segments(builder, here, depth)
            if segments is not None and not _all_single(segments):
                return _segment_code(builder, here, depth, segments)
    return _scalar_code(builder, here)


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
    queue_in, queue_out = chain_queues(chain)
    return _ChainOnRole(chain, queue_in, queue_out, positions, elements, is_last)


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


def _segments(builder: RoleBuilder, here: _ChainOnRole, depth: int) -> list[_Segment] | None:
    """Return the segments at a depth, in their order; None where this depth does not work."""
    names = outer_names(depth)
    split = split_map(depth, here.chain.index_rank)
    segments: list[_Segment] = []
    for part in Part:
        if here.positions[part].is_empty():
            continue
        inner = bind_domain(here.positions[part].apply(split).unwrap(), names)
        nest = find_nest(inner, names)
        if nest is None:
            return None
        local: isl.MultiAff | None = None
        if part in here.elements:
            function = inner_function(here.elements[part], split, names)
            if function is None:
                return None
            local = nest.access(function)
        segments.append(_Segment(part, nest, local))
    return _in_order(here, segments, split)


def _all_single(segments: Sequence[_Segment]) -> bool:
    """Whether each segment is one element: setting up an instruction for it would not pay."""
    sizes = [constant_point(segment.nest.size) for segment in segments]
    return all(size is not None and set(size) <= {1} for size in sizes)


def _in_order(here: _ChainOnRole, segments: list[_Segment], split: isl.Map) -> list[_Segment] | None:
    """Order the segments so that each comes wholly before the next; None if that cannot be."""
    for order in permutations(segments):
        pairs = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
        if all(precedes(here.positions[a.part], here.positions[b.part], split) for a, b in pairs):
            return list(order)
    return None


def _segment_code(builder: RoleBuilder, here: _ChainOnRole, depth: int, segments: list[_Segment]) -> Code:
    names = outer_names(depth)
    make = {s.part.value: _segment_maker(builder, here, s, names) for s in segments}
    if depth == 0:
        return tuple(node for s in segments for node in make[s.part.value](()))
    split = split_map(depth, here.chain.index_rank).range_factor_domain()
    schedule: isl.UnionMap | None = None
    for rank, segment in enumerate(segments):
        outer = here.positions[segment.part].apply(split).set_tuple_name(segment.part.value)
        visited = isl.UnionMap.from_map(visit_outer(outer, rank))
        schedule = visited if schedule is None else schedule.union(visited)
    assert schedule is not None
    tree: Tree = builder.code().loops(schedule)
    return tree_code(tree, make)


def _segment_maker(
    builder: RoleBuilder, here: _ChainOnRole, segment: _Segment, names: Sequence[str]
) -> InstanceCode:
    """Declare a segment's operands; return the function that makes its code at given outer indices."""
    flat = project_out_parameters(segment.nest.size, names).intersect_params(builder.role.context)
    sizes = point_values(flat, builder.code())
    label = f"{here.chain.name}_{segment.part.value}"
    operands = _Operands(
        _memory_operand(builder, here, segment, label, sizes),
        None
        if segment.part is Part.OWN
        else builder.fabric_operand(f"{label}_in", here.queue_in, count_of(sizes), output=False),
        None
        if here.ends_here
        else builder.fabric_operand(f"{label}_out", here.queue_out, count_of(sizes), output=True),
    )
    instruction = _segment_instruction(here, segment.part, operands)
    base = _base_element(builder, here, segment, names)
    if base is None or operands.memory is None:
        return lambda arguments: instruction
    memory = operands.memory
    if is_fixed(base):
        builder.setup.append((SetBase(memory, base),))
        return lambda arguments: instruction

    def make(arguments: Sequence[IntExpression]) -> Code:
        element = base
        for name, argument in zip(names, arguments, strict=True):
            subscripts = (replace_name(s, name, argument) for s in element.subscripts)
            element = Element(element.array, tuple(subscripts))
        return (Cost(operations=address_operations(element)), SetBase(memory, element), *instruction)

    return make


@dataclass(frozen=True)
class _Operands:
    memory: OperandRef | None
    incoming: OperandRef | None
    outgoing: OperandRef | None


def _memory_operand(
    builder: RoleBuilder,
    here: _ChainOnRole,
    segment: _Segment,
    label: str,
    sizes: tuple[IntExpression, ...],
) -> OperandRef | None:
    if segment.local is None or (here.ends_here and segment.part is Part.OWN):
        return None
    array = builder.array(here.chain.tensor)
    kept, (strides,) = without_units(sizes, flat_strides(segment.local, array))
    return builder.memory_operand(f"{label}_local", *coalesced(kept, strides))


def _base_element(
    builder: RoleBuilder, here: _ChainOnRole, segment: _Segment, names: Sequence[str]
) -> Element | None:
    """Return the first element of a segment in local memory, the outer indices by their names."""
    if segment.local is None:
        return None
    known = segment.nest.start.params().intersect(builder.role.context)
    array = builder.array(here.chain.tensor)
    start = segment.nest.start.intersect_params(builder.role.context)
    return element_at_point(array, segment.local, start, builder.code(known))


def _segment_instruction(here: _ChainOnRole, part: Part, operands: _Operands) -> Code:
    table = _instructions(here)
    assert table is not None
    target = operands.outgoing or operands.memory
    if target is None:
        return ()
    sources = {
        Part.COMBINE: (operands.incoming, operands.memory),
        Part.OWN: (operands.memory,),
        Part.FORWARD: (operands.incoming,),
    }[part]
    given = tuple(source for source in sources if source is not None)
    return (Invoke(table[part].name, target, given),)


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
    return box_between(zero, elementwise_maximum(outer)).intersect_params(outer.params())


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
            return (scalar_cost(value, [local]), StoreElement(local, value))
        return (scalar_cost(value), Send(here.queue_out, value, chain.type, index))

    return make


def _element_value(here: _ChainOnRole, part: Part, local: Element) -> Compute:
    element = here.chain.type
    received = Received(here.queue_in, element)
    if part is Part.OWN:
        return Compute(Read(0, element), ((0, local),))
    if part is Part.FORWARD:
        return Compute(Read(0, element), ((0, received),))
    operator = here.chain.reduction.operator
    assert operator is not None
    return Compute(Binary(operator, Read(0, element), Read(1, element)), ((0, received), (1, local)))
