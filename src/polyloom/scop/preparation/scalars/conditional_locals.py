"""A local that lives inside of a branch alone is set in any case, so that no iteration needs that of another.

Before: ``if (m[i]) { d = a[i] - b[i]; s += d * d; }``, where ``d``, for all that dependences know, may be
that of an iteration before. After: ``d = m[i] ? a[i] - b[i] : 0; if (m[i]) s += d * d;``.

Nobody sees what is stored where the condition does not hold: all that use the local run under the same one.

Source: privatisation of scalars by control dependence (Tu and Padua 1993). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from polyloom.ir.expressions import Constant, Expression, Select
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions
from polyloom.scop.dependence.nesting import (
    Entries,
    depth_of,
    is_in_loops_of,
    order_of,
    schedules,
    shares_all_loops,
)
from polyloom.scop.dependence.reductions import first_reads
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopArray, ScopStatement
from polyloom.scop.preparation.branches import conjuncts
from polyloom.scop.preparation.forward_substitution import called, may_always_be_computed
from polyloom.scop.preparation.statements import lifted
from polyloom.scop.rewrite import moved_reads


def with_locals_always_set(scop: Scop) -> Scop:
    """Return the part with locals that conditions guard set in each iteration."""
    entries = schedules(scop)
    for array in scop.arrays:
        users = [s for s in scop.statements if s.uses(array.name)]
        users.sort(key=lambda s: order_of(entries[s.name]))
        if array.origin is Origin.INNER and not array.shape and users:
            scop = _with_ranges(scop, array, _ranges(array, users, scop, entries))
    return scop


_Range = list[ScopStatement]
"""A statement that sets a local, then those that use it from there on: they run only where that one does."""


def _ranges(
    array: ScopArray, users: Sequence[ScopStatement], scop: Scop, entries: dict[str, Entries]
) -> list[_Range]:
    """Return in which parts of an iteration a local lives, so that none needs it from another one; or none.

    A second one begins where the local is set again, in the same loops: else an iteration of a loop inside
    could need what is set behind it.
    """
    found: list[_Range] = []
    for user in users:
        if found and _runs_where(user, found[-1][0], entries):
            found[-1].append(user)
        elif any(read.array == array.name for read in user.reads):
            return []
        else:
            found.append([user])
    in_same_loops = all(shares_all_loops(entries[users[0].name], entries[s.name]) for s in users)
    lasts = all(not _changes(one, scop, entries) for one in found)
    return found if lasts and (len(found) == 1 or in_same_loops) else []


def _changes(one: _Range, scop: Scop, entries: dict[str, Entries]) -> bool:
    """Whether what the condition of the first statement asks is written before the last one is done."""
    first, last = one[0], one[-1]
    if first.condition is None:
        return False
    asked = {first.reads[k].array for k in _needed(first, first.condition)}
    return bool(asked & _written_while(first, last, scop, entries))


def _with_ranges(scop: Scop, array: ScopArray, ranges: Sequence[_Range]) -> Scop:
    """Return the part with a local of its own for each range, which its first statement always sets."""
    if all(one[0].condition is None or len(one) == 1 for one in ranges):
        return scop
    for one in ranges:
        own = (
            array
            if one is ranges[0]
            else replace(array, name=fresh(array.name, {a.name for a in scop.arrays}))
        )
        changed = {s.name: _called(s, array.name, own.name) for s in one}
        changed[one[0].name] = _always(changed[one[0].name], scop)
        arrays = scop.arrays if own is array else (*scop.arrays, own)
        statements = tuple(changed.get(s.name, s) for s in scop.statements)
        scop = replace(scop, statements=statements, arrays=arrays)
    return scop


def _called(statement: ScopStatement, name: str, own: str) -> ScopStatement:
    """Return a statement that uses another local in the place of one."""
    reads = tuple(called(read, own) if read.array == name else read for read in statement.reads)
    target = called(statement.target, own) if statement.target.array == name else statement.target
    return replace(statement, reads=reads, target=target)


def _needed(statement: ScopStatement, value: Expression) -> set[int]:
    """Return the positions of what a value reads, and of what says where that lies."""
    found, new = set[int](), set(read_positions(value))
    while new:
        found |= new
        places = (index for k in new for _, index in statement.reads[k].computed)
        new = set(read_positions(*places)) - found
    return found


def _written_while(
    first: ScopStatement, last: ScopStatement, scop: Scop, entries: dict[str, Entries]
) -> set[str]:
    """Return what is written in an iteration behind the first statement, until the last one is done."""
    begin, depth = order_of(entries[first.name]), depth_of(entries[first.name])
    end = (*order_of(entries[last.name])[: depth + 1], inf)
    return {s.target.array for s in scop.statements if begin < order_of(entries[s.name]) < end}


def _runs_where(other: ScopStatement, first: ScopStatement, entries: dict[str, Entries]) -> bool:
    """Whether a statement, in the loops of another one or inside of them, runs only where that does."""
    if not is_in_loops_of(entries[first.name], entries[other.name]):
        return False
    around = lifted(first, other)
    if not other.domain.is_subset(around.domain.set_tuple_name(other.name)):
        return False
    if first.condition is None or other.condition is None:
        return first.condition is None
    both, shift = appended_reads(other, around)
    places = first_reads(both)
    wanted = moved_reads(first.condition, {k: places[k + shift] for k in range(len(first.reads))})
    found = conjuncts(moved_reads(other.condition, places))
    return all(condition in found for condition in conjuncts(wanted))


def _always(statement: ScopStatement, scop: Scop) -> ScopStatement:
    """Return a statement that stores under no condition: 0 where its value could not be computed."""
    value, condition = statement.value, statement.condition
    if condition is not None and not may_always_be_computed(statement, scop):
        value = Select(condition, value, Constant(0.0 if value.type.is_float else 0, value.type))
    return replace(statement, value=value, condition=None)
