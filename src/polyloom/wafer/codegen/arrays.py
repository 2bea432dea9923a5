"""The code that sets every cell of a local array: initialisation, and a state that takes another's place.

Only the box that holds the tensor's elements is set, not what extra instances enlarged it by.
Source: dtg_codegen, Sec. 5 (initialisation tasks); docs/semantics.md (state).
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyloom.ir.expressions import Constant
from polyloom.polyhedra.loops.generate import IntExpression, Number, sum_of
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import InitializeTask
from polyloom.wafer.machine.descriptor_nests import MAX_DIMENSIONS
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.pe_program.addresses import (
    coalesced,
    element_at,
    in_order,
    stored,
    without_units,
)
from polyloom.wafer.pe_program.loops import InstanceCode, tree_code
from polyloom.wafer.pe_program.tree import Code, Compute, Element, Invoke, OperandRef, SetBase
from polyloom.wafer.roles.builder import RoleBuilder


def initialize_code(builder: RoleBuilder, task: InitializeTask, array: LocalArray) -> Code:
    """Set all elements of an array to the task's value."""
    return _set_cells(builder, "initialize", array, Compute(Constant(task.value, array.type), ()))


def state_code(builder: RoleBuilder, old: LocalArray, new: LocalArray) -> Code:
    """Copy ``new`` to ``old``: the whole box where both have the same one, else the elements of ``old``."""
    same = old.extent_before == new.extent_before and _same_offset(old, new) and _same_layout(old, new)
    if same and (builder.simd or _is_cell(old)):
        return _set_cells(builder, "state", old, new)
    held = old.held().intersect_params(builder.role.context)
    return tree_code(
        builder.code().loops(in_order(held, old.tensor)), {old.tensor: _copier(builder, old, new)}
    )


def _copier(builder: RoleBuilder, old: LocalArray, new: LocalArray) -> InstanceCode:
    code = builder.code()

    def make(arguments: Sequence[IntExpression]) -> Code:
        source, target = (element_at(array, array.map, arguments, code) for array in (new, old))
        value = Compute.of(source, new.type)
        return stored(target, value)

    return make


def _set_cells(builder: RoleBuilder, verb: str, target: LocalArray, source: Compute | LocalArray) -> Code:
    """One instruction, or loops where it has too many dimensions or SIMD is off, or one assignment."""
    if _is_cell(target):
        return _set_cell(target, source, [Number(first) for first in target.corner])
    arrays = [a for a in (target, source) if isinstance(a, LocalArray)]
    if builder.simd and all(len(_nest(array)[0]) <= MAX_DIMENSIONS for array in arrays):
        to, *rest = (_operand(builder, verb, array) for array in arrays)
        sources = (source,) if isinstance(source, Compute) else tuple(rest)
        return (Invoke(move_instruction(target.type).name, to, sources),)
    cells = _cells(target)
    order = isl.Map.identity(cells.get_space().map_from_set()).intersect_domain(cells)
    tree = builder.code().loops(isl.UnionMap.from_map(order.reset_tuple_id(isl.dim_type.out)))
    return tree_code(tree, {target.name: lambda arguments: _set_cell(target, source, arguments)})


def _is_cell(array: LocalArray) -> bool:
    """Whether the array has one element."""
    return all(extent == 1 for extent in array.extent_before)


def _cells(array: LocalArray) -> isl.Set:
    """Return ``{ y_local[...] }``: the cells that are set, where they lie in the enlarged array."""
    return array.local_box().apply(isl.Map.from_multi_aff(array.placing))


def _set_cell(target: LocalArray, source: Compute | LocalArray, cell: Sequence[IntExpression]) -> Code:
    element = Element(target.name, tuple(cell))
    value = source
    if isinstance(value, LocalArray):
        shifts = (there - here for here, there in zip(target.corner, value.corner, strict=True))
        subscripts = (sum_of([(1, c), (1, Number(s))]) for c, s in zip(cell, shifts, strict=True))
        value = Compute.of(Element(value.name, tuple(subscripts)), value.type)
    return stored(element, value)


def _nest(array: LocalArray) -> tuple[tuple[IntExpression, ...], tuple[int, ...]]:
    """Return the sizes and strides of the nest that runs through the cells."""
    kept, (strides,) = without_units([Number(n) for n in array.box_shape], array.strides)
    return coalesced(kept, strides)


def _operand(builder: RoleBuilder, verb: str, array: LocalArray) -> OperandRef:
    operand = builder.memory_operand(f"{verb}_{array.tensor}", *_nest(array))
    corner = Element(array.name, tuple(Number(n) for n in array.corner))
    builder.setup.append((SetBase(operand, corner),))
    return operand


def _same_offset(old: LocalArray, new: LocalArray) -> bool:
    dims = range(len(old.extent))
    return all(old.offset.get_at(k).plain_is_equal(new.offset.get_at(k)) for k in dims)


def _same_layout(old: LocalArray, new: LocalArray) -> bool:
    return old.dimensions == new.dimensions and old.reversed == new.reversed
