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
