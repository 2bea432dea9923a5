"""Instances that store into an element what it holds are left out.

Before: ``next[i][j] = next[i][k]`` for all ``j``, which at ``j == k`` writes what the others read. After: for
``j != k`` alone, which are independent of each other.

Not in the papers.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.scop.model import Scop, ScopStatement


def without_unchanged(scop: Scop) -> Scop:
    """Return the part without instances of copies ``a[..] = a[..]`` whose two elements are one."""
    statements = tuple(map(_without_unchanged, scop.statements))
    if all(a is b for a, b in zip(statements, scop.statements, strict=True)):
        return scop
    removed = [(a, b) for a, b in zip(scop.statements, statements, strict=True) if a is not b]
    schedule = scop.schedule
    for before, after in removed:
        gone = before.domain.subtract(after.domain)
        schedule = schedule.subtract_domain(isl.UnionSet.from_set(gone))
    return replace(scop, statements=statements, schedule=schedule)


def _without_unchanged(statement: ScopStatement) -> ScopStatement:
    value, target = statement.value, statement.target
    if not isinstance(value, Read) or target.computed:
        return statement
    read = statement.reads[value.position]
    if read.array != target.array or read.computed:
        return statement
    same = read.relation.intersect(target.relation).domain()
    left = statement.domain.subtract(same).coalesce()
    if left.is_empty() or left.is_equal(statement.domain):
        return statement
    return replace(statement, domain=left)
