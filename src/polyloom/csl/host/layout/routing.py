"""Paths between ports, and numbers for colors.

A connection has one color from end to end. Paths avoid PEs of regions, and PEs where their color is in use;
a path is a shortest one. Colors that meet in a PE get different numbers, the lowest that are free.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from polyloom.csl.host.layout.regions import OPPOSITE, OUTSIDE, STEP, CodeRegion, Color, Place, Port, Route
from polyloom.diagnostics import PolyloomError, error

Hop = tuple[Route, Route]
"""Where a path comes from in a PE, and where it goes."""


@dataclass(frozen=True)
class Path:
    """A connection of two PEs: the PEs between them, in order, with where the words come from and go."""

    color: Color
    hops: tuple[tuple[Place, Hop], ...]


class Merged:
    """Colors that must have one number, as a union-find."""

    def __init__(self) -> None:
        """Start with each color alone."""
        self._parent: dict[Color, Color] = {}

    def find(self, color: Color) -> Color:
        """Return the color that stands for all that are one with it."""
        while (parent := self._parent.get(color, color)) is not color:
            color = parent
        return color

    def join(self, first: Color, second: Color) -> None:
        """Make two colors one. Errors: `csl-layout-color` where both have numbers, and different ones."""
        a, b = self.find(first), self.find(second)
        if a is b:
            return
        if a.value is not None and b.value is not None and a.value != b.value:
            raise PolyloomError(
                error(
                    "csl-layout-color",
                    f"`{a.name}` is color {a.value}, and connected to `{b.name}`, {b.value}",
                )
            )
        keep, other = (a, b) if a.value is not None else (b, a)
        self._parent[other] = keep


def occupied(regions: Iterable[CodeRegion]) -> dict[Place, CodeRegion]:
    """Return the region of each PE that has one. Errors: `csl-layout-overlap`."""
    found: dict[Place, CodeRegion] = {}
    for region in regions:
        x, y = region.origin
        for place in [(x + i, y + j) for j in range(region.height) for i in range(region.width)]:
            if place in found:
                raise PolyloomError(
                    error(
                        "csl-layout-overlap",
                        f"`{region.name}` and `{found[place].name}` both have PE {place}",
                    )
                )
            found[place] = region
    return found


def connect(
    source: Port, target: Port, merged: Merged, taken: Mapping[Place, object], used: dict[Place, set[Color]]
) -> list[Path]:
    """Return paths from each PE of a port to that of another. Errors: `csl-layout-connection`."""
    starts, ends = source.places(), target.places()
    if len(starts) != len(ends):
        raise PolyloomError(
            error(
                "csl-layout-connection",
                f"the port of `{source.region.name}` has {len(starts)} PEs,"
                f" that of `{target.region.name}` {len(ends)}",
            )
        )
    merged.join(source.color, target.color)
    color = merged.find(source.color)
    paths = []
    for start, end in zip(starts, ends, strict=True):
        out, into = OUTSIDE[source.edge], OUTSIDE[target.edge]
        hops = _shortest(start, out, end, into, lambda p: p in taken or color in used.get(p, ()))
        if hops is None:
            raise PolyloomError(
                error(
                    "csl-layout-connection",
                    f"there is no way from PE {start} to PE {end} between the regions",
                    helps=["place the regions farther from each other"],
                )
            )
        for place, _ in hops:
            used.setdefault(place, set()).add(color)
        paths.append(Path(color, tuple(hops)))
    return paths


def _shortest(
    start: Place, out: Route, end: Place, into: Route, is_blocked: object
) -> list[tuple[Place, Hop]] | None:
    """Return the PEs between two, which are left and entered at given sides; None: there is no way."""
    assert callable(is_blocked)
    first, last = _next(start, out), _next(end, into)
    if first == end and last == start:
        return []
    low = -1
    high_x, high_y = max(start[0], end[0]) + 2, max(start[1], end[1]) + 2
    low_x, low_y = max(low + 1, min(start[0], end[0]) - 2), max(low + 1, min(start[1], end[1]) - 2)
    came: dict[Place, Route] = {}
    if not is_blocked(first) and first[0] >= 0 and first[1] >= 0:
        came[first] = out
    waiting = deque(came)
    while waiting and last not in came:
        place = waiting.popleft()
        for route in STEP:
            there = _next(place, route)
            inside = low_x <= there[0] <= high_x and low_y <= there[1] <= high_y
            if inside and there not in came and not is_blocked(there):
                came[there] = route
                waiting.append(there)
    if last not in came:
        return None
    hops = []
    place, goes = last, OPPOSITE[into]
    while True:
        route = came[place]
        hops.append((place, (OPPOSITE[route], goes)))
        if place == first:
            return hops[::-1]
        place, goes = _next(place, OPPOSITE[route]), route


def _next(place: Place, route: Route) -> Place:
    dx, dy = STEP[route]
    return place[0] + dx, place[1] + dy


def number_colors(meetings: Sequence[set[Color]], count: int) -> dict[Color, int]:
    """Return numbers below ``count``; colors of one set get different ones. Errors: `csl-layout-color`."""
    colors = list(dict.fromkeys(color for met in meetings for color in sorted(met, key=lambda c: c.name)))
    numbers = {color: color.value for color in colors if color.value is not None}
    for color in colors:
        if color in numbers:
            continue
        others = {numbers[o] for met in meetings if color in met for o in met if o in numbers}
        free = next((n for n in range(count) if n not in others), None)
        if free is None:
            raise PolyloomError(
                error("csl-layout-color", f"there is no color left for `{color.name}`: {count} meet in a PE")
            )
        numbers[color] = free
    return numbers
