"""Layouts: which classes of iterators run along which axis, in tiles of which size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.ir.statements import Statement
from polyloom.wafer.placement.classes import Classes, Member, find_classes, written_iterators
from polyloom.wafer.placement.coordinates import Coordinate, Place, Tile, range_of

AXES = (0, 1)
"""x and y."""


@dataclass(frozen=True)
class Tiling:
    """A class along an axis (0: x, 1: y), ``size`` values to a tile; ``cyclic``: not in blocks."""

    axis: int
    size: int
    cyclic: bool = False

    def cycle(self, extent: int) -> int:
        """Return the number of PEs over which values are distributed cyclically; 0 for blocks."""
        return -(-extent // self.size) if self.cyclic else 0


@dataclass(frozen=True)
class Layout:
    """``tilings``: class number to tiling, by number; the other classes are not split.

    ``skewed``: tile sizes of the directions that are no plain iterator, by statement number and axis.
    """

    tilings: tuple[tuple[int, Tiling], ...] = ()
    skewed: tuple[tuple[tuple[int, int], int], ...] = ()

    def tiling(self, number: int) -> Tiling | None:
        """Return the tiling of a class."""
        return dict(self.tilings).get(number)

    @property
    def cyclic(self) -> int:
        """Number of classes that are distributed cyclically."""
        return sum(t.cyclic for _, t in self.tilings)

    def changed(self, number: int, tiling: Tiling | None) -> Layout:
        """Return the layout with another tiling of one class."""
        kept = {n: t for n, t in self.tilings if n != number}
        if tiling is not None:
            kept[number] = tiling
        return replace(self, tilings=tuple(sorted(kept.items())))


@dataclass(frozen=True, eq=False)
class Directions:
    """What the map fixes: ``{statement number: (x, y)}`` as expressions of the iterators."""

    program: Program
    given: Mapping[int, tuple[Index, Index]]
    _tiled: dict[_Tiled, tuple[Tile, ...]] = field(default_factory=dict)

    @cached_property
    def classes(self) -> Classes:
        """The program's classes of iterators."""
        return find_classes(self.program)

    @cached_property
    def iterators(self) -> Mapping[Member, int]:
        """The iterator of a statement that is in a class, by the numbers of both."""
        return self.classes.iterators(self.program)

    def tiles(self, number: int, axis: int, layout: Layout, steps: Mapping[int, int]) -> tuple[Tile, ...]:
        """Return the tiles of a statement along an axis; one value for all layouts that have them."""
        here = tuple(
            (k, c, tiling, steps[c])
            for c, tiling in layout.tilings
            if tiling.axis == axis and (k := self.iterators.get((number, c))) is not None
        )
        if (number, here) not in self._tiled:
            domain = self.program.statements[number].domain
            self._tiled[number, here] = tuple(
                _tile(k, len(domain), domain[k], t.size, step, t.cycle(self.classes.all[c].extent))
                for k, c, t, step in here
            )
        return self._tiled[number, here]

    @cached_property
    def cyclic_classes(self) -> frozenset[int]:
        """The classes that may be distributed cyclically: ``x[2*w + 3*r]`` then needs less of x on each PE.

        The other iterators step over elements there: those of one ``r`` have the same remainder. What has a
        direction is cut in blocks.
        """
        return frozenset() if self.given else frozenset(self._cyclic_classes())

    def _cyclic_classes(self) -> Iterator[int]:
        for (number, k), c in self.classes.of.items():
            for access in self.program.statements[number].reads:
                for index in access.affine:
                    others = [a for j, a in enumerate(index.coefficients) if a and j != k]
                    if index.coefficients[k] and math.gcd(*others) > 1:
                        yield c

    def skewed(self) -> Iterator[tuple[int, int, Index]]:
        """Yield the directions that are no plain iterator and no constant: statement, axis, expression."""
        for number, pair in self.given.items():
            for axis in AXES:
                if any(pair[axis].coefficients) and self._iterator(pair[axis]) is None:
                    yield number, axis, pair[axis]

    def allows(self, layout: Layout) -> bool:
        """Whether a layout follows the directions."""
        return all(self._follows(layout, number, axis) for number in self.given for axis in AXES)

    def _follows(self, layout: Layout, number: int, axis: int) -> bool:
        expression = self.given[number][axis]
        k = self._iterator(expression)
        wanted = set() if k is None else {self.classes.of[number, k]}
        own = {c for (s, _), c in self.classes.of.items() if s == number}
        return {c for c, t in layout.tilings if t.axis == axis and c in own} <= wanted

    @staticmethod
    def _iterator(expression: Index) -> int | None:
        used = [k for k, c in enumerate(expression.coefficients) if c]
        return used[0] if len(used) == 1 and expression.coefficients[used[0]] == 1 else None


