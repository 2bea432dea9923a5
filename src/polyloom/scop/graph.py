"""Strongly connected components of a small directed graph, in the order of execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def components(nodes: Sequence[str], arrows: Iterable[tuple[str, str]]) -> tuple[tuple[str, ...], ...]:
    """Return the strongly connected components, sources before sinks; otherwise in the order of ``nodes``."""
    reached = _reachable(nodes, set(arrows))
    groups: list[tuple[str, ...]] = []
    for node in nodes:
        if not any(node in group for group in groups):
            groups.append(tuple(o for o in nodes if o == node or (o in reached[node] and node in reached[o])))
    return _ordered(groups, reached)


def _reachable(nodes: Sequence[str], arrows: set[tuple[str, str]]) -> dict[str, set[str]]:
    following: dict[str, list[str]] = {node: [] for node in nodes}
    for a, b in arrows:
        following[a].append(b)
    result = {}
    for node in nodes:
        seen: set[str] = set()
        waiting = list(following[node])
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                waiting += following[at]
        result[node] = seen
    return result


def _ordered(groups: list[tuple[str, ...]], reached: dict[str, set[str]]) -> tuple[tuple[str, ...], ...]:
    """Take the first group that no other remaining one reaches, again and again."""
    rest = list(groups)
    result = []
    while rest:
        following = next(
            group for group in rest if not any(group[0] in reached[o[0]] for o in rest if o is not group)
        )
        rest.remove(following)
        result.append(following)
    return tuple(result)
