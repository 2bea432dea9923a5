"""Statements that share a private scalar are put into one node.

Before: ``s_each[i] = 0`` as a parallel map, then for each row i a sequential loop over ``s_each[i]``. After:
both for each row, so that ``s`` can be a variable of the row's own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

import islpy as isl

from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.expansion import Expansion
from polyloom.scop.schedule.gathering.branches import with_branches_inside
from polyloom.scop.schedule.hyperplanes import Edge, edge, parallel_planes
from polyloom.scop.schedule.plan import (
    Block,
    Hyperplane,
    Leaf,
    Plan,
    Row,
    Sequential,
    row_of,
    score,
    statements_of,
)
from polyloom.scop.schedule.scheduling import arrange, inner_edges
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type


def gathered(
    plans: Sequence[Plan],
    expansions: Sequence[Expansion],
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...] = (),
) -> tuple[Plan, ...]:
    """Return the plans with blocks and the leaves that feed them through one array joined."""
    inside = [_inside(plan, expansions, edges, patterns, around) for plan in plans]
    result = _sunk(inside, edges, patterns, around)
    for expansion in expansions:
        copies = frozenset(name for name, _ in expansion.copies)
        result = _joined(result, expansion.name, copies, edges, patterns, around)
    return tuple(_neighbours(result, edges, patterns, around))


def with_users_inside(
    plans: tuple[Plan, ...],
    statements: Sequence[ScopStatement],
    expansions: Sequence[Expansion],
    edges: Sequence[Edge],
    patterns: Patterns,
    asked_only: Collection[str] = (),
    around: tuple[Hyperplane, ...] = (),
) -> tuple[Plan, ...]:
    """Return the plans with users of an expanded array in the host loop that writes it, if that is no worse.

    Behind the loop they would need the elements of all its steps at once. ``statements``: of the plans.
    """
    kept = _before_the_next_step(plans, statements, expansions)
    for plane in around:
        kept = inner_edges(kept, plane)
    if kept:
        edges = (*edges, *kept)
        made = arrange(statements, edges, patterns, around)
        made = with_branches_inside(made, expansions, edges, patterns.names, asked_only, around)
        made = gathered(made, expansions, edges, patterns, around)
        plans = made if score(made) <= score(plans) else plans

    def inside(plan: Plan) -> Plan:
        if not isinstance(plan, Sequential):
            return plan
        own = {s.name for s in statements_of(plan)}
        if not own <= plan.time.keys() & {s.name for s in statements}:
            return plan
        here = inner_edges([e for e in edges if {e.source, e.sink} <= own], plan.time)
        here_around, found = (*around, plan.time), [s for s in statements if s.name in own]
        body = with_users_inside(plan.body, found, expansions, here, patterns, asked_only, here_around)
        return Sequential(plan.time, body)

    return tuple(map(inside, plans))


def _before_the_next_step(
    plans: Sequence[Plan], statements: Sequence[ScopStatement], expansions: Sequence[Expansion]
) -> list[Edge]:
    """Return edges from the users of an expanded array to what writes it in later steps of a host loop."""
    by_name = {s.name: s for s in statements}
    found: list[Edge] = []
    for loop in (p for p in plans if isinstance(p, Sequential)):
        inside = {s.root: row_of(loop.time, s) for s in statements_of(loop)}
        for array in {expansion.name for expansion in expansions}:
            outside = [
                s for s in statements if s.name not in inside and any(r.array == array for r in s.reads)
            ]
            writers = [(by_name[n], row) for n, row in inside.items() if by_name[n].target.array == array]
            for (writer, row), user in product(writers, outside):
                relation = _in_a_later_step(user, writer, row)
                if relation is not None and not relation.is_empty():
                    found.append(edge(user.name, writer.name, array, True, False, relation))
    return found


def _in_a_later_step(user: ScopStatement, writer: ScopStatement, row: Row) -> isl.Map | None:
    """Return pairs of instances, the second in a later step; None where the steps are not of one loop."""
    if user.loops != writer.loops or sum(map(abs, row)) != 1:
        return None
    loop = next(k for k, coefficient in enumerate(row) if coefficient)
    pairs = isl.Map.from_domain_and_range(user.domain, writer.domain)
    order = (_DIM.in_, loop, _DIM.out, loop) if row[loop] > 0 else (_DIM.out, loop, _DIM.in_, loop)
    return pairs.order_lt(*order)


def _neighbours(
    plans: list[Plan], edges: Sequence[Edge], patterns: Patterns, around: tuple[Hyperplane, ...]
) -> list[Plan]:
    """Return the plans with blocks and plans beside them that use what they write joined."""
    result: list[Plan] = []
    for plan in plans:
        joined = _pair(result[-1], plan, edges, patterns, around) if result else None
        if joined is None:
            result.append(plan)
        else:
            result[-1] = joined
    return result


def _pair(
    a: Plan, b: Plan, edges: Sequence[Edge], patterns: Patterns, around: tuple[Hyperplane, ...]
) -> Block | None:
    """Return two plans as one block, if that is as parallel as before; None where it is not."""
    parallel = {len(plan.parallel) for plan in (a, b) if isinstance(plan, Block)}
    if (
        len(parallel) != 1
        or parallel == {0}
        or any(_spoils(p, max(parallel), patterns, around) for p in (a, b))
    ):
        return None
    if not _arrays(a) & _arrays(b):
        return None
    block = _block([*statements_of(a), *statements_of(b)], edges, around)
    return block if len(block.parallel) >= max(parallel) else None


def _arrays(plan: Plan) -> set[str]:
    return {access.array for s in statements_of(plan) for access in (s.target, *s.reads)}


def _inside(
    plan: Plan,
    expansions: Sequence[Expansion],
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
) -> Plan:
    if not isinstance(plan, Sequential):
        return plan
    names = {s.name for s in statements_of(plan)}
    if not names <= plan.time.keys():
        return plan
    here = [e for e in edges if {e.source, e.sink} <= names]
    body = gathered(plan.body, expansions, inner_edges(here, plan.time), patterns, (*around, plan.time))
    return Sequential(plan.time, body)


def _sunk(
    plans: list[Plan], edges: Sequence[Edge], patterns: Patterns, around: tuple[Hyperplane, ...]
) -> list[Plan]:
    """Return the plans with maps inside the host loops that use their values, iteration by iteration.

    Before: ``s_each[i] = 0`` for all i, then for each i a sum into ``s_each[i]``. After: both for each i.
    """
    result = list(plans)
    leaving = _leaving(edges)
    for k in reversed(range(len(plans))):
        leaf = result[k]
        if not isinstance(leaf, Leaf):
            continue
        found = leaving.get(leaf.statement.name, [])
        sinks = {e.sink for e in found}
        reached = next((j for j in range(k + 1, len(result)) if sinks & _roots(result[j])), None)
        loop = None if reached is None else result[reached]
        if reached is not None and isinstance(loop, Sequential):
            made = _with_leaf(leaf.statement, loop, found, edges, patterns, around)
            if made is not None:
                result[reached] = made
                del result[k]
    return result


def _leaving(edges: Sequence[Edge]) -> dict[str, list[Edge]]:
    """Return the edges by the statement that they leave, without those that may be reversed."""
    result: dict[str, list[Edge]] = {}
    for one in edges:
        if not one.relaxed:
            result.setdefault(one.source, []).append(one)
    return result


def _roots(plan: Plan) -> set[str]:
    return {s.root for s in statements_of(plan)}


def _with_leaf(
    statement: ScopStatement,
    loop: Sequential,
    leaving: Sequence[Edge],
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
) -> Sequential | None:
    """Return the loop with the statement inside; None where its values last longer than an iteration.

    ``leaving``: the edges that leave the statement.
    """
    size = len(statement.iterators)
    roots = _roots(loop)
    found = [e for e in leaving if e.sink in roots]
    inside = statements_of(loop)
    if any(s.name not in loop.time for s in inside):
        return None
    for k in range(size):
        row = tuple(int(j == k) for j in range(size))
        for time in (row, tuple(-c for c in row)):
            if all(e.all_zero(time, loop.time[e.sink]) for e in found):
                plane = {**loop.time, statement.name: time}
                return _rearranged((statement, *inside), plane, edges, loop, patterns, around)
    return None


def _rearranged(
    statements: tuple[ScopStatement, ...],
    plane: Hyperplane,
    edges: Sequence[Edge],
    loop: Sequential,
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
) -> Sequential | None:
    names = {s.name for s in statements}
    here = [e for e in edges if {e.source, e.sink} <= names]
    made = Sequential(plane, arrange(statements, inner_edges(here, plane), patterns, (*around, plane)))
    return made if score([made]) <= score([loop]) else None


def _joined(
    plans: list[Plan],
    array: str,
    but: frozenset[str],
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
) -> list[Plan]:
    """Return the plans with those that use an array as one block, if that is as parallel as before.

    ``but``: statements that do not count.
    """
    places = [k for k, plan in enumerate(plans) if _uses(plan, array, but)]
    if len(places) < 2:
        return plans
    first, last = places[0], places[-1] + 1
    part = plans[first:last]
    parallel = {len(plan.parallel) for plan in part if isinstance(plan, Block)}
    combining = {e.source for e in edges if e.relaxed and e.source == e.sink}
    if (
        len(parallel) != 1
        or parallel == {0}
        or any(
            _spoils(p, max(parallel), patterns, around) and not _combines(p, array, combining) for p in part
        )
    ):
        return plans
    block = _block([s for plan in part for s in statements_of(plan)], edges, around)
    if len(block.parallel) < max(parallel):
        return plans
    return [*plans[:first], block, *plans[last:]]


def _spoils(plan: Plan, parallel: int, patterns: Patterns, around: tuple[Hyperplane, ...]) -> bool:
    """Whether a plan would lose by running inside a node with so many parallel dimensions.

    Pieces of a statement, whose dependences are not among the edges, stay as they are.
    """
    if any(s.origins for s in statements_of(plan)):
        return True
    if isinstance(plan, Leaf):
        return len(plan.statement.iterators) - len(around) > parallel
    return not isinstance(plan, Block)


def _combines(plan: Plan, array: str, combining: Collection[str]) -> bool:
    """Whether a plan combines values of an array into fewer: beside what writes them they need no array."""
    if not isinstance(plan, Leaf) or plan.statement.origins or plan.snapshot:
        return False
    statement = plan.statement
    return statement.name in combining and any(read.array == array for read in statement.reads)


def _block(
    statements: Sequence[ScopStatement], edges: Sequence[Edge], around: tuple[Hyperplane, ...]
) -> Block:
    names = {s.name for s in statements}
    inside = [e for e in edges if {e.source, e.sink} <= names]
    return Block(tuple(statements), parallel_planes(statements, inside, around), len(around))


def _uses(plan: Plan, array: str, but: frozenset[str]) -> bool:
    return any(
        access.array == array
        for s in statements_of(plan)
        if s.name not in but
        for access in (s.target, *s.reads)
    )
