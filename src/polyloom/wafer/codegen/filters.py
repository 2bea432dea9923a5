"""Filters: of a stream that passes a PE its router brings up the ramp what the PE keeps, and nothing else.

    x:  0 1 2 3 4 5 6 7 8 9 10 11     PE 1 of 3 keeps 4 to 7:  filter(x, skip 4, keep 4, period 12)

Without it the PE takes the whole stream off the fabric, and is not done with it before the last element.
Not in the papers. Source: Cerebras SDK 2.10 documentation, filters of routes, by a counter of wavelets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, bind, parametric_point, project_out_parameters
from polyloom.polyhedra.effort import remembered
from polyloom.polyhedra.loops.generate import CodeBuilder, IntExpression, Number
from polyloom.wafer.codegen.passing import Passed
from polyloom.wafer.codegen.segments import same_rounds, within_rounds
from polyloom.wafer.machine.descriptor_nests import find_nest
from polyloom.wafer.machine.options import Extension
from polyloom.wafer.pe_program.addresses import count_of, point_values
from polyloom.wafer.pe_program.tree import Filter
from polyloom.wafer.roles.builder import RoleBuilder


def filter_of(builder: RoleBuilder, queue: str, parts: Sequence[Passed], coming: isl.Set) -> Filter | None:
    """Return the filter that brings the part of a stream that is kept; None where there cannot be one.

    It can be where this is one run of the same number of elements in each round of the same length.
    ``coming``: ``[PE_X, PE_Y] -> { index[k] }``, all that comes to a PE, of which the parts are.
    """
    options = builder.analysis.options
    free = options.machine.filters - len(builder.filters)
    if not options.has(Extension.FILTERS) or free < 1 or len(parts) < 2:
        return None
    context = builder.role.context
    if any(_counts(builder.code(), parts, coming, pe) is None for pe in _some_pes(context)):
        return None
    found = _counts(builder.code(), parts, coming, context)
    return None if found is None else Filter(queue, *found)


_Counts = tuple[IntExpression, IntExpression, IntExpression]
"""What goes by before what is kept, what is kept, and all, of a round."""


@remembered
def _some_pes(context: isl.Set) -> tuple[isl.Set, ...]:
    """Return PEs of a role: what is no filter there is none for the role, and that is asked faster."""
    pes = project_out_parameters(
        parametric_point("PE", PE_PARAMETERS).intersect_params(context), PE_PARAMETERS
    )
    one = isl.Set.from_point(pes.sample_point())
    found: list[isl.Set] = []
    for pe in (one, pes.lexmin(), pes.lexmax()):
        if not any(pe.is_equal(other) for other in found):
            found.append(pe)
    return tuple(bind(pe, PE_PARAMETERS) for pe in found)


def _counts(code: CodeBuilder, parts: Sequence[Passed], coming: isl.Set, context: isl.Set) -> _Counts | None:
    """Return the counts of a filter on the PEs of a context; None where there is none for all of them."""
    items = [(part.kept, part.items.intersect_params(context)) for part in parts]
    kept = reduce(isl.Set.union, (points for is_kept, points in items if is_kept))
    every = _as_one(reduce(isl.Set.union, (points for _, points in items)).coalesce(), coming)
    for depth in range(every.dim(isl.dim_type.set)):
        if not _same_rounds(kept, every, depth):
            return None  # nor in the rounds inside these
        found = _in_rounds(code, kept, every, depth)
        if found is not None:
            return found
    return None


@remembered
def _as_one(parts: isl.Set, coming: isl.Set) -> isl.Set:
    """Return the parts as what comes where they are all of it: isl takes seconds for the pieces of a sum."""
    if parts.n_basic_set() < 2:
        return parts
    whole = coming.intersect_params(parts.params())
    return whole if whole.is_subset(parts) else parts


@remembered
def _same_rounds(kept: isl.Set, every: isl.Set, depth: int) -> bool:
    """Whether something is kept in all rounds."""
    return same_rounds([kept, every], depth)


@remembered
def _in_rounds(code: CodeBuilder, kept: isl.Set, every: isl.Set, depth: int) -> _Counts | None:
    """Return the counts of a round; None where they vary.

    In each round something is kept.
    """
    names, (mine, all_of_it) = within_rounds([kept, every], depth)
    rounds = all_of_it.params()
    keep, period = (_count(code, part, rounds, names) for part in (mine, all_of_it))
    if keep is None or period is None:
        return None
    others = all_of_it.subtract(mine)
    before = _beside(others, mine.lexmax(), isl.Map.lex_lt(all_of_it.get_space()))
    after = _beside(others, mine.lexmin(), isl.Map.lex_gt(all_of_it.get_space()))
    skip = _count(code, before, rounds, names) if before.is_disjoint(after) else None
    return None if skip is None else (skip, keep, period)


def _beside(others: isl.Set, end: isl.Set, order: isl.Map) -> isl.Set:
    """Return the elements that lie before, or behind, one end of another set: one point for each PE."""
    return order.intersect_domain(others).intersect_range(end).domain()


def _count(code: CodeBuilder, part: isl.Set, rounds: isl.Set, names: Sequence[str]) -> IntExpression | None:
    """Return the number of elements of a part in a round; None where it is no nest, or not the same in each.

    ``rounds``: of all elements. Where a PE has nothing of a part in one of them, it must have nothing in any.
    """
    if part.is_empty():
        return Number(0)
    without = project_out_parameters(rounds.subtract(part.params()), names)
    if not without.is_disjoint(project_out_parameters(part.params(), names)):
        return None
    nest = find_nest(part.coalesce(), names)
    if nest is None:
        return None
    size = project_out_parameters(nest.size, names)
    if not without.is_empty():
        if size.dim(isl.dim_type.set) == 0:
            return None
        zero = isl.Set.from_multi_aff(size.get_space().zero_multi_aff())
        size = size.union(zero.intersect_params(without)).coalesce()
    size = size.intersect_params(code.context)
    if not isl.Map.from_range(size).is_single_valued():
        return None
    return count_of(point_values(size, code))
