"""Statements over more points: what they read there, when they run, and which points were theirs."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import Expression
from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import bind
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopAccess, ScopStatement
from polyloom.scop.rewrite import integer_expression
from polyloom.scop.schedule.arrays import whole as whole_array

_DIM = isl.dim_type


def extended(relation: isl.Map, whole: isl.Set) -> isl.Map:
    """Return the affine function that a relation is on its domain, on more points."""
    return isl.Map.from_basic_map(relation.affine_hull()).remove_divs().intersect_domain(whole)


def everywhere(read: ScopAccess, whole: isl.Set, scop: Scop) -> ScopAccess | None:
    """Return an access at all points; None where its element may not exist there.

    It exists where in each dimension some elements that are accessed lie on both sides: arrays are boxes.
    """
    relation = extended(read.relation, whole)
    if read.computed or not relation.intersect_domain(read.relation.domain()).is_equal(read.relation):
        return None
    array = next(a for a in scop.arrays if a.name == read.array)
    extents = [n for n in array.shape if n is not None]
    elements = whole_array(array.name, extents) if len(extents) == len(array.shape) else None
    wanted = relation.range().intersect_params(scop.context)
    known = elements is not None and wanted.is_subset(elements)
    if not known and not _is_between(wanted, read.relation.range()):
        return None
    return replace(read, relation=relation)


def _is_between(wanted: isl.Set, accessed: isl.Set) -> bool:
    """Whether elements lie in the least box that holds others."""
    return all(_along(wanted, d).is_subset(_filled(_along(accessed, d))) for d in range(wanted.dim(_DIM.set)))


def _along(elements: isl.Set, dimension: int) -> isl.Set:
    rest = elements.dim(_DIM.set) - dimension - 1
    one = elements.project_out(_DIM.set, dimension + 1, rest).project_out(_DIM.set, 0, dimension)
    return one.reset_tuple_id()


def _filled(numbers: isl.Set) -> isl.Set:
    """Return the numbers from the least of a set to its largest."""
    every = isl.Set.universe(numbers.get_space())
    return numbers.lex_le_set(every).range().intersect(numbers.lex_ge_set(every).range())


def condition_in(domain: isl.Set, whole: isl.Set, scop: Scop) -> Expression | None:
    """Return when a point of the whole is in a domain, over the iterators."""
    count, taken = domain.dim(_DIM.set), {p.name for p in scop.parameters}
    names = [fresh(f"c{k}", taken) for k in range(count)]
    inside, around = (bind(s, names) for s in (domain, whole))
    context = around.intersect_params(scop.context).params()
    condition = CodeBuilder(context, {}).condition(inside)
    if condition is None:
        return None
    return integer_expression(condition, {name: k for k, name in enumerate(names)}, ElementType.INT64)


def with_wider(scop: Scop, statement: ScopStatement, wider: ScopStatement) -> Scop:
    """Return the part with a statement over more points in place of one of the same name."""
    schedule = isl.UnionMap.empty(scop.schedule.get_space())
    for times in maps_of(scop.schedule):
        if times.get_tuple_name(_DIM.in_) == statement.name:
            times = extended(times, wider.domain)
        schedule = schedule.union(isl.UnionMap.from_map(times))
    statements = tuple(wider if s is statement else s for s in scop.statements)
    return replace(scop, statements=statements, schedule=schedule)
