"""Layouts that may be good, by hill climbing on the estimate, from single classes and pairs of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from polyloom.wafer.placement.coordinates import Place, range_of
from polyloom.wafer.placement.cost.estimate import LayoutEstimate, extent_of
from polyloom.wafer.placement.layouts import AXES, Directions, Layout, Tiling, places_of

MOST_SEEDS = 60
MOST_CLIMBS = 12


@dataclass(frozen=True)
class Ranked:
    """A layout with its places and what it might cost."""

    layout: Layout
    places: tuple[Place, ...]
    estimate: LayoutEstimate

    @property
    def digits(self) -> int:
        """How many tiles share an axis with another one, over all statements."""
        axes = (axis for place in self.places for axis in (place.x, place.y))
        return sum(max(0, sum(tile.count > 1 for tile in axis.tiles) - 1) for axis in axes)


Limit = tuple[int, int]
"""Most columns and rows."""

_Key = tuple[bool, float, int, int]
"""Whether it does not fit, cycles (or bytes too many), PEs, classes that are distributed cyclically."""

Estimator = Callable[[tuple[Place, ...]], LayoutEstimate]


def rank_layouts(directions: Directions, limit: Limit, estimator: Estimator, memory: int) -> list[Ranked]:
    """Return the layouts that were ranked, the best first; those that fit in memory come before others."""
    seen: dict[Layout, Ranked | None] = {}

    def rank(layout: Layout) -> Ranked | None:
        if layout not in seen:
            seen[layout] = _ranked(directions, layout, limit, estimator)
        return seen[layout]

    def key(ranked: Ranked) -> _Key:
        excess = max(0, ranked.estimate.bytes - memory)
        cycles = ranked.estimate.cycles if not excess else float(excess)
        return excess > 0, cycles, ranked.estimate.pes, ranked.layout.cyclic

    seeds = [r for layout in _seeds(directions, limit) if (r := rank(layout)) is not None]
    for start in sorted(seeds, key=key)[:MOST_CLIMBS]:
        _climb(directions, limit, start, rank, key)
    return sorted((r for r in seen.values() if r is not None), key=key)


def without_transposes(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Drop layouts that differ from a better one by which axis is x only: ports may be on all sides."""
    found: dict[object, Ranked] = {}
    for r in ranked:
        lines = ([(n, t.size, t.cyclic) for n, t in r.layout.tilings if t.axis == axis] for axis in AXES)
        found.setdefault((frozenset(tuple(line) for line in lines), r.layout.skewed), r)
    return list(found.values())


def _climb(
    directions: Directions,
    limit: Limit,
    start: Ranked,
    rank: Callable[[Layout], Ranked | None],
    key: Callable[[Ranked], _Key],
) -> None:
    """Change one class at a time, as long as that helps."""
    best = start
    for _ in range(2 + len(directions.classes.all)):
        near = [r for n in _neighbours(directions, limit, best.layout) if (r := rank(n)) is not None]
        better = min(near, key=key, default=best)
        if key(better) >= key(best):
            return
        best = better


def _ranked(directions: Directions, layout: Layout, limit: Limit, estimator: Estimator) -> Ranked | None:
    if not directions.allows(layout):
        return None
    places = places_of(directions, layout)
    width, height = extent_of(places)
    if width > limit[0] or height > limit[1]:
        return None
    return Ranked(layout, places, estimator(places))


def _seeds(directions: Directions, limit: Limit) -> Iterator[Layout]:
    """Yield no split, each class alone in all sizes, and each pair of classes in the largest counts."""
    for base in _skewed_bases(directions, limit):
        yield base
        numbers = [c.number for c in directions.classes.all if c.extent > 1]
        for n in numbers:
            for axis in AXES:
                for tiling in _tilings(directions, n, axis, limit):
                    yield base.changed(n, tiling)
        pairs = [(a, b) for a in numbers for b in numbers if a != b]
        for a, b in pairs[: MOST_SEEDS * 2]:
            first = Tiling(0, sizes(directions.classes.all[a].extent, limit[0])[0])
            second = Tiling(1, sizes(directions.classes.all[b].extent, limit[1])[0])
            yield base.changed(a, first).changed(b, second)


def _skewed_bases(directions: Directions, limit: Limit) -> Iterator[Layout]:
    """Yield the tile sizes of directions like ``i + j``: as many tiles as fit, or half of them."""
    for share in (1, 2):
        chosen: list[tuple[tuple[int, int], int]] = []
        for number, axis, expression in directions.skewed():
            low, high = range_of(expression, directions.program.statements[number].domain)
            chosen.append(((number, axis), -(-(high - low + 1) // max(1, limit[axis] // share))))
        yield Layout((), tuple(chosen))
        if not chosen:
            return


def _neighbours(directions: Directions, limit: Limit, layout: Layout) -> Iterator[Layout]:
    for c in directions.classes.all:
        if c.extent == 1:
            continue
        if layout.tiling(c.number) is not None:
            yield layout.changed(c.number, None)
        for axis in AXES:
            for tiling in _tilings(directions, c.number, axis, limit):
                yield layout.changed(c.number, tiling)


def _tilings(directions: Directions, number: int, axis: int, limit: Limit) -> Iterator[Tiling]:
    """Yield the tilings that put a class along an axis."""
    for size in sizes(directions.classes.all[number].extent, limit[axis]):
        yield Tiling(axis, size)
        if size > 1 and number in directions.cyclic_classes:
            yield Tiling(axis, size, cyclic=True)


def sizes(extent: int, limit: int) -> list[int]:
    """Return tile sizes, the smallest first: all counts up to 8, then halves of the largest."""
    most = min(extent, limit)
    counts = {most, *range(2, min(most, 8) + 1)}
    while most > 8:
        most //= 2
        counts.add(most)
    return sorted({-(-extent // c) for c in counts if c > 1} or {extent})
