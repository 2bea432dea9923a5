"""Parts and statements with others left out, and with the reads of others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Expression
from polyloom.ir.rebuild import with_reads
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.model import Scop, ScopAccess, ScopStatement

_DIM = isl.dim_type


def without(scop: Scop, names: Collection[str]) -> Scop:
    """Return a part without some of its statements."""
    kept = [m for m in maps_of(scop.schedule) if m.get_tuple_name(_DIM.in_) not in names]
    schedule = reduce(
        isl.UnionMap.union,
        (isl.UnionMap.from_map(m) for m in kept),
        isl.UnionMap.empty(scop.schedule.get_space()),
    )
    statements = tuple(s for s in scop.statements if s.name not in names)
    return replace(scop, schedule=schedule, statements=statements)


def appended_reads(statement: ScopStatement, other: ScopStatement) -> tuple[ScopStatement, int]:
    """Return a statement that reads what another one of the same iterations reads, too.

    Also where these begin among its reads.
    """
    shift = len(statement.reads)
    more = tuple(moved_access(read, statement.name, shift) for read in other.reads)
    return replace(statement, reads=(*statement.reads, *more)), shift


def moved_access(access: ScopAccess, statement: str, shift: int) -> ScopAccess:
    """Return an access as one of another statement of the same iterations, whose reads begin later."""
    relation = access.relation.set_tuple_name(_DIM.in_, statement)

    def moved(value: Expression) -> Expression:
        return with_reads(value, lambda position: position + shift)

    computed = tuple((place, moved(value)) for place, value in access.computed)
    indices = tuple(moved(value) for value in access.indices)
    return replace(access, relation=relation, computed=computed, indices=indices)


def lifted(giving: ScopStatement, user: ScopStatement) -> ScopStatement:
    """Return a statement as if it stood in the loops of one inside: it gives there what it gives outside."""
    if len(user.iterators) == len(giving.iterators):
        return giving
    outwards = _outwards(giving, user)
    domain = giving.domain.apply(outwards.reverse()).set_tuple_name(giving.name)

    def moved(access: ScopAccess) -> ScopAccess:
        relation = lifted_access(access, giving, user).set_tuple_name(_DIM.in_, giving.name)
        return replace(access, relation=relation)

    return replace(
        giving,
        domain=domain,
        iterators=user.iterators,
        loops=user.loops,
        target=moved(giving.target),
        reads=tuple(map(moved, giving.reads)),
    )


def lifted_access(access: ScopAccess, giving: ScopStatement, inside: ScopStatement) -> isl.Map:
    """Return what a statement accesses in the iterations around those of another one, by these."""
    return _outwards(giving, inside).apply_range(access.relation)


def _outwards(giving: ScopStatement, inside: ScopStatement) -> isl.Map:
    """Return the iteration of a statement for each of another one in loops inside."""
    depth, all_ = len(giving.iterators), len(inside.iterators)
    whole = isl.Map.identity(inside.domain.get_space().map_from_set())
    return whole.project_out(_DIM.out, depth, all_ - depth).set_tuple_name(_DIM.out, giving.name)
