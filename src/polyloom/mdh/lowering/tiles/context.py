"""What passes know of an md_hom under a schedule, and what they call its loops and arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from polyloom.ir.expressions import Read
from polyloom.ir.host import Combiner, MdHom
from polyloom.ir.inequalities import conjuncts
from polyloom.ir.integers import TRUE
from polyloom.ir.naming import Names
from polyloom.mdh.schedule.addresses import Buffers
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.ranges import bound_of, not_negative
from polyloom.polyhedra.loops.tree import IntExpression, Name, names_in, sum_of


@dataclass(frozen=True, eq=False)
class Tiles:
    """An md_hom with a schedule; ``names`` gives out names that nothing else in the program has.

    ``parts``: the dimensions whose parts leave partial results, of which each has a loop of its own;
    ``statements``: per output, what instances of its term are called; none where terms are another's results.
    """

    hom: MdHom
    buffers: Buffers
    schedule: Schedule
    names: Names
    parts: tuple[int, ...] = ()
    statements: tuple[str, ...] = ()

    @cached_property
    def facts(self) -> TileFacts:
        """The sizes of tiles."""
        return TileFacts(self.hom, self.schedule)

    @property
    def combiner(self) -> Combiner | None:
        """The operator of the reduction; None for a map."""
        return self.facts.combiner

    @property
    def has_flags(self) -> bool:
        """Whether a total may be nothing, for want of a neutral element."""
        return self.combiner is not None and any(n is None for n in self.combiner.neutral)

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The kept dimensions as their loops stand in each other."""
        return tuple(d for d in self.schedule.private_order if d in self.facts.kept)

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """The reduced dimensions as their loops stand in each other."""
        return tuple(d for d in self.schedule.private_order if d in self.facts.reduced)

    def point(self, d: int) -> str:
        """Return the iterator of a dimension's points."""
        return self.hom.iterators[d]

    def name(self, key: str, d: int, wanted: str) -> str:
        """Return the iterator of other loops of a dimension: ``i_group``."""
        return self.names.of((key, d), f"{self.point(d)}_{wanted}")

    def part(self, d: int) -> str:
        """Return the iterator over the parts of a dimension that leave partial results."""
        return self.names.of(("part", d), f"{self.point(d)}_part")

    def array(self, key: str, o: int) -> str:
        """Return the name of an array for an output."""
        single = len(self.hom.outputs) == 1
        return self.names.of((key, o), key if single else f"{key}_{o}")

    # Work-items

    @cached_property
    def items(self) -> tuple[int, ...]:
        """The dimensions that work-items of a group share, that of neighbouring items last."""
        return tuple(d for d in self.schedule.item_order if self.schedule.items[d] > 1)

    @cached_property
    def shared(self) -> tuple[int, ...]:
        """The reduced dimensions that work-items share."""
        return tuple(d for d in self.facts.reduced if d in self.items)

    @cached_property
    def meets(self) -> bool:
        """Whether items meet at barriers while each is at its own points.

        They do where they combine what they reduced, and where copies change while totals stay.
        """
        changing = self.facts.persistent and self.schedule.has_copies
        return bool(self.items) and (bool(self.shared) or changing)

    @cached_property
    def register_tiled(self) -> tuple[int, ...]:
        """The kept dimensions of which an item has at most a register tile in each step of its group."""
        return self.kept if self.meets else tuple(d for d in self.kept if d in self.items)

    def is_strided(self, d: int) -> bool:
        """Whether an item's points of a dimension lie apart."""
        return self.schedule.strided[d] and d in self.items

    def item(self, d: int) -> str:
        """Return the iterator over the work-items along a dimension."""
        return self.name("item", d, "item")

    def turn(self, d: int) -> str:
        """Return the iterator over an item's own points of a dimension: the number of each."""
        return self.name("turn", d, "turn")

    @cached_property
    def item_number(self) -> IntExpression:
        """The number of the item at hand among those of its group."""
        terms, count = [], 1
        for d in reversed(self.items):
            terms.append((count, Name(self.item(d))))
            count *= self.schedule.items[d]
        return sum_of(terms[::-1])

    # The domain

    @cached_property
    def vector(self) -> int | None:
        """The dimension of vectors; None, too, for a reduced one whose bounds differ from point to point."""
        d = self.schedule.vector
        return d if d in self.kept else self._same_everywhere(d)

    @cached_property
    def apart(self) -> int | None:
        """The reduced dimension of which neighbours have totals of their own, unless its bounds differ."""
        return self._same_everywhere(self.facts.apart)

    def _same_everywhere(self, d: int | None) -> int | None:
        """Return a dimension whose bounds are the same at all points of the others, None for others."""
        if d is None:
            return None
        others = {self.point(other) for other in (*self.kept, *self.reduced) if other != d}
        differs = any(not names_in(bound).isdisjoint(others) for bound in self.domain.bounds.get(d, ()))
        return None if differs else d

    @cached_property
    def domain(self) -> Domain:
        """The conditions of the md_hom as bounds of its loops."""
        return _domain(self)


