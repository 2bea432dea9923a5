"""What a branch asks gets a name where its last statement changes it, as where one before it does.

Before: ``if (a[i] > best) { place = i; best = a[i]; }``, two statements under one condition, which the last
of them changes. After: ``better = a[i] > best; if (better) place = i; if (better) best = a[i];``, the form in
which front ends give a branch whose first statement changes what the others ask. It is done where these are
a selection (``schedule/statement_groups``), whose results are reduced together.

Source: if-conversion (Allen et al. 1983). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import islpy as isl

from polyloom.ir.expressions import Compare, CompareOp, Constant, Expression, Read, Select
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions
from polyloom.ir.types import ElementType
from polyloom.scop.dependence.nesting import order_of, schedules, shares_all_loops
from polyloom.scop.dependence.reductions import first_reads
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopArray, ScopStatement, scalar_access
from polyloom.scop.preparation.chosen.companions import with_companion
from polyloom.scop.preparation.statements import beside
from polyloom.scop.rewrite import moved_reads
from polyloom.scop.schedule.statement_groups import same_instances, selections

_DIM = isl.dim_type
_FLAG = ElementType.INT32


def with_decisions(scop: Scop) -> Scop:
    """Return the part with decisions of selections that set what is compared last, or that keep its place."""
    for statement in [s for s in scop.statements if s.condition is not None]:
        beside_place = with_companion(scop, statement)
        made = scop if beside_place is None else _with_those_made(beside_place)
        scop = scop if made is beside_place else made
    return _with_those_made(scop)


def _with_those_made(scop: Scop) -> Scop:
    for branch in list(_branches(scop)):
        made = _decided(scop, branch)
        scop = made if any(s.decision.name not in _names(scop) for s in selections(made)) else scop
    return scop


def _names(scop: Scop) -> set[str]:
    return {s.name for s in scop.statements}


def _branches(scop: Scop) -> Iterator[Sequence[ScopStatement]]:
    """Yield statements right behind each other under one condition, which the last of them alone changes."""
    entries = schedules(scop)
    ordered = sorted(scop.statements, key=lambda s: order_of(entries[s.name]))
    branch: list[ScopStatement] = []
    for before, last in pairwise(ordered):
        is_next = shares_all_loops(entries[before.name], entries[last.name]) and _asks_alike(before, last)
        branch = [*(branch or [before]), last] if is_next and not _changes_what_it_asks(before) else []
        if branch and _changes_what_it_asks(last):
            yield branch


def _asks_alike(a: ScopStatement, b: ScopStatement) -> bool:
    """Whether two statements run for the same iterations under the same condition."""
    if a.condition is None or b.condition is None or not same_instances(a, b):
        return False
    both, shift = appended_reads(a, b)
    places = first_reads(both)
    theirs = moved_reads(b.condition, {k: places[k + shift] for k in range(len(b.reads))})
    return moved_reads(a.condition, places) == theirs


def _changes_what_it_asks(statement: ScopStatement) -> bool:
    asked = () if statement.condition is None else read_positions(statement.condition)
    return statement.target.array in {statement.reads[k].array for k in asked}


def _decided(scop: Scop, branch: Sequence[ScopStatement]) -> Scop:
    """Return the part with a flag that is set in front of a branch, and that its statements ask."""
    first = branch[0]
    if first.condition is None or any(a.computed for s in branch for a in (s.target, *s.reads)):
        return scop
    name = fresh(f"{first.name}_decides", _names(scop))
    flag = ScopArray(
        name=fresh("condition", {a.name for a in scop.arrays}), type=_FLAG, shape=(), origin=Origin.INNER
    )
    value = Select(first.condition, Constant(1, _FLAG), Constant(0, _FLAG))
    domain = first.domain.set_tuple_name(name)
    reads = tuple(replace(r, relation=r.relation.set_tuple_name(_DIM.in_, name)) for r in first.reads)
    decision = replace(
        first,
        name=name,
        domain=domain,
        target=scalar_access(domain, flag.name),
        reads=reads,
        value=value,
        condition=None,
    )
    asking = {s.name: _asking(s, flag.name) for s in branch}
    statements = tuple(
        new for s in scop.statements for new in ((decision,) if s is first else ()) + (asking.get(s.name, s),)
    )
    schedule = beside(scop, first, decision, -1)
    return replace(scop, statements=statements, arrays=(*scop.arrays, flag), schedule=schedule)


def _asking(statement: ScopStatement, flag: str) -> ScopStatement:
    """Return a statement that runs where a flag is set; it reads that, and what its value is made of."""
    used = sorted(set(read_positions(statement.value)))
    moved = {k: at for at, k in enumerate(used)}
    condition: Expression = Compare(CompareOp.NE, Read(len(used), _FLAG), Constant(0, _FLAG))
    reads = (*(statement.reads[k] for k in used), scalar_access(statement.domain, flag))
    return replace(statement, reads=reads, value=moved_reads(statement.value, moved), condition=condition)
