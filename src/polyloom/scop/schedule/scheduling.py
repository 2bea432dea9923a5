"""From dependences to a plan: distribution, host loops, wavefronts, splitting.

Source: Allen and Kennedy 1987 (distribution by strongly connected components). Not in the papers: md_poly
leaves the general transformation to future work (Sec. 3.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from math import prod

import islpy as isl

from polyloom.polyhedra.bounds import width
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.access_order import strided
from polyloom.scop.schedule.components import components
from polyloom.scop.schedule.hyperplanes import Edge, hyperplanes, parallel_planes
from polyloom.scop.schedule.index_set_splitting import may_be_nothing, split, split_by_need
from polyloom.scop.schedule.plan import (
    Block,
    Group,
    Hyperplane,
    Leaf,
    Plan,
    Sequential,
    row_of,
    score,
    statements_of,
)
from polyloom.scop.schedule.statement_groups import Patterns, asks_others

Statements = Sequence[ScopStatement]
_OUT = isl.dim_type.out
MAXIMUM_EVALUATED = 5
MOST_IN_A_ROW = 1024
"""So many instances of a statement at most run in order at each point of parallel loops, not on the host.

What they touch stays in registers and caches: a factorisation of each of many small matrices.
"""


def arrange(
    statements: Statements,
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...] = (),
) -> tuple[Plan, ...]:
    """Return plans that run the statements so that every edge's source comes before its sink.

    ``statements`` in the order of the source. An edge of one statement to itself through reads of what is
    written later (``anti``) is respected by reading everything before anything is written.
    """
    by_name = {s.name: s for s in statements}
    groups = components([s.name for s in statements], ((e.source, e.sink) for e in edges if not e.relaxed))
    group_of = {name: k for k, group in enumerate(groups) for name in group}
    inside: list[list[Edge]] = [[] for _ in groups]
    for e in edges:
        if group_of.get(e.source, -1) == group_of.get(e.sink, -2):
            inside[group_of[e.source]].append(e)
    result: list[Plan] = []
    for group, own in zip(groups, inside, strict=True):
        result += _component([by_name[name] for name in group], own, patterns, around)
    return tuple(result)


def _component(
    statements: Statements, edges: Sequence[Edge], patterns: Patterns, around: tuple[Hyperplane, ...]
) -> tuple[Plan, ...]:
    """Return the plans of one strongly connected component."""
    binding = [e for e in edges if not e.relaxed]
    if len(statements) == 1 and all(by_snapshot(statements[0], e, len(around)) for e in binding):
        return (Leaf(statements[0], frozenset(e.array for e in binding)),)
    block = Block(tuple(statements), parallel_planes(statements, edges, around), len(around))
    best: tuple[Plan, ...] = (block,)
    form = patterns.group(statements, edges)
    if form is not None:
        return (Group(form, block),)
    if block.parallel and all(_is_short(s, (*around, *block.parallel)) for s in statements):
        return best
    least = (*score(best), strided(best, around))
    if score(best) <= (1, 0):
        parts = None if around else _by_need(statements, edges, patterns)
        if parts is None and any(map(asks_others, statements)):
            parts = _divided(statements, edges, patterns)
        return parts or best
    for plans in chain(
        [_divided(statements, edges, patterns)], _sequential(statements, edges, patterns, around)
    ):
        found = least if plans is None else (*score(plans), strided(plans, around))
        if plans is not None and found < least:
            best, least = plans, found
        if least <= (1, 1, 0):
            break
    return best


def _is_short(statement: ScopStatement, around: Sequence[Hyperplane]) -> bool:
    """Whether there are few instances inside given loops, whatever the sizes are."""
    moved = [any(column) for column in zip(*(row_of(p, statement) for p in around), strict=True)]
    inside = [k for k in range(len(statement.iterators)) if not moved[k]]
    return prod(width(statement.domain, k) for k in inside) <= MOST_IN_A_ROW


def by_snapshot(statement: ScopStatement, edge: Edge, around: int) -> bool:
    """Whether an edge is respected if the statement reads a copy of the array, no larger than its work."""
    kept = len(statement.iterators) - around
    return edge.anti and statement.target.relation.dim(_OUT) <= kept


def _divided(statements: Statements, edges: Sequence[Edge], patterns: Patterns) -> tuple[Plan, ...] | None:
    """Return the plans of the statements in pieces, where the pieces are all parallel."""
    found = split(statements, edges, patterns.names)
    if found is None:
        return None
    plans = arrange(*found, patterns)
    return plans if all(isinstance(plan, Leaf) for plan in plans) else None


def _by_need(statements: Statements, edges: Sequence[Edge], patterns: Patterns) -> tuple[Plan, ...] | None:
    """Return the plans with instances first that need none of the others, where that makes them parallel.

    What remains may stay sequential if there is none of it for some parameters, however much there is to do.
    """
    found = split_by_need(statements, edges, patterns.names)
    if found is None:
        return None
    plans = arrange(*found, patterns)
    rest = [s for plan in plans if not isinstance(plan, Leaf) for s in statements_of(plan)]
    return plans if not rest or may_be_nothing(rest, [s for s in found[0] if s not in rest]) else None


def _sequential(
    statements: Statements, edges: Sequence[Edge], patterns: Patterns, around: tuple[Hyperplane, ...]
) -> Iterator[tuple[Plan, ...]]:
    """Yield the plans with one more host loop around, for the best hyperplanes."""
    planes = hyperplanes(statements, edges, wavefronts=patterns.wavefronts)
    for plane in islice(planes, MAXIMUM_EVALUATED):
        yield (Sequential(plane, arrange(statements, inner_edges(edges, plane), patterns, (*around, plane))),)


def inner_edges(edges: Sequence[Edge], plane: Hyperplane) -> list[Edge]:
    """Return the edges inside one value of a hyperplane."""
    found = (e.within(plane[e.source], plane[e.sink]) for e in edges)
    return [e for e in found if e is not None]
