"""Branches by remainders of the iterators that store into one element become one statement with a choice.

Before: ``if ((i + j) % 2 == 0) a[i][j] = x; else a[i][j] = y;``, two statements whose instances lie two
apart, along diagonals. After: ``a[i][j] = (i + j) % 2 == 0 ? x : y``, one statement over the whole rectangle,
whose rows are vectors.

Not where a branch reads the array itself: what is independent among the instances of one branch is not so
among all. Source: Allen et al. 1983 (if-conversion). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import islpy as isl

from polyloom.ir.expressions import Expression, Select
from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import bind
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.nesting import schedules
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Scop, ScopAccess, ScopStatement
from polyloom.scop.preparation.branches import between
from polyloom.scop.preparation.statements import without
from polyloom.scop.rewrite import integer_expression, moved_reads
from polyloom.scop.schedule.arrays import whole as whole_array

_DIM = isl.dim_type


def with_remainders_joined(scop: Scop) -> Scop:
    """Return the part with one statement for each two branches by a remainder that store into one element."""
    by_remainder = [s for s in scop.statements if s.condition is None and s.domain.involves_locals()]
    entries = schedules(scop) if len(by_remainder) > 1 else {}
    for first, second in pairwise(by_remainder):
        if first.loops == second.loops and between(scop, entries, first, second) == []:
            both = _joined(first, second, scop)
            if both is not None:
                return with_remainders_joined(_replaced(scop, first, second, both))
    return scop


def _joined(first: ScopStatement, second: ScopStatement, scop: Scop) -> ScopStatement | None:
    """Return both as one; None where their instances leave holes, or their targets do not allow it."""
    other = second.domain.set_tuple_name(first.name)
    whole = first.domain.union(other).remove_divs().coalesce()
    if not first.domain.is_disjoint(other) or not whole.is_equal(first.domain.union(other)):
        return None
    relation = first.target.relation.remove_divs().intersect_domain(whole)
    stored = (s.target.relation.intersect_domain(s.domain) for s in (first, second))
    same = (relation.intersect_domain(r.domain()).is_equal(r) for r in map(_called(first.name), stored))
    if first.target.computed or second.target.computed or not all(same):
        return None
    both, shift = appended_reads(first, second)
    reads = [_everywhere(read, whole, scop) for read in both.reads]
    everywhere = tuple(read for read in reads if read is not None and read.array != first.target.array)
    if len(everywhere) < len(reads):
        return None
    both = replace(both, domain=whole, target=replace(first.target, relation=relation), reads=everywhere)
    otherwise = moved_reads(second.value, {k: k + shift for k in range(len(second.reads))})
    condition = _condition(first.domain, whole, scop)
    if otherwise.type is not first.value.type or condition is None:
        return None
    return replace(both, value=Select(condition, first.value, otherwise))


def _called(name: str) -> Callable[[isl.Map], isl.Map]:
    return lambda relation: relation.set_tuple_name(_DIM.in_, name)


def _everywhere(read: ScopAccess, whole: isl.Set, scop: Scop) -> ScopAccess | None:
    """Return a read at all points; None where its element may not exist there."""
    relation = read.relation.remove_divs().intersect_domain(whole)
    array = next(a for a in scop.arrays if a.name == read.array)
    extents = [n for n in array.shape if n is not None]
    elements = whole_array(array.name, extents) if len(extents) == len(array.shape) else None
    if read.computed or elements is None:
        return None
    if not relation.intersect_domain(read.relation.domain()).is_equal(read.relation):
        return None
    if not relation.range().intersect_params(scop.context).is_subset(elements):
        return None
    return replace(read, relation=relation)


def _condition(domain: isl.Set, whole: isl.Set, scop: Scop) -> Expression | None:
    """Return when a point of the whole is in a domain, over the iterators."""
    count, taken = domain.dim(_DIM.set), {p.name for p in scop.parameters}
    names = [fresh(f"c{k}", taken) for k in range(count)]
    inside, around = (bind(s, names) for s in (domain, whole))
    context = around.intersect_params(scop.context).params()
    condition = CodeBuilder(context, {}).condition(inside)
    if condition is None:
        return None
    return integer_expression(condition, {name: k for k, name in enumerate(names)}, ElementType.INT64)


def _replaced(scop: Scop, first: ScopStatement, second: ScopStatement, both: ScopStatement) -> Scop:
    schedule = isl.UnionMap.empty(scop.schedule.get_space())
    for times in maps_of(scop.schedule):
        if times.get_tuple_name(_DIM.in_) == first.name:
            times = times.remove_divs().intersect_domain(both.domain)
        schedule = schedule.union(isl.UnionMap.from_map(times))
    statements = tuple(both if s is first else s for s in scop.statements)
    return without(replace(scop, statements=statements, schedule=schedule), {second.name})