def places_of(directions: Directions, layout: Layout) -> tuple[Place, ...]:
    """Return where the statements are under a layout, in their order."""
    program = directions.program
    places: list[Place] = []
    steps = _steps(directions.classes, layout)
    for number, statement in enumerate(program.statements):
        pair = [_coordinate(directions, layout, steps, places, number, axis) for axis in AXES]
        places.append(Place(*pair))
        assert len(statement.domain) >= 0
    return tuple(places)


def _steps(classes: Classes, layout: Layout) -> dict[int, int]:
    """Return what one tile of a class counts: classes of one statement on one axis are digits of a number."""
    steps: dict[int, int] = {}
    for number, tiling in layout.tilings:
        step = 1
        for other, beside in layout.tilings:
            if other < number and beside.axis == tiling.axis and _meet(classes, number, other):
                step *= -(-classes.all[other].extent // beside.size)
        steps[number] = step
    return steps


def _meet(classes: Classes, first: int, second: int) -> bool:
    """Whether a statement has iterators of both classes."""
    statements = ({s for s, _ in classes.all[n].members} for n in (first, second))
    return not set.isdisjoint(*statements)


def _coordinate(
    directions: Directions,
    layout: Layout,
    steps: Mapping[int, int],
    before: Sequence[Place],
    number: int,
    axis: int,
) -> Coordinate:
    statement = directions.program.statements[number]
    for (n, a), size in layout.skewed:
        if (n, a) == (number, axis):
            return Coordinate((_skewed(statement, directions.given[number][axis], size),))
    tiles = directions.tiles(number, axis, layout, steps)
    if tiles:
        return Coordinate(tiles)
    return Coordinate((), _where_operands_are(directions.program, before, statement, axis))


def _skewed(statement: Statement, expression: Index, size: int) -> Tile:
    return Tile(expression, *range_of(expression, statement.domain), size)


_Tiled = tuple[int, tuple[tuple[int, int, Tiling, int], ...]]
"""A statement; of its classes along an axis: the iterator, the class, its tiling, what one tile counts."""


@lru_cache(maxsize=4096)
def _tile(k: int, rank: int, extent: int, size: int, step: int, cycle: int) -> Tile:
    """Return the tile of an iterator; one value for all layouts that have it."""
    return Tile(Index.unit(k, rank), 0, extent - 1, size, step=step, cycle=cycle)


def _where_operands_are(program: Program, before: Sequence[Place], statement: Statement, axis: int) -> int:
    """Return the coordinate at which the internal operands lie, the largest of several."""
    found = [0]
    for access in statement.reads:
        for number, place in enumerate(before):
            producer = program.statements[number]
            if producer.write.buffer == access.buffer:
                found.append(_owner(producer, (place.x, place.y)[axis]))
    return max(found)


def _owner(producer: Statement, coordinate: Coordinate) -> int:
    """Return the coordinate where sums are complete: at the end of the tiles that are summed over."""
    kept = written_iterators(producer)
    summed = [t for t in coordinate.tiles if t.iterator is not None and t.iterator not in kept]
    return coordinate.constant + sum(t.step * (t.count - 1) for t in summed)
