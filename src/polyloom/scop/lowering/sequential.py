"""Statements as a sequential program inside one node: the form that always works.

Source: md_poly, Sec. 3.2.2, Listing 2 (the scalar function made of statements), taken to its end: the
dimensions that carry dependences are loops inside the scalar function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.host import Assignment, Nest
from polyloom.ir.naming import fresh, fresh_all
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import IntExpression, Tree, iterators_in, rename_iterator
from polyloom.scop.lowering.views import Frame
from polyloom.scop.model import ScopStatement

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class ParallelDimension:
    """A dimension of ``++``: its name, extent, and which point each instance belongs to.

    ``points``: ``{ S[x] -> [y] }``, zero-based, for all statements.
    """

    name: str
    extent: IntExpression
    points: isl.UnionMap


def nest(
    name: str,
    statements: Sequence[ScopStatement],
    schedule: isl.UnionMap,
    context: isl.Set,
    parallel: Sequence[ParallelDimension] = (),
) -> Nest:
    """Return the statements' instances in the order of ``schedule``, as one node.

    ``schedule`` is restricted to the instances that the node runs; ``context`` knows the host iterators and,
    as parameters, the iterators of ``parallel`` with their ranges.
    """
    tree = CodeBuilder(context, {}).loops(_at_points(schedule, parallel))
    return nest_of(name, statements, tree, context, parallel)


def nest_of(
    name: str,
    statements: Sequence[ScopStatement],
    tree: Tree,
    context: isl.Set,
    parallel: Sequence[ParallelDimension] = (),
) -> Nest:
    """Return the instances that loops visit as one node."""
    taken = set(parameter_names(context))
    span = statements[0].span if statements else None
    return Nest(
        name=name,
        iterators=tuple(p.name for p in parallel),
        extents=tuple(p.extent for p in parallel),
        body=_beside(tree, {a.array for s in statements for a in (s.target, *s.reads)}, taken),
        assignments=tuple(assignment(statement, taken) for statement in statements),
        private=(),
        span=span,
    )


def _beside(tree: Tree, arrays: set[str], taken: set[str]) -> Tree:
    """Return loops none of whose iterators has the name of an array: isl calls them ``c1``, ``c3``, ..."""
    used = {*arrays, *taken, *iterators_in(tree)}
    for iterator in dict.fromkeys(iterators_in(tree)):
        if iterator in arrays:
            name = fresh(iterator, used)
            used.add(name)
            tree = rename_iterator(tree, iterator, name)
    return tree


def assignment(statement: ScopStatement, taken: set[str]) -> Assignment:
    """Return what one instance does, over the statement's own iterators."""
    wanted = [f"i{k}" for k in range(statement.domain.dim(_DIM.set))]
    for k, iterator in enumerate(statement.iterators):
        wanted[k] = iterator
    names = fresh_all(wanted, taken)
    domain = statement.domain
    frame = Frame(_anonymous_identity(domain), domain.reset_tuple_id(), names)
    positions = {k: k for k in range(len(statement.reads))}
    condition = statement.condition
    return Assignment(
        name=statement.name,
        iterators=names,
        target=frame.view(statement.target, positions),
        reads=tuple(frame.view(read, positions) for read in statement.reads),
        value=frame.expression(statement.value, positions),
        condition=None if condition is None else frame.expression(condition, positions),
        span=statement.span,
    )


def _anonymous_identity(domain: isl.Set) -> isl.MultiAff:
    """Return ``{ [x] -> S[x] }``."""
    identity = isl.MultiAff.identity(domain.get_space().map_from_set())
    return identity.reset_tuple_id(_DIM.in_)


def _at_points(schedule: isl.UnionMap, parallel: Sequence[ParallelDimension]) -> isl.UnionMap:
    """Return the schedule of the instances of one point of the parallel dimensions."""
    here = schedule
    for dimension in parallel:
        point = isl.UnionSet(f"[{dimension.name}] -> {{ [{dimension.name}] }}")
        here = here.intersect_domain(dimension.points.intersect_range(point).domain())
    return here
