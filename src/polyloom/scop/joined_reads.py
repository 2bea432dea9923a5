"""Statements that read what others of the same iterations read, too."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import Expression
from polyloom.ir.rebuild import with_reads
from polyloom.scop.model import ScopAccess, ScopStatement

_DIM = isl.dim_type


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
