"""Copies in two stages: the next cache tile is on its way while this one is worked on.

    for k_tile from 0 to p step 16:        fill A_copy[0, ...] for k_tile = 0
      fill A_copy                          barrier
      barrier                        ->    for k_tile from 0 to p step 16:
      S(A_copy[...])                         if k_tile + 16 < p: A_next = A[... k_tile + 16 ...]
      barrier                                S(A_copy[k_tile / 16 % 2, ...])
                                             if k_tile + 16 < p: A_copy[(k_tile / 16 + 1) % 2, ...] = A_next
                                             barrier

What is loaded waits in registers, so it need not be there before the work on this tile is done; and one
barrier is enough: what a stage held was read before the barrier of the tile before.

Not in the papers; CUTLASS and many others do so by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from polyloom.ir.expressions import Read
from polyloom.mdh.lowering.tiles.cache_tiles import tile_name
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.copies import copies_of
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    For,
    If,
    Kind,
    Load,
    Space,
    Statement,
    Store,
)
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import rewritten, substituted, walk, with_places
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def staged(tiles: Tiles, code: Code) -> Code:
    """Load the copies of the next cache tile while this one is worked on, and meet once for each.

    Keeps true: a tile is worked on with the elements that its copies had, which nothing writes meanwhile.
    """
    if not tiles.facts.staged:
        return code
    last = tile_name(tiles, tiles.facts.tiled_order[-1])
    copies = {copy.array for copy in copies_of(tiles)}

    def twofold(statement: Statement) -> Code:
        if isinstance(statement, Array) and statement.name in copies:
            return (replace(statement, shape=(Number(tiles.schedule.stages), *statement.shape)),)
        if isinstance(statement, For) and statement.iterator == last:
            return _Stages(tiles, statement).code()
        return (statement,)

    return rewritten(code, twofold) if copies else code


def _parts(loop: For) -> tuple[Code, Code]:
    """Return the loops that fill copies, and what is done with these."""
    barrier = next((k for k, s in enumerate(loop.body) if isinstance(s, Barrier)), 0)
    return loop.body[:barrier], loop.body[barrier + 1 : -1]


@dataclass(frozen=True)
class _Stages:
    """The loop over the cache tiles whose copies change with it."""

    tiles: Tiles
    loop: For

    def code(self) -> Code:
        """Return what is done before the first tile, and the loop."""
        fills, work = _parts(self.loop)
        if not fills:
            return (self.loop,)
        loop, end, here, first = self.loop, self.loop.end, Name(self.loop.iterator), self.loop.start
        copies = dict(waiting for fill in fills for waiting in self._waiting(fill))
        ahead = Operation("<", (plus(here, self._step), end))
        length = plus(end, first, -1)
        start = self._filling(substituted(fills, here.name, first), Number(0))
        if isinstance(length, Number) and length.value <= 0:
            return ()
        if not isinstance(length, Number):
            start = (If(Operation("<", (first, end)), start),)
        ahead_fills = substituted(fills, here.name, plus(here, self._step))
        now = self._stage(0)
        body = (
            If(ahead, self._changed(ahead_fills, lambda s, at: self._fetched(s, at, copies))),
            *with_places(work, lambda p: self._of_stage(p, now) if p.array in copies else p),
            If(ahead, self._changed(ahead_fills, lambda s, at: self._put(s, at, copies))),
            Barrier(),
        )
        return (*copies.values(), *start, Barrier(), replace(loop, body=body))

    @property
    def _step(self) -> int:
        assert isinstance(self.loop.step, Number)
        return self.loop.step.value

    def _stage(self, later: int) -> IntExpression:
        """Return the stage of the tile at hand, or of a later one."""
        distance = plus(Name(self.loop.iterator), self.loop.start, -1)
        number = Operation("/", (distance, Number(self._step)))
        return Operation("%", (plus(number, later), Number(self.tiles.schedule.stages)))

    def _waiting(self, fill: Statement) -> Iterator[tuple[str, Array]]:
        """Declare where an item keeps what it has loaded of the next tile's part of a copy."""
        assert isinstance(fill, For)
        for store in walk((fill,)):
            if isinstance(store, Store):
                key = "next", self.loop.iterator, store.array
                name = self.tiles.names.of(key, f"{store.array}_next")
                kind = store.value.type
                yield store.array, Array(name=name, type=kind, shape=(fill.end,), space=Space.REGISTER)

    @staticmethod
    def _of_stage(place: Load, stage: IntExpression) -> Load:
        return Load(place.array, (stage, *place.subscripts))

    def _filling(self, fills: Code, stage: IntExpression) -> Code:
        return _with_stores(fills, lambda s: replace(s, subscripts=(stage, *s.subscripts)))

    def _changed(self, fills: Code, change: Callable[[Store, Name], Store]) -> Code:
        """Return the loops that fill copies, written out, with other stores."""
        found: list[Statement] = []
        for fill in fills:
            assert isinstance(fill, For)
            turn = Name(fill.iterator)
            body = _with_stores(fill.body, lambda s, turn=turn: change(s, turn))  # type: ignore[misc]
            found.append(replace(fill, kind=Kind.UNROLLED, body=body))
        return tuple(found)

    @staticmethod
    def _fetched(store: Store, at: Name, copies: dict[str, Array]) -> Store:
        return Store(copies[store.array].name, (at,), store.value)

    def _put(self, store: Store, at: Name, copies: dict[str, Array]) -> Store:
        kept = copies[store.array]
        value = Compute(Read(0, kept.type), (Load(kept.name, (at,)),))
        return replace(store, subscripts=(self._stage(1), *store.subscripts), value=value)


def _with_stores(code: Sequence[Statement], change: Callable[[Store], Store]) -> Code:
    def changed(statement: Statement) -> Code:
        return (change(statement),) if isinstance(statement, Store) else (statement,)

    return rewritten(tuple(code), changed)
