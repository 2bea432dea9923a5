"""Elements that a PE passes on, in their order: a segment an instruction on the fabric, where that works.

What comes from a queue and stays goes to memory first, and on from there.
Source: dtg_codegen, Sec. 4.2 (communication tasks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.generate import IntExpression, Number
from polyloom.wafer.codegen.segment_code import from_its_base, memory_operand, segment_code, sizes_of
from polyloom.wafer.codegen.segments import Cut, Elements, Segment, cut
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
    builder: RoleBuilder, parts: Sequence[Passed], element: ElementType, array: LocalArray | None
) -> Code | None:
    """Return the code that passes all on, in the order of the index; None where instructions cannot."""
    if not builder.simd or not parts or not all(part.works for part in parts):
        return None
    pieces = cut([Elements(part.name, part.items, _on_items(part)) for part in parts])
    if pieces is None:
        return None
    by_name = {part.name: part for part in parts}
    makers = {
        segment.elements.name: _maker(
            builder, pieces, segment, by_name[segment.elements.name], element, array
        )
        for segment in pieces.segments
    }
    return segment_code(builder, pieces, makers)


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
