"""Sums that begin with their first term: a product in place of setting to zero and a multiply-add.

``fill(y, 0); y += x[0] * w[0]; y += x[1] * w[1]`` becomes ``y = x[0] * w[0]; y += x[1] * w[1]``, and a
maximum so, too. Of a sum of one term nothing is left but a copy (see ``program/terms_in_place``). The bits
are the same, but for a sum of nothing but negative zeros, which is one then.
Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import islpy as isl

from polyloom.ir.expressions import Constant
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import unbind_domain
from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.functions import coefficients
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import names_in
from polyloom.wafer.dataflow.local_arrays import LocalArray
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest
from polyloom.wafer.machine.instructions import move_instruction
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.pe_program.addresses import (
    coalesced,
    element_at_point,
    flat_strides,
    point_values,
    without_units,
)
from polyloom.wafer.pe_program.tree import Code, Compute, Cost, Element, For, Invoke, Node, SetBase
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdAnalysis, Sizing, Strategy

_DIM = isl.dim_type

_FIRST = {
    "fmach": "fmulh",
    "fmacs": "fmuls",
    "fmachs": "fmachs",
    "faddh": "fmovh",
    "fadds": "fmovs",
    "add16": "mov16",
    "fmaxh": "fmovh",
    "fmaxs": "fmovs",
}
"""What computes the first term beside what combines it with the element: of the same types.

