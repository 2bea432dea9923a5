"""Trapezoids across time: what is said of them, against all points and all pairs of them, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import ceil
from random import Random

import pytest

from polyloom.ir.integers import integer
from polyloom.polyhedra.effort import at_most
from polyloom.polyhedra.loops.tree import Name, Number, sum_of
from polyloom.polyhedra.time_tiles import (
    Side,
    Steps,
    Sweep,
    Touch,
    Trapezoids,
    distances,
    fault,
    highest,
    meetings,
    rows_of,
    sides,
)

ROWS, STEPS = 22, 7
Point = tuple[int, int, int]
"""A step, a sweep, a row."""


def stencil(rng: Random) -> Steps:
    """Return some sweeps over rows of a few arrays, all of which are stored; borders are as they are."""
    arrays = ["a", "b", "c"][: rng.randint(1, 3)]
    sweeps = []
    for target in arrays:
        low, high = rng.randint(1, 3), rng.randint(1, 3)
        far = rng.randint(0, min(low, high))
        reads = [Touch(target, (_row(low),), is_store=False)]
        for other in arrays:
            if other != target:
                reads += [
                    Touch(other, (_row(low + rng.randint(-far, far)),), is_store=False) for _ in range(2)
                ]
        stored = Touch(target, (_row(low),), is_store=True)
        sweeps.append(
            Sweep(iterators=("i",), extents=(ROWS - low - high,), touches=(*reads, stored), rows=(_row(low),))
        )
    return Steps(time="t", first=rng.randint(-2, 2), count=STEPS, sweeps=tuple(sweeps))


def _row(constant: int) -> object:
    return sum_of([(1, Name("i")), (1, Number(constant))])


def _points(steps: Steps) -> Iterator[Point]:
    for t in range(steps.count):
        for p, sweep in enumerate(steps.sweeps):
            yield from ((t, p, integer(sweep.rows[0], {"i": i})) for i in range(sweep.extents[0]))


def _touched(steps: Steps, point: Point) -> dict[tuple[str, int], bool]:
    t, p, row = point
    sweep, found = steps.sweeps[p], dict[tuple[str, int], bool]()
    at = {"i": row - integer(sweep.rows[0], {"i": 0}), "t": t + steps.first}
    for touch in sweep.touches:
        element = touch.array, integer(touch.subscripts[0], at)
        found[element] = found.get(element, False) or touch.is_store
    return found


def _place(tiles: Trapezoids, point: Point) -> list[tuple[int, int, int]]:
    """Return the block of steps, the phase and the trapezoids that a point is in, from the definition."""
    t, p, row = point
    block, step = divmod(t, tiles.height)
    low, high = (s.offsets[p] + s.rise * step for s in (tiles.lower, tiles.upper))
    found = []
    for b in range(tiles.count + 1):
        start = tiles.first + b * tiles.width
        if b < tiles.count and start + low <= row < start + tiles.width - high:
            found.append((block, 0, b))
        if start - high <= row < start + low:
            found.append((block, 1, b))
    return found


def _wrong(steps: Steps, tiles: Trapezoids) -> bool:
    """Return whether a point is in no trapezoid, or in two, or runs before or beside what it needs."""
    points = list(_points(steps))
    places = {point: _place(tiles, point) for point in points}
    if any(len(found) != 1 for found in places.values()):
        return True
    touched = {point: _touched(steps, point) for point in points}
    for a, b in product(points, points):
        if a[:2] >= b[:2] or not any(touched[a][e] or s for e, s in touched[b].items() if e in touched[a]):
            continue
        ((block, phase, tile),), ((later, other, beside),) = places[a], places[b]
        if (block, phase) > (later, other) or ((block, phase) == (later, other) and tile != beside):
            return True
    return False


def _tiles(steps: Steps, lower: Side, upper: Side, width: int, height: int) -> Trapezoids:
    rows = [r for _, _, r in _points(steps)]
    count = ceil((max(rows) - min(rows) + 1) / width)
    return Trapezoids(height=height, width=width, first=min(rows), count=count, lower=lower, upper=upper)


@pytest.mark.parametrize("seed", range(8))
def test_a_fault_is_found_where_there_is_one(seed: int) -> None:
    rng = Random(seed)
    steps = stencil(rng)
    with at_most(3_000_000):
        found, rows = meetings(steps, 0), rows_of(steps, 0)
        apart = distances(found)
        assert apart is not None
        lie = sides(apart, len(steps.sweeps))
        assert lie is not None
        lower, upper = lie
        width = next(w for w in range(2, 60) if highest(lower, upper, w) >= 2)
        right = _tiles(steps, lower, upper, width, min(3, highest(lower, upper, width)))
        assert fault(right, found, rows, steps.first) is None
        assert not _wrong(steps, right)
        for changed in (
            replace(right, lower=Side(lower.offsets, lower.rise - 1)),
            replace(right, upper=Side(upper.offsets, upper.rise - 1)),
            replace(right, lower=Side(tuple(max(0, o - 1) for o in lower.offsets), lower.rise)),
            replace(right, height=right.height + 2),
            replace(right, count=right.count - 1),
        ):
            said = fault(changed, found, rows, steps.first)
            assert (said is not None) == _wrong(steps, changed), said


def test_sides_are_no_steeper_than_they_can_be() -> None:
    """Two sweeps of radius one: what is stored back needs one row more, in each step two."""
    touches = [Touch(a, (_row(1 + k),), is_store=False) for a in "ab" for k in (-1, 0, 1)]
    first, second = (
        Sweep(iterators=("i",), extents=(20,), touches=(*reads, Touch(s, (_row(1),), True)), rows=(_row(1),))
        for reads, s in ((touches[:3], "b"), (touches[3:], "a"))
    )
    steps = Steps(time="t", first=0, count=9, sweeps=(first, second))
    with at_most(1_000_000):
        assert sides(distances(meetings(steps, 0)) or [], 2) == (Side((0, 1), 2), Side((0, 1), 2))


def test_rows_that_are_ever_further_apart_have_no_sides() -> None:
    touches = Touch("a", (sum_of([(2, Name("i"))]),), False), Touch("a", (_row(0),), True)
    sweep = Sweep(iterators=("i",), extents=(1000,), touches=touches, rows=(_row(0),))
    with at_most(1_000_000):
        apart = distances(meetings(Steps(time="t", first=0, count=9, sweeps=(sweep,)), 0))
        assert apart is None or sides(apart, 1) is None


def test_rows_of_one_sweep_that_need_each_other_have_no_sides() -> None:
    """What a point stores and another one of the same sweep reads: no trapezoids, whatever their sides."""
    touches = Touch("a", (_row(0),), is_store=False), Touch("a", (_row(1),), is_store=True)
    sweep = Sweep(iterators=("i",), extents=(20,), touches=touches, rows=(_row(1),))
    with at_most(1_000_000):
        assert distances(meetings(Steps(time="t", first=0, count=9, sweeps=(sweep,)), 0)) is None


def test_upright_sides_leave_nothing_between() -> None:
    touches = Touch("a", (_row(0),), is_store=False), Touch("a", (_row(0),), is_store=True)
    sweep = Sweep(iterators=("i",), extents=(20,), touches=touches, rows=(_row(0),))
    steps = Steps(time="t", first=0, count=9, sweeps=(sweep,))
    with at_most(1_000_000):
        found = meetings(steps, 0)
        lie = sides(distances(found) or [], 1)
        assert lie is not None
        tiles = _tiles(steps, *lie, width=7, height=5)
        assert fault(tiles, found, rows_of(steps, 0), 0) is None
        assert tiles.phases == (0,)
