"""Conditional instances that would store outside of their array are left out: none of them ever runs.

Before: ``if (f[i]) a[i + 1] = b[i]`` with ``a[n]``, for i < n. After: for i < n - 1. A map stores at each of
its points, what was there where the condition does not hold; so all that it stores into must exist.

Source: C11, 6.5.6: a subscript beyond the end has no meaning. Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import islpy as isl

from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.preparation.statements import without
from polyloom.scop.schedule.arrays import whole
from polyloom.scop.schedule.statement_groups import selections

_DIM = isl.dim_type


def with_existing_targets(scop: Scop) -> Scop:
    """Return the part without conditional instances whose targets lie outside of their arrays as declared.

    Selections stay whole: they are no maps, but reductions that store nothing where nothing is chosen.
    """
    arrays = {array.name: array for array in scop.arrays}
    chosen = {move.name for selection in selections(scop) for move in selection.moves}
    statements = tuple(
        s if s.name in chosen else _existing(s, arrays[s.target.array], scop.context) for s in scop.statements
    )
    if all(a is b for a, b in zip(statements, scop.statements, strict=True)):
        return scop
    domains = {s.name: s.domain for s in statements}
    moved = [m.intersect_domain(domains[m.get_tuple_name(_DIM.in_)]) for m in maps_of(scop.schedule)]
    empty = isl.UnionMap.empty(scop.schedule.get_space())
    schedule = reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, moved), empty)
    never = {s.name for s in statements if s.domain.is_empty()}
    return without(replace(scop, statements=statements, schedule=schedule), never)


def _existing(statement: ScopStatement, array: ScopArray, context: isl.Set) -> ScopStatement:
    if statement.condition is None or statement.target.computed or not array.shape:
        return statement
    elements = _elements(array)
    if elements is None:
        return statement
    outside = statement.target.relation.subtract(statement.target.relation.intersect_range(elements))
    missing = outside.domain().intersect(statement.domain).intersect_params(context)
    if missing.is_empty():
        return statement
    domain = statement.domain.subtract(outside.domain()).coalesce()
    return replace(
        statement,
        domain=domain,
        target=_restricted(statement.target, domain),
        reads=tuple(_restricted(read, domain) for read in statement.reads),
    )


def _elements(array: ScopArray) -> isl.Set | None:
    """Return the elements of an array, as far as C says them; None where extents are not affine."""
    known = [extent for extent in array.shape if extent is not None]
    inner = whole(array.name, known)
    if inner is None or len(known) == len(array.shape):
        return inner
    return (
        inner.insert_dims(_DIM.set, 0, 1).lower_bound_val(_DIM.set, 0, isl.Val(0)).set_tuple_name(array.name)
    )


def _restricted(access: ScopAccess, domain: isl.Set) -> ScopAccess:
    return replace(access, relation=access.relation.intersect_domain(domain))
