"""Elements that a PE passes on, in their order: a segment an instruction on the fabric, where that works.

What comes from a queue and stays goes to memory first, and on from there.
Source: dtg_codegen, Sec. 4.2 (communication tasks).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.loops.generate import IntExpression, Number
from polyloom.wafer.codegen.segment_code import from_its_base, memory_operand, segment_code, sizes_of
from polyloom.wafer.codegen.segments import Cut, Elements, Segment, cut, deeper
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.machine.temporaries import FIRST_TEMPORARY
from polyloom.wafer.pe_program.addresses import count_of
from polyloom.wafer.pe_program.loops import InstanceCode
from polyloom.wafer.pe_program.tree import Code, Element, Invoke, OperandRef, SetBase
from polyloom.wafer.roles.builder import RoleBuilder


@dataclass(frozen=True, eq=False, kw_only=True)
class Passed:
    """Elements with one origin and the same targets: ``items``: ``[PE_X, PE_Y] -> { index[k] }``.

    ``origin``: a queue, or None for memory; ``targets``: queues; ``kept``: whether memory is a target too
    (what has no target at all is taken off the queue and dropped); ``local``:
    ``{ index[k] -> y_local[...] }`` where memory has to do with it.
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
        return self.origin is None or self.kept or len(self.targets) <= 1


def pass_instructions(
    builder: RoleBuilder,
    parts: Sequence[Passed],
    element: ElementType,
    array: LocalArray | None,
    hops: int = 0,
) -> Code | None:
    """Return the code that passes all on, in the order of the index; None where instructions cannot.

    ``hops``: how many PEs behind this one wait for what it keeps before it passes it on.
    """
    if not builder.simd or not parts or not all(part.works for part in parts):
        return None
    elements = [Elements(part.name, part.items, _on_items(part)) for part in parts]
    pieces = cut(elements)
    if pieces is None:
        return None
    pieces = _soon(builder, pieces, elements, parts, hops)
    by_name = {part.name: part for part in parts}
    makers = {
        segment.elements.name: _maker(
            builder, pieces, segment, by_name[segment.elements.name], element, array
        )
        for segment in pieces.segments
    }
    return segment_code(builder, pieces, makers)


def _soon(
    builder: RoleBuilder, found: Cut, elements: Sequence[Elements], parts: Sequence[Passed], hops: int
) -> Cut:
    """Return the cut with which the PEs behind have everything soonest: each waits for a whole segment.

    Smaller segments need more instructions. Where elements come from both sides, each round of the loops
    that are needed anyhow waits for both.
    """
    held = {part.name for part in parts if part.origin is not None and part.kept and part.targets}
    if not held or hops < 2:
        return found
    machine = builder.analysis.options.machine
    each = 2 * (machine.simd_launch + machine.set_base_address) + machine.loop_iteration
    two_way = len({part.origin for part in parts if part.origin is not None}) > 1
    rounds = max(_trips(builder, found, part.items) for part in parts if part.name in held)
    whole = rounds * _largest(builder, found, held)

    def waiting(pieces: Cut) -> int:
        size = _largest(builder, pieces, held)
        return (rounds if two_way else 1) * hops * size + whole // size * each

    return min((found, *deeper(elements, found)), key=waiting)


def _trips(builder: RoleBuilder, pieces: Cut, items: isl.Set) -> int:
    """Return how often the loops around segments run."""
    ranges = integer_bounds(items.intersect_params(builder.role.context))[: pieces.depth]
    return math.prod(high - low + 1 for low, high in ranges)


def _largest(builder: RoleBuilder, pieces: Cut, names: Collection[str]) -> int:
    """Return the elements of the largest of some segments on any PE of a role."""
    found = [1]
    for segment in pieces.segments:
        if segment.elements.name in names:
            known = segment.nest.size.intersect_params(builder.role.context)
            found.append(math.prod(high for _, high in integer_bounds(known)))
    return max(found)


def _on_items(part: Passed) -> isl.Map | None:
    return None if part.local is None else part.local.intersect_domain(part.items)


def _maker(
    builder: RoleBuilder,
    pieces: Cut,
    segment: Segment,
    part: Passed,
    element: ElementType,
    array: LocalArray | None,
) -> InstanceCode:
    """Declare a part's operands; return the function that makes its code at given outer indices."""
    sizes = sizes_of(builder, pieces, segment)
    memory = None if array is None else memory_operand(builder, part.name, segment, sizes, array)
    code = _instructions(builder, part, count_of(sizes), memory, element)
    if memory is None or array is None:
        return lambda arguments: code
    return from_its_base(builder, pieces, segment, memory, array, code)


def _instructions(
    builder: RoleBuilder, part: Passed, count: IntExpression, memory: OperandRef | None, element: ElementType
) -> Code:
    """From the queue to memory, on, or nowhere; from memory to every queue."""
    move = move_instruction(element).name
    outgoing = [
        builder.fabric_operand(f"{part.name}_{queue}", queue, count, output=True) for queue in part.targets
    ]
    code: list[Invoke] = []
    source = memory
    if part.origin is not None:
        source = builder.fabric_operand(f"{part.name}_{part.origin}", part.origin, count, output=False)
        if not part.kept and not part.targets:
            return (Invoke(move, _dropped(builder, part, count, element), (source,)),)
        if part.kept and memory is not None:
            code.append(Invoke(move, memory, (source,)))
            source = memory
    assert source is not None
    return (*code, *(Invoke(move, target, (source,)) for target in outgoing))


def _dropped(builder: RoleBuilder, part: Passed, count: IntExpression, element: ElementType) -> OperandRef:
    """Return an operand that writes all elements over one that nobody reads."""
    unread = Element(builder.temporary(FIRST_TEMPORARY, element, 1), (Number(0),))
    operand = builder.memory_operand(f"{part.name}_dropped", (count,), (0,))
    builder.setup.append((SetBase(operand, unread),))
    return operand
