"""Elements that a PE passes on, in their order: a segment an instruction on the fabric, where that works.

What comes from a queue and stays goes to memory first, and on from there.
Source: dtg_codegen, Sec. 4.2 (communication tasks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import bind_domain, project_out_parameters
from polyloom.polyhedra.bounds import constant_point
from polyloom.polyhedra.loops import IntExpression, replace_name
from polyloom.wafer.call_cost import is_fixed
from polyloom.wafer.code import Code, Cost, Element, Invoke, OperandRef, SetBase
from polyloom.wafer.instructions import move_instruction
from polyloom.wafer.memory import LocalArray
from polyloom.wafer.nests import Nest, find_nest
from polyloom.wafer.role_context import (
    RoleBuilder,
    address_operations,
    coalesced,
    count_of,
    element_at_point,
    flat_strides,
    point_values,
    without_units,
)
from polyloom.wafer.segments import inner_function, outer_names, precedes, split_map, visit_outer
from polyloom.wafer.tree_code import InstanceCode, tree_code

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Passed:
    """Elements with one origin and the same targets: ``items``: ``[PE_X, PE_Y] -> { index[k] }``.

    ``origin``: a queue, or None for memory; ``targets``: queues; ``kept``: whether memory is a target too;
    ``local``: ``{ index[k] -> y_local[...] }`` where memory has to do with it.
    """

    name: str
    items: isl.Set
    origin: str | None
    targets: tuple[str, ...]
    kept: bool
    local: isl.Map | None

    @property
    def works(self) -> bool:
        """Whether instructions can do it: what goes several ways comes from memory or stays there."""
        return self.origin is None or self.kept or len(self.targets) == 1


@dataclass(frozen=True, eq=False)
class _Piece:
    part: Passed
    nest: Nest
    access: isl.MultiAff | None


def pass_instructions(
    builder: RoleBuilder, parts: Sequence[Passed], element: ElementType, array: LocalArray | None
) -> Code | None:
    """Return the code that passes all on, in the order of the index; None where instructions cannot."""
    if not builder.simd or not parts or not all(part.works for part in parts):
        return None
    rank = parts[0].items.dim(_DIM.set)
    for depth in range(rank):
        pieces = _pieces(parts, depth, rank)
        if pieces is not None:
            sizes = [constant_point(piece.nest.size) for piece in pieces]
            if all(size is not None and set(size) <= {1} for size in sizes):
                return None
            return _code(builder, pieces, depth, rank, element, array)
    return None


def _pieces(parts: Sequence[Passed], depth: int, rank: int) -> list[_Piece] | None:
    """Return the parts at a depth as nests, in their order; None where this depth does not work."""
    names, split = outer_names(depth), split_map(depth, rank)
    pieces: list[_Piece] = []
    for part in parts:
        nest = find_nest(bind_domain(part.items.apply(split).unwrap(), names), names)
        if nest is None:
            return None
        access: isl.MultiAff | None = None
        if part.local is not None:
            function = inner_function(part.local.intersect_domain(part.items), split, names)
            if function is None:
                return None
            access = nest.access(function)
        pieces.append(_Piece(part, nest, access))
    return _in_order(pieces, split)


def _in_order(pieces: Sequence[_Piece], split: isl.Map) -> list[_Piece] | None:
    """Order the pieces so that each comes wholly before the next; None if that cannot be."""
    left, order = list(pieces), list[_Piece]()
    while left:
        first = next((a for a in left if all(_before(a, b, split) for b in left if b is not a)), None)
        if first is None:
            return None
        order.append(first)
        left.remove(first)
    return order


def _before(first: _Piece, second: _Piece, split: isl.Map) -> bool:
    return precedes(first.part.items, second.part.items, split)


def _code(
    builder: RoleBuilder,
    pieces: Sequence[_Piece],
    depth: int,
    rank: int,
    element: ElementType,
    array: LocalArray | None,
) -> Code:
    names = outer_names(depth)
    make = {piece.part.name: _maker(builder, piece, names, element, array) for piece in pieces}
    if depth == 0:
        return tuple(node for piece in pieces for node in make[piece.part.name](()))
    split = split_map(depth, rank).range_factor_domain()
    schedule: isl.UnionMap | None = None
    for place, piece in enumerate(pieces):
        outer = piece.part.items.apply(split).set_tuple_name(piece.part.name)
        visited = isl.UnionMap.from_map(visit_outer(outer, place))
        schedule = visited if schedule is None else schedule.union(visited)
    assert schedule is not None
    return tree_code(builder.code().loops(schedule), make)


def _maker(
    builder: RoleBuilder, piece: _Piece, names: Sequence[str], element: ElementType, array: LocalArray | None
) -> InstanceCode:
    """Declare a piece's operands; return the function that makes its code at given outer indices."""
    part = piece.part
    flat = project_out_parameters(piece.nest.size, names).intersect_params(builder.role.context)
    sizes = point_values(flat, builder.code())
    memory: OperandRef | None = None
    base: Element | None = None
    if piece.access is not None and array is not None:
        kept, (strides,) = without_units(sizes, flat_strides(piece.access, array))
        memory = builder.memory_operand(f"{part.name}_local", *coalesced(kept, strides))
        base = _base(builder, piece, piece.access, array)
    code = _instructions(builder, part, count_of(sizes), memory, move_instruction(element).name)
    if memory is None or base is None:
        return lambda arguments: code
    if is_fixed(base):
        builder.setup.append((SetBase(memory, base),))
        return lambda arguments: code
    operand, start = memory, base

    def make(arguments: Sequence[IntExpression]) -> Code:
        at = start
        for name, argument in zip(names, arguments, strict=True):
            subscripts = (replace_name(s, name, argument) for s in at.subscripts)
            at = Element(at.array, tuple(subscripts))
        return (Cost(operations=address_operations(at)), SetBase(operand, at), *code)

    return make


def _base(builder: RoleBuilder, piece: _Piece, access: isl.MultiAff, array: LocalArray) -> Element:
    known = piece.nest.start.params().intersect(builder.role.context)
    start = piece.nest.start.intersect_params(builder.role.context)
    return element_at_point(array, access, start, builder.code(known))


def _instructions(
    builder: RoleBuilder, part: Passed, count: IntExpression, memory: OperandRef | None, move: str
) -> Code:
    """From the queue to memory or on; from memory to every queue."""
    outgoing = [
        builder.fabric_operand(f"{part.name}_{queue}", queue, count, output=True) for queue in part.targets
    ]
    code: list[Invoke] = []
    source = memory
    if part.origin is not None:
        source = builder.fabric_operand(f"{part.name}_{part.origin}", part.origin, count, output=False)
        if part.kept and memory is not None:
            code.append(Invoke(move, memory, (source,)))
            source = memory
    assert source is not None
    return (*code, *(Invoke(move, target, (source,)) for target in outgoing))
