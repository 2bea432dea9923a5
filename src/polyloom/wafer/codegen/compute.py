"""The code of computation tasks: SIMD instructions where there are any, else loops from isl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyloom.ir.expressions import Read, walk
from polyloom.polyhedra.binding import bind, project_out_parameters
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import compose, function_of, point_of
from polyloom.polyhedra.loops.generate import (
    CodeBuilder,
    IntExpression,
    Name,
    Number,
    operation_count,
    product_of,
    sum_of,
)
from polyloom.wafer.array_layout.order import backward_dimensions
from polyloom.wafer.codegen.first_terms import with_first_terms
from polyloom.wafer.codegen.instruction_loops import partly_unrolled, tightened
from polyloom.wafer.codegen.sizes import declare_sized, place_sizes, set_at_chunks, size_variables
from polyloom.wafer.codegen.steps import Work, memory_positions, nest_of, temporary_arrays, temporary_name
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.machine.instruction_cost import Shape
from polyloom.wafer.machine.instruction_selection import ACCUMULATOR, work_at_point
from polyloom.wafer.pe_program.addresses import (
    address_operations,
    element_at,
    element_at_point,
    flat_strides,
    point_values,
    stored,
    without_units,
)
from polyloom.wafer.pe_program.loops import DATA, named_loops, tree_code
from polyloom.wafer.pe_program.tree import (
    Code,
    Compute,
    Configure,
    Cost,
    Element,
    If,
    Node,
    OperandRef,
    Scope,
    SetBase,
    SetInteger,
    Value,
    Variable,
)
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.cost import is_fixed
from polyloom.wafer.simd.decision import Nested, SimdAnalysis, Sizing, Strategy


def compute_code(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Return what a task does in one run: for the element ``data`` with the index, or for all instances.

    ``code`` knows the PEs of the role and the index values that arrive.
    """
    known = analysis.task.known
    inside = CodeBuilder(code.context.intersect(known), code.names)
    if inside.context.is_empty():
        return ()
    body, condition = _run(builder, analysis, inside), code.condition(known)
    if condition is None:
        return body
    return (Cost(operations=operation_count(condition), branches=1), If(condition, body))


def _run(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    if analysis.parts:
        here = (p for p in analysis.parts if not p.task.known.intersect(code.context).is_empty())
        return tuple(node for part in here for node in compute_code(builder, part, code))
    if analysis.nested is not None:
        nested = _nested(builder, analysis.nested, code)
        return partly_unrolled(with_first_terms(builder, analysis, code, nested))
    if analysis.strategy is Strategy.NONE:
        return _loops(builder, analysis, code)
    if analysis.strategy is Strategy.ENUMERATED:
        return _enumerated(builder, analysis, code)
    return with_first_terms(builder, analysis, code, _instruction(builder, analysis, code))


def _nested(builder: RoleBuilder, nested: Nested, code: CodeBuilder) -> Code:
    """Loops around what is inside them; their iterators are parameters there."""
    points = nested.points.intersect_params(code.context)
    visited = isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points)
    tree = code.loops(isl.UnionMap.from_map(visited.reset_tuple_id(isl.dim_type.out)))
    inside = CodeBuilder(bind(points, nested.names), code.names)
    body = compute_code(builder, nested.inner, inside)

    def instance(arguments: Sequence[IntExpression]) -> Code:
        named = tuple(
            SetInteger(name, argument, declare=True)
            for name, argument in zip(nested.names, arguments, strict=True)
            if argument != Name(name)
        )
        return (Scope((*named, *body)),) if named else body

    return tightened(tree_code(named_loops(tree, nested.names), {"loop": instance}))