@dataclass(frozen=True)
class Domain:
    """Conditions, each at the innermost loop that it speaks of.

    ``bounds[d]``: integers, not negative where the points of dimension d are wanted. ``empty``: conditions
    over kept points, without which nothing is combined; ``guard``, ``written``: what is no bound of a loop.
    """

    bounds: dict[int, tuple[IntExpression, ...]]
    empty: tuple[IntExpression, ...]
    guard: tuple[IntExpression, ...]
    written: tuple[IntExpression, ...]

    def is_bounded(self, d: int) -> bool:
        """Whether a dimension's loop has other bounds than its extent."""
        return bool(self.bounds.get(d))


def _domain(tiles: Tiles) -> Domain:
    if tiles.meets or (tiles.items and tiles.facts.waits):
        return _everywhere(tiles)
    order = (*tiles.kept, *tiles.reduced)
    bounds: dict[int, tuple[IntExpression, ...]] = {}
    written = tuple(dict.fromkeys(c for c in conjuncts(tiles.hom.written) if c != TRUE))
    guard = tuple(dict.fromkeys(c for c in conjuncts(tiles.hom.guard) if c != TRUE))
    if tiles.combiner is None:
        written, guard = tuple(dict.fromkeys((*guard, *written))), ()
    known: set[IntExpression] = set()
    at_stores: list[IntExpression] = []
    for condition in written:
        found = _bound(tiles, condition, order)
        if found is None:
            at_stores.append(condition)
        else:
            known.update(found[1])
            bounds[found[0]] = (*bounds.get(found[0], ()), *found[1])
    empty, at_terms = [], []
    for condition in guard:
        found = _bound(tiles, condition, order)
        if set(not_negative(condition) or (condition,)) <= known:
            continue
        if found is not None and (found[0] in tiles.reduced or _keeps_what_is_there(tiles)):
            bounds[found[0]] = (*bounds.get(found[0], ()), *found[1])
        elif names_in(condition).isdisjoint(tiles.point(d) for d in tiles.reduced):
            empty.append(condition)
        else:
            at_terms.append(condition)
    return Domain(bounds, tuple(empty), tuple(at_terms), tuple(at_stores))


def _everywhere(tiles: Tiles) -> Domain:
    """Return conditions none of which is a bound.

    All items go through the same loops then, and an item has the same points in each cache tile.
    """
    guard, written = (
        tuple(dict.fromkeys(c for c in conjuncts(condition) if c != TRUE))
        for condition in (tiles.hom.guard, tiles.hom.written)
    )
    return Domain({}, (), guard, written)


def _bound(
    tiles: Tiles, condition: IntExpression, order: tuple[int, ...]
) -> tuple[int, tuple[IntExpression, ...]] | None:
    """Return the innermost dimension of a condition, and what is not negative; None where it is no bound."""
    points = {tiles.point(d): d for d in order}
    found = bound_of(condition, tuple(points))
    return None if found is None else (points[found[0]], found[1])


def _keeps_what_is_there(tiles: Tiles) -> bool:
    """Whether a result to which nothing is combined is what the output holds."""
    hom = tiles.hom
    return not tiles.parts and all(
        f is None and _starts_from_itself(hom, o) for o, f in enumerate(hom.finish)
    )


def _starts_from_itself(hom: MdHom, o: int) -> bool:
    """Whether an output starts from what it holds."""
    start = hom.initial[o]
    return isinstance(start, Read) and hom.inputs[start.position] == hom.outputs[o]


def here(tiles: Tiles) -> tuple[IntExpression, ...]:
    """Return the iterators of the points of all dimensions."""
    return tuple(Name(name) for name in tiles.hom.iterators)
