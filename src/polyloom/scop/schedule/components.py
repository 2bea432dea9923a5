"""Strongly connected components of a directed graph, in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush


def components(nodes: Sequence[str], arrows: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Return the strongly connected components, sources before sinks; otherwise in the order of ``nodes``."""
    place = {node: k for k, node in enumerate(nodes)}
    following: dict[str, set[str]] = {node: set() for node in nodes}
    for a, b in arrows:
        following[a].add(b)
    groups = sorted(
        (tuple(sorted(group, key=place.__getitem__)) for group in _strong(nodes, following)),
        key=lambda group: place[group[0]],
    )
    return _ordered(groups, following)


def _strong(nodes: Sequence[str], following: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the components, by Kosaraju's two walks: along the arrows, then against them."""
    before: dict[str, set[str]] = {node: set() for node in nodes}
    for a, targets in following.items():
        for b in targets:
            before[b].add(a)
    finished: list[str] = []
    seen: set[str] = set()
    for node in nodes:
        finished += _walk(node, following, seen)
    seen.clear()
    found = (_walk(node, before, seen) for node in reversed(finished))
    return [group for group in found if group]


def _walk(start: str, following: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """Return what is reached from ``start`` and was not seen yet, each node after all that it reaches."""
    if start in seen:
        return []
    seen.add(start)
    result: list[str] = []
    waiting = [(start, iter(sorted(following[start])))]
    while waiting:
        node, rest = waiting[-1]
        new = next((n for n in rest if n not in seen), None)
        if new is None:
            waiting.pop()
            result.append(node)
        else:
            seen.add(new)
            waiting.append((new, iter(sorted(following[new]))))
    return result


def _ordered(
    groups: Sequence[tuple[str, ...]], following: Mapping[str, set[str]]
) -> tuple[tuple[str, ...], ...]:
    """Take the first group that waits for no other remaining one, again and again."""
    of = {node: k for k, group in enumerate(groups) for node in group}
    after = [{of[b] for a in group for b in following[a]} - {k} for k, group in enumerate(groups)]
    waits = [0] * len(groups)
    for targets in after:
        for k in targets:
            waits[k] += 1
    ready = [k for k, count in enumerate(waits) if not count]
    heapify(ready)
    result = []
    while ready:
        k = heappop(ready)
        result.append(groups[k])
        for other in after[k]:
            waits[other] -= 1
            if not waits[other]:
                heappush(ready, other)
    return tuple(result)
