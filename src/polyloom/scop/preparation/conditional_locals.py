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
from polyloom.ir.rebuild import read_positions
from polyloom.scop.dependence.nesting import Entries, depth_of, is_in_loops_of, order_of, schedules
from polyloom.scop.dependence.reductions import first_reads
from polyloom.scop.joined_reads import appended_reads
from polyloom.scop.model import Origin, Scop, ScopArray, ScopStatement
from polyloom.scop.preparation.branches import conjuncts
from polyloom.scop.preparation.forward_substitution import may_always_be_computed
from polyloom.scop.preparation.statements import lifted
from polyloom.scop.rewrite import moved_reads


def with_locals_always_set(scop: Scop) -> Scop:
    """Return the part with locals that conditions guard set in each iteration."""
    entries = schedules(scop)
    changed = {}
    for array in scop.arrays:
        users = [s for s in scop.statements if s.uses(array.name)]
        users.sort(key=lambda s: order_of(entries[s.name]))
        if users and _lives_in_branch(array, users, scop, entries):
            changed[users[0].name] = _always(users[0], scop)
    return replace(scop, statements=tuple(changed.get(s.name, s) for s in scop.statements))


def _lives_in_branch(
    array: ScopArray, users: Sequence[ScopStatement], scop: Scop, entries: dict[str, Entries]
) -> bool:
    """Whether the first statement sets a local under a condition that holds wherever others use it."""
    first, *others = users
    if array.origin is not Origin.INNER or array.shape or first.condition is None or not others:
        return False
    if any(read.array == array.name for read in first.reads):
        return False
    asked = {first.reads[k].array for k in _needed(first, first.condition)}
    return not (asked & _written_while(first, others[-1], scop, entries)) and all(
        is_in_loops_of(entries[first.name], entries[other.name]) and _runs_where(other, first)
        for other in others
    )


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


def _runs_where(other: ScopStatement, first: ScopStatement) -> bool:
    """Whether a statement, in the loops of another one or inside of them, runs only where that does."""
    around = lifted(first, other)
    if other.condition is None or not other.domain.is_subset(around.domain.set_tuple_name(other.name)):
        return False
    both, shift = appended_reads(other, around)
    places = first_reads(both)
    assert first.condition is not None
    wanted = moved_reads(first.condition, {k: places[k + shift] for k in range(len(first.reads))})
    found = conjuncts(moved_reads(other.condition, places))
    return all(condition in found for condition in conjuncts(wanted))


def _always(statement: ScopStatement, scop: Scop) -> ScopStatement:
    """Return a statement that stores under no condition: 0 where its value could not be computed."""
    value, condition = statement.value, statement.condition
    if condition is not None and not may_always_be_computed(statement, scop):
        value = Select(condition, value, Constant(0.0 if value.type.is_float else 0, value.type))
    return replace(statement, value=value, condition=None)
