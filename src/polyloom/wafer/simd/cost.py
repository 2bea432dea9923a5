"""What one run of a task costs on a machine, as the compiler estimates it: the run with the most instances.

Not in the papers. The rules are those of ``instruction_cost``; addresses and sizes cost what the emitted
expressions do, where the PEs are not told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import islpy as isl

from polyloom.ir.expressions import Read, walk
from polyloom.polyhedra.binding import PE_PARAMETERS
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import compose
from polyloom.polyhedra.loops.generate import CodeBuilder, Number, names_in, operation_count
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instruction_cost import Shape, evaluation_cycles, instruction_cycles
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, work_at_point
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.pe_program.addresses import address_operations, element_at_point, point_values
from polyloom.wafer.pe_program.tree import Element
from polyloom.wafer.simd.decision import SimdAnalysis, Sizing, Strategy
from polyloom.wafer.simd.instruction_sequences import loop_cycles

Arrays = Mapping[str, LocalArray]


def run_cycles(analysis: SimdAnalysis, arrays: Arrays, machine: Machine) -> int:
    """Return the cycles of the costliest run of a task."""
    if analysis.parts:
        return sum(run_cycles(part, arrays, machine) + machine.branch for part in analysis.parts)
    if analysis.strategy is Strategy.NONE:
        return _loops(analysis, arrays, machine)
    calls = _addresses(analysis, arrays, machine) + _selection(analysis, machine)
    return calls + _engine(analysis, arrays, machine)


def single_instance_cycles(analysis: SimdAnalysis, arrays: Arrays, machine: Machine) -> int:
    """Return what scalar code for one instance costs."""
    work = work_at_point(analysis.task.statement)
    nodes = [node for node in walk(work) if isinstance(node, Read)]
    addresses = {p: address_operations(e) for p, e in _elements(analysis, arrays).items()}
    operations = addresses[ACCUMULATOR] + sum(addresses.get(node.position, 0) for node in nodes)
    loads = sum(node.position in addresses for node in nodes)
    simple = evaluation_cycles(machine, work) - sum(evaluation_cycles(machine, node) for node in nodes)
    memory = loads * machine.scalar_load + machine.scalar_store
    return simple + memory + operations * machine.scalar_operation


def nest_shape(analysis: SimdAnalysis, arrays: Arrays, sizes: isl.Set) -> Shape:
    """Return the nest of one run, of the largest sizes, as the engine sees it."""
    extents = tuple(high for _, high in integer_bounds(sizes))
    strides = {o.position: arrays[o.tensor].strides_along(o.columns) for o in analysis.operands}
    return Shape(extents, strides)


def _loops(analysis: SimdAnalysis, arrays: Arrays, machine: Machine) -> int:
    shape = nest_shape(analysis, arrays, analysis.box.size)
    return loop_cycles(work_at_point(analysis.task.statement), shape, machine)


def _engine(analysis: SimdAnalysis, arrays: Arrays, machine: Machine) -> int:
    assert analysis.match is not None and analysis.sizes is not None
    shape = nest_shape(analysis, arrays, analysis.sizes)
    sources: list[int | None] = []
    prepared = 0
    for operand in analysis.match.operands:
        if isinstance(operand, Read):
            sources.append(None if operand.position in analysis.scalars else operand.position)
        else:
            sources.append(None)
            prepared += evaluation_cycles(machine, operand)
    return prepared + instruction_cycles(machine, analysis.match.instruction, shape, ACCUMULATOR, sources)


def _elements(analysis: SimdAnalysis, arrays: Arrays) -> dict[int, Element]:
    """Return the first element of every operand in memory, by its position."""
    code = CodeBuilder(analysis.task.known, {})
    start = analysis.start
    found: dict[int, Element] = {}
    for operand in analysis.operands:
        if operand.position not in analysis.scalars:
            access = compose(operand.compressed, arrays[operand.tensor].map)
            found[operand.position] = element_at_point(arrays[operand.tensor], access, start, code)
    return found


def _addresses(analysis: SimdAnalysis, arrays: Arrays, machine: Machine) -> int:
    moved = [e for e in _elements(analysis, arrays).values() if not is_fixed(e)]
    operations = sum(address_operations(element) for element in moved)
    return operations * machine.scalar_operation + len(moved) * machine.set_base_address


def is_fixed(element: Element) -> bool:
    """Whether an element's subscripts depend on the PE's coordinates at most."""
    return all(names_in(s) <= set(PE_PARAMETERS) for s in element.subscripts)


def _selection(analysis: SimdAnalysis, machine: Machine) -> int:
    """Return what choosing, or setting, the size costs, where it depends on the index."""
    varies = analysis.strategy is Strategy.ENUMERATED or analysis.sizing is Sizing.CALL
    if not varies:
        return 0
    values = point_values(analysis.box.size, CodeBuilder(analysis.task.known, {}))
    cycles = machine.scalar_operation * sum(1 + operation_count(value) for value in values)
    if _fills_descriptors(analysis, machine):
        cycles += machine.configure * _operands_in_memory(analysis)
    if analysis.sizing is Sizing.CALL:
        live = [value for value in values if value != Number(1)]
        each = machine.set_length if len(live) == 1 and machine.set_length else machine.configure
        cycles += each * _operands_in_memory(analysis)
    return cycles


def _operands_in_memory(analysis: SimdAnalysis) -> int:
    return sum(operand.position not in analysis.scalars for operand in analysis.operands)


def _fills_descriptors(analysis: SimdAnalysis, machine: Machine) -> bool:
    """Whether configurations take so many descriptors that some are loaded anew for each call."""
    if analysis.strategy is not Strategy.ENUMERATED or analysis.enumeration is None:
        return False
    return 2 * prod(analysis.enumeration.extents) > machine.operand_descriptors
