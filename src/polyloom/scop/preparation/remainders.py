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

from polyloom.ir.expressions import Select
from polyloom.scop.dependence.nesting import schedules
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.preparation.branches import between
from polyloom.scop.preparation.statements import without
from polyloom.scop.preparation.wider import condition_in, everywhere, with_wider
from polyloom.scop.rewrite import moved_reads

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
    reads = [everywhere(read, whole, scop) for read in both.reads]
    known = tuple(read for read in reads if read is not None and read.array != first.target.array)
    if len(known) < len(reads):
        return None
    both = replace(both, domain=whole, target=replace(first.target, relation=relation), reads=known)
    otherwise = moved_reads(second.value, {k: k + shift for k in range(len(second.reads))})
    condition = condition_in(first.domain, whole, scop)
    if otherwise.type is not first.value.type or condition is None:
        return None
    return replace(both, value=Select(condition, first.value, otherwise))


def _called(name: str) -> Callable[[isl.Map], isl.Map]:
    return lambda relation: relation.set_tuple_name(_DIM.in_, name)


def _replaced(scop: Scop, first: ScopStatement, second: ScopStatement, both: ScopStatement) -> Scop:
    return without(with_wider(scop, first, both), {second.name})
