"""Reductions along vectors: neighbours are combined into totals of their own, which come together at the end.

Without vectors, too, where there is one result: each of them would wait for the one before.

total = 0.0                        unrolled for k_at from 0 to 16: part[k_at] = 0.0
for k from 0 to p:                 for k_first from 0 to p - 15 step 16:
  total = total + x[k]       ->      unrolled for k_at from 0 to 16: part[k_at] = part[k_at] + x[..]
                                   for k from p / 16 * 16 to p: total = total + x[k]
                                   for k_at from 0 to 8: of_8[k_at] = part[k_at] + part[k_at + 8]; ..
                                   total = total + of_1[0]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.jam import Jam, own_name
from polyloom.mdh.lowering.tiles.naive import nothing, partial_totals, taken_up, total_types, totals
from polyloom.mdh.lowering.tiles.strips import in_steps
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    For,
    Kind,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import plus, times
from polyloom.mdh.tree.rewrite import renamed_array, rewritten, substituted, walk, with_blocks, with_places
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number


def several_totals(tiles: Tiles, code: Code) -> Code:
    """Give the points of a vector along a reduced dimension, or of a loop written out, totals of their own.

    Keeps true: each point is combined once; the operator commutes, so that the order does not count.
    """
    d = tiles.apart
    return code if d is None else _Several(tiles, d).code(code)


@dataclass(frozen=True)
class _Several:
    tiles: Tiles
    d: int

    def code(self, code: Code) -> Code:
        """Put the totals around each statement of a block that has the reduction's loops inside it."""
        tiles = self.tiles
        declares = any(isinstance(s, Array) and s.name == totals(tiles)[0] for s in code)
        if not declares:
            return tuple(with_blocks(s, self.code) for s in code)
        return tuple(new for s in code for new in (self._split(s) if self._reduces(s) else (s,)))

    def _reduces(self, statement: Statement) -> bool:
        name = self.tiles.point(self.d)
        return any(isinstance(s, For) and s.iterator == name for s in walk((statement,)))

    def _split(self, statement: Statement) -> Code:
        tiles, at, size = self.tiles, Name(self._at), self.tiles.facts.tile(self.d)
        arrays = self._arrays(self._parts(), size)
        empty = tuple(Store(p, (at,), value) for p, value in zip(self._parts(), nothing(tiles), strict=True))
        first = counted(self._at, Number(size), empty, kind=Kind.UNROLLED)
        loops = rewritten((statement,), self._cut)
        return (*arrays, first, *loops, *self._joined())

    @property
    def _at(self) -> str:
        return self.tiles.name("at", self.d, "at")

    def _parts(self) -> tuple[str, ...]:
        return tuple(self.tiles.names.of(("part", name), f"{name}_part") for name in totals(self.tiles))

    def _named(self, size: int) -> tuple[str, ...]:
        """Return names for so many totals that are left of a vector."""
        names = self.tiles.names
        return tuple(names.of(("left", size, name), f"{name}_of_{size}") for name in totals(self.tiles))

    def _arrays(self, names: Sequence[str], size: int) -> tuple[Array, ...]:
        three = zip(names, total_types(self.tiles), partial_totals(self.tiles), strict=True)
        return tuple(
            Array(name=name, type=kind, shape=(Number(size),), space=Space.REGISTER, totals=whole)
            for name, kind, whole in three
        )

    def _cut(self, statement: Statement) -> Code:
        """Cut the loop along the vector: several vectors at a time, one, single points."""
        if not isinstance(statement, For) or statement.iterator != self.tiles.point(self.d):
            return (statement,)
        loop, size = statement, self.tiles.facts.tile(self.d)
        bounded = self.tiles.parts or self.tiles.domain.is_bounded(self.d)
        known = self.tiles.facts.divides(self.d, self.tiles.facts.width(self.d)) and not bounded
        sizes = tuple(dict.fromkeys((size, self.tiles.facts.width(self.d), *(() if known else (1,)))))

        def once(first: IntExpression, count: int) -> Code:
            if count == 1:
                return substituted(loop.body, loop.iterator, first)
            return self._jammed(loop.body, loop.iterator, first, count)

        return in_steps(self.tiles, self.d, loop, sizes, once)

    def _jammed(self, body: Code, iterator: str, first: IntExpression, size: int) -> Code:
        for name, part in zip(totals(self.tiles), self._parts(), strict=True):
            body = renamed_array(body, name, Load(part, (Name(self._at),)))
        jam = Jam(self._at, True, lambda name: own_name(self.tiles, name))
        return jam.together(size, substituted(body, iterator, plus(first, Name(self._at))))

    def _joined(self) -> Code:
        """Combine vectors, then halves of one, so that few totals wait for one another."""
        width, names = self.tiles.facts.width(self.d), self._parts()
        several = self.tiles.names.of(("several", self.d), f"{self.tiles.point(self.d)}_vector")
        found = list[Statement]()
        for count, far in _halves(self.tiles.schedule.private[self.d]):
            step = self._taken_in(names, names, times(width, Name(several), Name(self._at)), width * far)
            lanes = counted(self._at, Number(width), step, kind=Kind.UNROLLED)
            found.append(counted(several, Number(count), (lanes,), kind=Kind.UNROLLED))
        while width > 1:
            width //= 2
            halves = self._arrays(self._named(width), width)
            step = self._taken_in(names, [half.name for half in halves], Name(self._at), width)
            found += (*halves, counted(self._at, Number(width), step, kind=Kind.UNROLLED))
            names = tuple(half.name for half in halves)
        ones = [Load(name, (Number(0),)) for name in names]
        return (*found, *taken_up(self.tiles, totals(self.tiles), ones))

    def _taken_in(self, names: Sequence[str], into: Sequence[str], at: IntExpression, far: int) -> Code:
        """Return code that combines totals with those that are so far behind them."""
        step = taken_up(self.tiles, names, [Load(name, (plus(at, far),)) for name in names], into)
        for name in dict.fromkeys((*names, *into)):
            step = _at_point(step, name, at)
        return step


def _halves(count: int) -> Iterator[tuple[int, int]]:
    """Yield of how many totals the last ones are combined with the first ones, and how far they are behind.

    One is left in the end.
    """
    while count > 1:
        half = count // 2
        count -= half
        yield half, count


def _at_point(code: Code, name: str, at: IntExpression) -> Code:
    """Return code whose accesses to ``name`` without subscripts are at a point."""

    def change(load: Load) -> Load:
        return replace(load, subscripts=(at,)) if load == Load(name) else load

    return with_places(code, change)
