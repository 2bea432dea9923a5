"""Updates that leave some points of their loops out run at all of them, under a condition.

Before: ``if (i || j) t += a[y + j][x + i];``, whose instances are in four pieces, so that dependences take
seconds and no md_hom has such a domain. After: one box of instances, of which the middle one adds nothing.

Not where two pieces make two loops, nor where what is left out has a volume: then loops are shorter.
Source: Allen et al. 1983 (if-conversion). Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import Unary, UnaryOp
from polyloom.scop.dependence.reductions import update_of
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.preparation.wider import condition_in, everywhere, with_wider

_DIM = isl.dim_type

PIECES = 3
"""Fewer pieces stay as they are: ``i != j`` is one loop up to j, and one behind it."""


def with_excluded_points(scop: Scop, *, strict: bool) -> Scop:
    """Return the part with updates over whole polyhedra where points of these are left out."""
    for statement in scop.statements:
        wider = _wider(statement, scop, strict=strict)
        scop = scop if wider is None else with_wider(scop, statement, wider)
    return scop


def _wider(statement: ScopStatement, scop: Scop, *, strict: bool) -> ScopStatement | None:
    """Return a statement over the hull of its domain; None where that is not to be, or cannot be."""
    domain = statement.domain.coalesce()
    if domain.n_basic_set() < PIECES or domain.involves_locals() or statement.condition is not None:
        return None
    if update_of(statement, strict=strict) is None:
        return None
    whole = isl.Set.from_basic_set(domain.simple_hull())
    left_out = _in_planes(whole.subtract(domain), whole)
    if left_out is None:
        return None
    target, *reads = (everywhere(a, whole, scop) for a in (statement.target, *statement.reads))
    known = tuple(read for read in reads if read is not None)
    excluded = condition_in(left_out, whole, scop)
    if target is None or len(known) < len(reads) or excluded is None:
        return None
    condition = Unary(UnaryOp.NOT, excluded)
    return replace(statement, domain=whole, target=target, reads=known, condition=condition)


def _in_planes(left_out: isl.Set, whole: isl.Set) -> isl.Set | None:
    """Return what is left out as few planes through the whole; None where a piece of it is none."""
    size, found = _dimensions(whole.affine_hull()), isl.Set.empty(whole.get_space())
    for piece in left_out.coalesce().get_basic_sets():
        plane = piece.affine_hull()
        if _dimensions(plane) >= size:
            return None
        through = isl.Set.from_basic_set(plane).intersect(whole)
        found = found.union(through if through.is_subset(left_out) else isl.Set.from_basic_set(piece))
    return found.coalesce()


def _dimensions(hull: isl.BasicSet) -> int:
    return int(hull.dim(_DIM.set)) - sum(c.is_equality() for c in hull.get_constraints())
