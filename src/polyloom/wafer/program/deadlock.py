"""Whether PEs can wait for each other in a ring, found before anything runs.

What goes along a line is one event for the whole line: a stream, chain or move on a row or column ends only
if all its PEs take part, since buffers are finite and a multicast waits for each of its targets. So the nodes
are the activities of a layer with the line they are on, ``stream x_west[y]``, or with their PE where they are
local. An event waits for another one if, on one of its PEs, the other must end first, or may hold the main
thread meanwhile. All this is said of sets of PEs: a relation between the lines of two for each pair.
If activities wait in a ring, the relation around the ring is closed transitively, and there is a deadlock
if a line may wait for itself. The closure may be too large, so that the answer errs on the safe side.
Not in the papers: dtg_codegen does not say how it avoids deadlocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Diagnostic, error
from polyloom.wafer.mapping.mapping import Mapping as LairMap


@dataclass(frozen=True)
class Event:
    """An activity on some PEs. ``needs``: the keys of those that end there before it starts.

    ``stalls``: whether it may hold the main thread while it waits.
    """

    key: str
    stalls: bool
    needs: frozenset[str]


@dataclass(frozen=True, eq=False)
class Schedule:
    """What the PEs of one role do. ``pes``: of the given rectangle."""

    pes: isl.Set
    events: tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class Ring:
    """Activities that may wait for each other, in a ring, and PEs on which each waits for the next."""

    keys: tuple[str, ...]
    pes: tuple[isl.Set, ...]


Edges = dict[tuple[str, str], isl.Set]
"""The PEs on which the first activity waits for the second."""


def find_ring(schedules: Sequence[Schedule], places: Mapping[str, isl.Map]) -> Ring | None:
    """Return activities that may wait in a ring; None where that is impossible.

    ``places``: ``{ PE[x, y] -> [line] }`` for each activity: which PEs share one event.
    """
    edges: Edges = {}
    for schedule in schedules:
        for waiting, awaited in _waits(schedule.events):
            known = edges.get((waiting, awaited))
            edges[waiting, awaited] = schedule.pes if known is None else known.union(schedule.pes)
    for component in _components(edges):
        inside = {pair: pes for pair, pes in edges.items() if component.issuperset(pair)}
        if inside and _may_wait_for_itself(inside, places):
            keys = _cycle(inside)
            follow = zip(keys, (*keys[1:], keys[0]), strict=True)
            return Ring(keys, tuple(inside[pair].coalesce() for pair in follow))
    return None


def ring_diagnostic(mapping: LairMap, ring: Ring) -> Diagnostic:
    """Return the refusal of a layer in which PEs may wait in a ring."""
    follow = zip(ring.keys, (*ring.keys[1:], ring.keys[0]), ring.pes, strict=True)
    return error(
        "wafer-deadlock",
        "PEs may wait for each other in a ring",
        mapping.span("iport_map") or mapping.span("compute_map"),
        notes=[f"`{first}` waits for `{second}` on {pes}" for first, second, pes in follow],
        helps=["let these tensors enter or leave on other sides, or keep one of them in PE memory"],
    )


def _waits(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    """Yield pairs: the first waits for the second, or may find it on the main thread."""
    by_key = {event.key: event for event in events}
    before = {key: _ancestors(by_key, key) for key in by_key}
    for waiting in events:
        for awaited in events:
            if awaited.key == waiting.key:
                continue
            held = awaited.stalls and waiting.key not in before[awaited.key]
            if awaited.key in waiting.needs or held:
                yield waiting.key, awaited.key


def _ancestors(by_key: Mapping[str, Event], key: str) -> set[str]:
    found: set[str] = set()
    left = [key]
    while left:
        fresh = by_key[left.pop()].needs & by_key.keys() - found
        found |= fresh
        left += fresh
    return found


def _may_wait_for_itself(edges: Edges, places: Mapping[str, isl.Map]) -> bool:
    """Whether the transitive closure of the relation between lines holds a pair of equal ones."""
    relation: isl.UnionMap | None = None
    numbers = {key: k for k, key in enumerate(dict.fromkeys(k for pair in edges for k in pair))}
    for (waiting, awaited), pes in edges.items():
        ends = [
            places[key].set_tuple_name(isl.dim_type.out, f"U{numbers[key]}") for key in (waiting, awaited)
        ]
        step = ends[0].intersect_domain(pes).reverse().apply_range(ends[1])
        relation = step.to_union_map() if relation is None else relation.union(step.to_union_map())
    assert relation is not None
    closure, _ = relation.coalesce().transitive_closure()
    lines = relation.domain().union(relation.range())
    return not closure.intersect(lines.identity()).is_empty()


def _components(edges: Edges) -> Iterator[frozenset[str]]:
    """Yield the sets of activities that reach each other, those with more than one."""
    reach = {key: _reachable(edges, key) for pair in edges for key in pair}
    seen: set[str] = set()
    for key, found in reach.items():
        if key not in seen and key in found:
            component = frozenset(k for k in found if key in reach[k])
            seen |= component
            yield component


def _reachable(edges: Edges, start: str) -> set[str]:
    found: set[str] = set()
    left = [start]
    while left:
        here = left.pop()
        fresh = {second for first, second in edges if first == here} - found
        found |= fresh
        left += fresh
    return found


def _cycle(edges: Edges) -> tuple[str, ...]:
    """Return the keys of a shortest ring: breadth first from each activity back to it."""
    rings = [ring for key in dict.fromkeys(k for k, _ in edges) if (ring := _ring_through(edges, key))]
    return min(rings, key=len)


def _ring_through(edges: Edges, start: str) -> tuple[str, ...]:
    paths: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    for path in paths:
        for first, second in edges:
            if first == path[-1] and second == start:
                return path
            if first == path[-1] and second not in seen:
                seen.add(second)
                paths.append((*path, second))
    return ()