No product of halves has the type of ``fmachs``, so that is added to a zero in place of the element.
"""

_ZERO = Compute(Constant(0.0, ElementType.FLOAT32), ())


def with_first_terms(builder: RoleBuilder, analysis: SimdAnalysis, code: CodeBuilder, loops: Code) -> Code:
    """Return code of one instruction so that no element needs to be set before it, where that works.

    That is where all elements have a first term, the same instructions write the first terms of all of them,
    and those are known when the code is made: loops over terms are unrolled. Without loops, instructions that
    are the first to write any of their elements begin these, and what is left is set before.
    """
    tensor = analysis.task.statement.write.buffer
    allowed = (
        builder.analysis.options.has(Extension.FIRST_TERMS) and code.condition(analysis.task.known) is None
    )
    if not allowed or not _is_alone(builder, analysis):
        return loops
    if _all_begin(builder, analysis):
        found = _replaced(loops, {}, ())
    else:
        found = _begun_apart(builder, analysis, loops)
    if found is None:
        return loops
    builder.begun.add(tensor)
    return found


def _is_alone(builder: RoleBuilder, analysis: SimdAnalysis) -> bool:
    """Whether all that writes the tensor is one instruction of one size, without extra instances.

    Each of its runs must write each element once.
    """
    inside, task = analysis.innermost, analysis.task
    if task.kind is not TaskKind.LOCAL or task.trigger is not None or len(inside.instructions) != 1:
        return False
    if not any(analysis is whole for whole in builder.analysis.simd):
        return False
    name = task.statement.write.buffer
    if sum(a.task.statement.write.buffer == name for a in builder.analysis.simd) != 1:
        return False
    hull = inside.strategy is Strategy.HULL
    if inside.parts or inside.sizing is not Sizing.ONCE or not (hull or inside.strategy is Strategy.EXACT):
        return False
    if inside.zeroed or (hull and (inside.extra is None or not inside.extra.instances.is_empty())):
        return False
    compressed = inside.compression.compressed
    return bool(isl.Map.from_multi_aff(inside.write.compressed).intersect_domain(compressed).is_injective())


def _all_begin(builder: RoleBuilder, analysis: SimdAnalysis) -> bool:
    """Whether the first terms, at the least values of what is summed over, are of all elements held."""
    context = builder.role.context
    first = analysis.compression.compressed.intersect_params(context)
    rows = coefficients(analysis.write.compressed)
    for k in range(first.dim(_DIM.set)):
        if not any(row[k] for row in rows):
            first = first.intersect(_at_least(first, k))
    writes = isl.Map.from_multi_aff(analysis.write.compressed).intersect_domain(first)
    held = builder.array(analysis.task.statement.write.buffer).held().intersect_params(context)
    written = writes.range().reset_tuple_id()
    return bool(writes.is_injective()) and bool(held.reset_tuple_id().is_subset(written))


def _begun_apart(builder: RoleBuilder, analysis: SimdAnalysis, code: Code) -> Code | None:
    """Return straight code whose instructions begin what they are the first to write, if that is all they do.

    The other elements are set before. None where the code has loops, or little would be gained.
    """
    places = [k for k, node in enumerate(code) if isinstance(node, Invoke)]
    straight = all(isinstance(node, Cost | SetBase | Invoke) for node in code)
    if analysis.nested is None or not straight:
        return None
    runs = _runs(builder, analysis, len(places))
    if runs is None:
        return None
    array, result = builder.array(analysis.task.statement.write.buffer), list(code)
    seen, rest = runs[0].subtract(runs[0]), runs[0].subtract(runs[0])
    for place, written in zip(places, runs, strict=True):
        node = code[place]
        first = _first_term(node) if isinstance(node, Invoke) and written.is_disjoint(seen) else None
        if first is not None:
            result[place] = first
        else:
            rest = rest.union(written.subtract(seen)).coalesce()
        seen = seen.union(written).coalesce()
    held = array.held().intersect_params(builder.role.context)
    fills = _fills(builder, array, rest.union(held.subtract(seen)).coalesce())
    return None if fills is None else (*fills, *result)


def _runs(builder: RoleBuilder, analysis: SimdAnalysis, count: int) -> list[isl.Set] | None:
    """Return what each run of the instruction writes, ``{ y[i] }``, in order; None if these are others."""
    assert analysis.nested is not None
    inside, context = analysis.nested.inner, builder.role.context
    points = inside.compression.compressed
    written = points.apply(isl.Map.from_multi_aff(inside.write.compressed))
    left = unbind_domain(written, "loop", analysis.nested.names).intersect_params(context)
    left = left.intersect_domain(analysis.nested.points.set_tuple_name("loop"))
    runs: list[isl.Set] = []
    while not left.is_empty() and len(runs) < count:
        first = left.domain().lexmin()
        runs.append(left.intersect_domain(first).range())
        left = left.subtract_domain(first)
    return runs if left.is_empty() and len(runs) == count else None


_MOST_FILLS = 4


def _fills(builder: RoleBuilder, array: LocalArray, elements: isl.Set) -> Code | None:
    """Return instructions that set some elements to what their sum begins with; None where they are many."""
    pieces = list[isl.BasicSet]()
    elements.make_disjoint().foreach_basic_set(pieces.append)
    nests = [find_nest(isl.Set.from_basic_set(piece), ()) for piece in pieces]
    cells = [1] * len(nests)
    for k, nest in enumerate(nests):
        if nest is None or k == _MOST_FILLS:
            return None
        cells[k] = prod(high for _, high in integer_bounds(nest.size.intersect_params(builder.role.context)))
    if 4 * sum(cells) > prod(array.box_shape):
        return None
    (value,) = {task.value for task in builder.analysis.graph.initialize if task.tensor == array.tensor}
    source = Compute(Constant(value, array.type), ())
    return tuple(_fill(builder, array, nest, source) for nest in nests if nest is not None)


def _fill(builder: RoleBuilder, array: LocalArray, nest: Nest, source: Compute) -> Node:
    access, code, context = nest.access(array.map), builder.code(), builder.role.context
    sizes = point_values(nest.size.intersect_params(context), code)
    kept, (strides,) = without_units(sizes, flat_strides(access, array))
    operand = builder.memory_operand(f"begin_{array.tensor}", *coalesced(kept, strides))
    start = nest.start.intersect_params(context)
    builder.setup.append((SetBase(operand, element_at_point(array, access, start, code)),))
    return Invoke(move_instruction(array.type).name, operand, (source,))


def _at_least(points: isl.Set, k: int) -> isl.Set:
    """Return all points whose coordinate k is the least one that there is."""
    rank = points.dim(_DIM.set)
    low = points.project_out(_DIM.set, k + 1, rank - k - 1).project_out(_DIM.set, 0, k).lexmin()
    low = low.insert_dims(_DIM.set, 0, k).insert_dims(_DIM.set, k + 1, rank - k - 1)
    name = points.get_tuple_name() if points.has_tuple_name() else None
    return low if name is None else low.set_tuple_name(name)


def _replaced(code: Code, bases: Mapping[str, Element], around: tuple[str, ...]) -> Code | None:
    """Return code whose first instruction on each base of its destination computes the first term.

    None where a loop does not move the destination, or the code is of another form. ``bases``: of operands,
    as they were set before; ``around``: the iterators of the loops around.
    """
    working = [node for node in code if isinstance(node, For | Invoke)]
    if len(working) > 1 and any(isinstance(node, For) for node in working):
        return None
    now, seen, result = dict(bases), set[Element | None](), list[Node]()
    for node in code:
        if isinstance(node, SetBase):
            now[node.operand.name] = node.element
        changed = _changed(node, now, around, seen)
        if changed is None:
            return None
        result.append(changed)
    return tuple(result)


def _changed(
    node: Node, bases: Mapping[str, Element], around: tuple[str, ...], seen: set[Element | None]
) -> Node | None:
    """Return a node of such code as it is then; ``seen``: the bases that have their first terms."""
    if isinstance(node, Cost | SetBase):
        return node
    if isinstance(node, For):
        body = _replaced(node.body, bases, (*around, node.iterator))
        return None if body is None else replace(node, body=body)
    if not isinstance(node, Invoke):
        return None
    base, first = bases.get(node.destination.name), _first_term(node)
    if first is None or not all(_moves(base, iterator) for iterator in around):
        return None
    known = base in seen
    seen.add(base)
    return node if known else first


def _moves(base: Element | None, iterator: str) -> bool:
    return base is not None and any(iterator in names_in(subscript) for subscript in base.subscripts)


def _first_term(node: Invoke) -> Invoke | None:
    name = _FIRST.get(node.instruction)
    if name is None or node.sources[0] != node.destination or node.destination.selector is not None:
        return None
    if name == node.instruction:
        return replace(node, sources=(_ZERO, *node.sources[1:]))
    return replace(node, instruction=name, sources=node.sources[1:])
