"""The code of segments: an instruction each, its operand in memory set to where it begins, loops around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polyloom.polyhedra.binding import project_out_parameters
from polyloom.polyhedra.loops.generate import IntExpression, replace_name
from polyloom.wafer.codegen.segments import Cut, Segment
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.pe_program.addresses import (
    address_operations,
    coalesced,
    element_at_point,
    flat_strides,
    point_values,
    without_units,
)
from polyloom.wafer.pe_program.loops import InstanceCode, tree_code
from polyloom.wafer.pe_program.tree import Code, Cost, Element, OperandRef, SetBase
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.cost import is_fixed


def segment_code(builder: RoleBuilder, cut: Cut, make: Mapping[str, InstanceCode]) -> Code:
    """Return the code of all segments; ``make[name]`` makes one's at given outer indices."""
    if cut.depth == 0:
        return tuple(node for segment in cut.segments for node in make[segment.elements.name](()))
    return tree_code(builder.code().loops(cut.visits()), make)


def sizes_of(builder: RoleBuilder, cut: Cut, segment: Segment) -> tuple[IntExpression, ...]:
    """Return the sizes of a segment's nest, which outer indices do not change."""
    flat = project_out_parameters(segment.nest.size, cut.names)
    return point_values(flat.intersect_params(builder.role.context), builder.code())


def memory_operand(
    builder: RoleBuilder, label: str, segment: Segment, sizes: Sequence[IntExpression], array: LocalArray
) -> OperandRef | None:
    """Declare the operand that runs through a segment's elements in memory; None where none are there."""
    if segment.access is None:
        return None
    kept, (strides,) = without_units(sizes, flat_strides(segment.access, array))
    return builder.memory_operand(f"{label}_local", *coalesced(kept, strides))


def from_its_base(
    builder: RoleBuilder, cut: Cut, segment: Segment, operand: OperandRef, array: LocalArray, code: Code
) -> InstanceCode:
    """Return what sets the operand in memory to a segment's first element, then does ``code``.

    An element that does not depend on outer indices is set once, before the first invocation.
    """
    base = _first_element(builder, segment, array)
    if is_fixed(base):
        builder.setup.append((SetBase(operand, base),))
        return lambda arguments: code

    def make(arguments: Sequence[IntExpression]) -> Code:
        element = base
        for name, argument in zip(cut.names, arguments, strict=True):
            subscripts = (replace_name(s, name, argument) for s in element.subscripts)
            element = Element(element.array, tuple(subscripts))
        return (Cost(operations=address_operations(element)), SetBase(operand, element), *code)

    return make


def _first_element(builder: RoleBuilder, segment: Segment, array: LocalArray) -> Element:
    """Return where a segment begins in local memory, the outer indices by their names."""
    assert segment.access is not None
    known = segment.nest.start.params().intersect(builder.role.context)
    start = segment.nest.start.intersect_params(builder.role.context)
    return element_at_point(array, segment.access, start, builder.code(known))