def _loops(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Loops over the compressed instances, in their lexicographic order."""
    compressed = analysis.compression.compressed
    named = compressed.set_tuple_name("instance")
    visited = isl.Map.identity(named.get_space().map_from_set()).intersect_domain(named)
    visited = visited.reset_tuple_id(isl.dim_type.out)
    tree = code.loops(isl.UnionMap.from_map(visited))

    def instance(arguments: Sequence[IntExpression]) -> Code:
        return _scalar_instance(builder, analysis, arguments, code)

    return tree_code(tree, {"instance": instance})


def _scalar_instance(
    builder: RoleBuilder, analysis: SimdAnalysis, arguments: Sequence[IntExpression], code: CodeBuilder
) -> Code:
    values: list[tuple[int, Value]] = []
    for operand in analysis.operands:
        array = builder.array(operand.tensor)
        access = compose(operand.compressed, array.map)
        values.append((operand.position, element_at(array, access, arguments, code)))
    target = dict(values)[ACCUMULATOR]
    assert isinstance(target, Element)
    if analysis.task.trigger is not None:
        values.append((analysis.task.trigger, Variable(DATA)))
    work = work_at_point(analysis.task.statement)
    used = {node.position for node in walk(work) if isinstance(node, Read)}
    compute = Compute(work, tuple((k, v) for k, v in values if k in used))
    return stored(target, compute)


def _instruction(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """One SIMD instruction, or several: descriptors set up in main, base addresses set where they vary."""
    if analysis.sizing is not Sizing.ONCE:
        return _sized_instruction(builder, analysis, code)
    sizes = _sizes(builder, analysis)
    accesses = _accesses(builder, analysis)
    forwards = {p: access.strides for p, access in accesses.items()}
    strides_run, start = _run_through(builder, analysis, forwards)
    kept, strides = _without_units(*nest_of(analysis, sizes, strides_run))
    operands: dict[int, OperandRef] = {}
    moves: list[Node] = []
    for position, access in accesses.items():
        operands[position] = builder.memory_operand(access.name, kept, strides[position], access.text)
        base = SetBase(operands[position], access.element(start, code))
        if is_fixed(base.element):
            builder.setup.append((base,))
        elif not set_at_chunks(builder, analysis, code, base):
            moves += [Cost(operations=address_operations(base.element)), base]
    for position, element in temporary_arrays(builder, analysis).items():
        name = temporary_name(analysis, element)
        operands[position] = builder.memory_operand(name, kept, strides[position])
        builder.setup.append((SetBase(operands[position], element),))
    return (
        *moves,
        *Work(builder=builder, analysis=analysis, code=code, start=analysis.start, operands=operands).steps(),
    )


def _sized_instruction(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """One SIMD instruction whose sizes are set anew for each call, or when an outer index changes."""
    sizes, setting = size_variables(builder, analysis, code)
    accesses = _accesses(builder, analysis)
    forwards = {p: access.strides for p, access in accesses.items()}
    kept, strides = _without_units(*nest_of(analysis, sizes, forwards))
    operands: dict[int, OperandRef] = {}
    moves: list[Node] = []
    for position, access in accesses.items():
        operand, node = declare_sized(builder, access.name, kept, strides[position], access.text)
        operands[position] = operand
        setting = (*setting, node)
        element = access.element(analysis.start, code)
        moves += [Cost(operations=address_operations(element)), SetBase(operand, element)]
    set_sizes = place_sizes(builder, analysis, code, setting)
    return (
        *set_sizes,
        *moves,
        *Work(builder=builder, analysis=analysis, code=code, start=analysis.start, operands=operands).steps(),
    )


def _run_through(
    builder: RoleBuilder, analysis: SimdAnalysis, strides: Mapping[int, tuple[int, ...]]
) -> tuple[Mapping[int, tuple[int, ...]], isl.Set]:
    """Return the strides and the first point, some dimensions being run through from their end."""
    assert analysis.sizes is not None
    shape = Shape(tuple(high for _, high in integer_bounds(analysis.sizes)), strides)
    backwards = backward_dimensions(analysis, shape, builder.analysis.options)
    if not backwards:
        return strides, analysis.start
    first, size = function_of(analysis.start), function_of(analysis.sizes)
    start = first.to_multi_pw_aff()
    for k in backwards:
        last = first.get_pw_aff(k).add(size.get_pw_aff(k)).add_constant_val(isl.Val(-1))
        start = start.set_pw_aff(k, last)
    return shape.reversed_in(backwards).strides, isl.Set.from_multi_pw_aff(start)


def _without_units(
    sizes: tuple[IntExpression, ...], strides: Mapping[int, tuple[int, ...]]
) -> tuple[tuple[IntExpression, ...], dict[int, tuple[int, ...]]]:
    kept, found = without_units(sizes, *strides.values())
    return kept, dict(zip(strides, found, strict=True))


@dataclass(frozen=True, eq=False)
class _Access:
    """An operand in memory as an instruction sees it: ``access``: ``{ [i0, ...] -> local array }``."""

    name: str
    array: LocalArray
    access: isl.MultiAff

    @property
    def strides(self) -> tuple[int, ...]:
        return flat_strides(self.access, self.array)

    @property
    def text(self) -> str:
        text = self.access.to_str()
        return text[text.index("{") + 1 : text.rindex("}")].strip()

    def element(self, point: isl.Set, code: CodeBuilder) -> Element:
        return element_at_point(self.array, self.access, point, code)


def _accesses(builder: RoleBuilder, analysis: SimdAnalysis) -> dict[int, _Access]:
    """Return the operands in memory by their positions, the written one first."""
    found: dict[int, _Access] = {}
    for operand in analysis.operands:
        if operand.position in memory_positions(analysis):
            array = builder.array(operand.tensor)
            name = f"{analysis.task.name}_{array.tensor}"
            found[operand.position] = _Access(name, array, compose(operand.compressed, array.map))
    return found


def _enumerated(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder) -> Code:
    """Several configurations, one for each size; the right one is selected before the instruction."""
    enumeration = analysis.enumeration
    assert enumeration is not None
    count = prod(enumeration.extents)
    selector = builder.variable(f"{analysis.task.name}_size") if count > 1 else None
    offset = enumeration.hull.offset
    offsets = [builder.code().affine(offset.get_at(k), ()) for k in range(len(enumeration.extents))]
    nodes: list[Node] = []
    if selector is not None:
        number = _size_number(analysis, offsets, code)
        nodes += [Cost(operations=operation_count(number)), SetInteger(selector, number, declare=True)]
    accesses = _accesses(builder, analysis)
    strides = {p: access.strides for p, access in accesses.items()}
    operands: dict[int, OperandRef] = {}
    for position, access in accesses.items():
        declared = builder.operand(access.name, count, access.text)
        _configure_each(builder, analysis, declared, position, strides, offsets)
        operands[position] = OperandRef(declared.name, selector)
        element = access.element(analysis.box.minimum, code)
        nodes += [Cost(operations=address_operations(element)), SetBase(operands[position], element)]
    for position, first in temporary_arrays(builder, analysis).items():
        declared = builder.operand(temporary_name(analysis, first), count)
        _configure_each(builder, analysis, declared, position, strides, offsets)
        operands[position] = OperandRef(declared.name, selector)
        nodes.append(SetBase(operands[position], first))
    return (
        *nodes,
        *Work(
            builder=builder, analysis=analysis, code=code, start=analysis.box.minimum, operands=operands
        ).steps(),
    )


def _size_number(
    analysis: SimdAnalysis, offsets: Sequence[IntExpression], code: CodeBuilder
) -> IntExpression:
    """Return the number of the configuration for the size at an index (the identifiers of eq. 43)."""
    assert analysis.enumeration is not None
    sizes = point_values(analysis.box.size, code)
    identifier = [sum_of([(1, s), (-1, o)]) for s, o in zip(sizes, offsets, strict=True)]
    return _flatten(identifier, analysis.enumeration.extents)


def _flatten(identifier: Sequence[IntExpression], extents: Sequence[int]) -> IntExpression:
    """Return the row-major number of an identifier."""
    result: IntExpression = Number(0)
    for part, extent in zip(identifier, extents, strict=True):
        result = sum_of([(1, product_of([Number(extent), result])), (1, part)])
    return result


def _configure_each(
    builder: RoleBuilder,
    analysis: SimdAnalysis,
    operand: OperandRef,
    position: int,
    strides: Mapping[int, tuple[int, ...]],
    offsets: list[IntExpression],
) -> None:
    """Configure, on each PE, the sizes that occur on it; ``strides``: of all operands, by position."""
    enumeration = analysis.enumeration
    assert enumeration is not None
    code = builder.code()
    occurring = enumeration.sizes.intersect_params(builder.role.context)
    count = prod(enumeration.extents)
    for number in range(count):
        identifier = _unflatten(number, enumeration.extents)
        there = occurring.intersect(_size_with(enumeration.hull.offset, identifier)).params()
        there = there.intersect(builder.role.context)
        if there.is_empty():
            continue
        sizes = [sum_of([(1, o), (1, Number(i))]) for o, i in zip(offsets, identifier, strict=True)]
        chosen = OperandRef(operand.name, str(number) if count > 1 else None)
        kept, steps = nest_of(analysis, sizes, strides)
        node: Node = Configure(chosen, kept, steps[position])
        condition = code.condition(there)
        builder.setup.append((node,) if condition is None else (If(condition, (node,)),))


def _unflatten(number: int, extents: Sequence[int]) -> tuple[int, ...]:
    digits: list[int] = []
    for extent in reversed(extents):
        digits.insert(0, number % extent)
        number //= extent
    return tuple(digits)


def _size_with(offset: isl.MultiAff, identifier: Sequence[int]) -> isl.Set:
    """Return the parametric point ``offset + identifier``."""
    shifted = offset
    for k, value in enumerate(identifier):
        shifted = shifted.set_aff(k, shifted.get_at(k).add_constant_val(isl.Val(value)))
    return point_of(shifted)


def _sizes(builder: RoleBuilder, analysis: SimdAnalysis) -> tuple[IntExpression, ...]:
    """Return the sizes on a PE of the role; they do not depend on the index."""
    assert analysis.sizes is not None
    per_pe = project_out_parameters(analysis.sizes, analysis.task.index_names)
    return point_values(per_pe.intersect_params(builder.role.context), builder.code())
