"""What a schedule means for one md_hom: how large tiles are, which loops there are, what divides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from polyloom.ir.host import Combiner, Index, MdHom, Order
from polyloom.ir.inequalities import conjuncts
from polyloom.mdh.schedule.addresses import inner_reads, kept_dimensions, known, reduced_dimensions
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.tree.matrix.steps import LANES
from polyloom.mdh.tree.ranges import bound_of
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in, sum_of


@dataclass(frozen=True, eq=False)
class HomFacts:
    """What holds of an md_hom whatever its schedule."""

    hom: MdHom

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that the results keep."""
        return kept_dimensions(self.hom)

    @cached_property
    def reduced(self) -> tuple[int, ...]:
        """The dimensions that are combined into one point."""
        return reduced_dimensions(self.hom)

    @cached_property
    def inner(self) -> frozenset[int]:
        """The inputs that are read at every point, not at kept points alone."""
        return inner_reads(self.hom)

    @cached_property
    def combiner(self) -> Combiner | None:
        """The operator of the reduced dimensions."""
        return next((self.hom.combine[d].combiner for d in self.reduced), None)

    @cached_property
    def extents(self) -> tuple[int | None, ...]:
        """The extents that are numbers."""
        return tuple(map(known, self.hom.extents))

    @cached_property
    def known(self) -> dict[str, Any]:
        """What other modules found out of it."""
        return {}


@dataclass(frozen=True)
class TileFacts:
    """An md_hom under a schedule."""

    hom: MdHom
    schedule: Schedule

    def under(self, schedule: Schedule) -> TileFacts:
        """Return the md_hom under another schedule: what holds under any is not worked out again."""
        other = TileFacts(self.hom, schedule)
        other.__dict__["of_hom"] = self.of_hom
        return other

    @cached_property
    def of_hom(self) -> HomFacts:
        """What holds of the md_hom under any schedule."""
        return HomFacts(self.hom)

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that the results keep."""
        return self.of_hom.kept

    @property
    def reduced(self) -> tuple[int, ...]:
        """The dimensions that are combined into one point."""
        return self.of_hom.reduced

    @property
    def inner(self) -> frozenset[int]:
        """The inputs that are read at every point, not at kept points alone."""
        return self.of_hom.inner

    @property
    def combiner(self) -> Combiner | None:
        """The operator of the reduced dimensions."""
        return self.of_hom.combiner

    @cached_property
    def plans(self) -> dict[int, Any]:
        """The copies of inputs, by their positions, that were planned."""
        return {}

    @property
    def total_items(self) -> int:
        """Work-items of a group; what has matrix units has a warp for each of ``items``."""
        return prod(self.schedule.items) * (LANES if self.schedule.matrix else 1)

    @cached_property
    def split(self) -> tuple[int, ...]:
        """The reduced dimensions whose parts groups leave to a second kernel."""
        return tuple(d for d in self.reduced if self.schedule.group[d] and self.groups(d) != Number(1))

    def extent(self, d: int) -> int | None:
        """Return the extent of a dimension where it is a number."""
        return self.of_hom.extents[d]

    def groups(self, d: int) -> IntExpression:
        """Return how many work-groups there are along a dimension."""
        size = self.schedule.group[d]
        return ceiling(self.hom.extents[d], size) if size else Number(1)

    def width(self, d: int) -> int:
        """Return how many points of a dimension a vector holds."""
        return self.schedule.width if d == self.schedule.vector else 1

    def tile(self, d: int) -> int:
        """Return how many points of a dimension a register tile has."""
        return self.schedule.private[d] * self.width(d)

    def step(self, d: int) -> int:
        """Return how far a group's work-items get with one register tile each."""
        return self.tile(d) * self.schedule.items[d]

    def covered(self, d: int) -> int | None:
        """Return how many points a group covers at most; None where that is not known."""
        return self._covered[d]

    @cached_property
    def _covered(self) -> tuple[int | None, ...]:
        pairs = zip(self.of_hom.extents, self.schedule.group, strict=True)
        return tuple(n if not group else group if n is None else min(n, group) for n, group in pairs)

    def is_tiled(self, d: int) -> bool:
        """Whether a dimension has a loop over cache tiles."""
        return self._tiled[d]

    @cached_property
    def _tiled(self) -> tuple[bool, ...]:
        pairs = zip(self.schedule.local, self._covered, strict=True)
        return tuple([size > 0 and (covered is None or size < covered) for size, covered in pairs])

    def length(self, d: int) -> int | None:
        """Return how many points a cache tile has at most; None where that is not known."""
        return self._lengths[d]

    @cached_property
    def _lengths(self) -> tuple[int | None, ...]:
        three = zip(self._tiled, self.schedule.local, self._covered, strict=True)
        return tuple([size if is_tiled else covered for is_tiled, size, covered in three])

    def divides(self, d: int, step: int) -> bool:
        """Whether every cache tile of a dimension is known to consist of whole tiles of ``step`` points."""
        n, length = self.extent(d), self.length(d)
        return step == 1 or (n is not None and length is not None and n % step == 0 == length % step)

    def is_multiple(self, d: int, size: int) -> bool:
        """Whether an extent is known to be a multiple of ``size``."""
        n = self.extent(d)
        return n is not None and n % size == 0

    @cached_property
    def tiled_order(self) -> tuple[int, ...]:
        """The loops over cache tiles, outermost first."""
        return tuple(d for d in self.schedule.local_order if self.is_tiled(d))

    @cached_property
    def persistent(self) -> bool:
        """Whether totals stay in variables while cache tiles of the reduction come and go."""
        tiled = self.tiled_order
        if not any(d in self.reduced for d in tiled):
            return False
        first = next(k for k, d in enumerate(tiled) if d in self.reduced)
        single = all(self.length(d) is not None and self.length(d) == self.step(d) for d in self.kept)
        return single and all(d in self.reduced for d in tiled[first:])

    @property
    def staged(self) -> bool:
        """Whether copies change from cache tile to cache tile, and are loaded one tile ahead."""
        copies = self.schedule.stages > 1 and self.schedule.has_copies
        return copies and self.total_items > 1 and bool(self.tiled_order)

    @property
    def waits(self) -> bool:
        """Whether totals wait in memory between cache tiles of the reduction."""
        return any(d in self.reduced for d in self.tiled_order) and not self.persistent

    @property
    def uniform(self) -> bool:
        """Whether all register tiles have one shape, because work-items meet at barriers."""
        return self.total_items > 1 or self.persistent

    @property
    def vector_is_reduced(self) -> bool:
        """Whether vectors hold neighbours of a reduced dimension."""
        return self.schedule.vector in self.reduced

    @cached_property
    def apart(self) -> int | None:
        """The reduced dimension of which neighbours have totals of their own; None where none has.

        That of vectors; without any, where there is one result, a loop that is written out: a single total
        would wait for itself at every point.
        """
        if self.vector_is_reduced:
            return self.schedule.vector
        single = self.schedule.vector is None and self.total_items == 1 and not self.waits
        if not single or self.combiner is None or not self.combiner.commutative or self.persistent:
            return None
        if any(self.schedule.private[d] > 1 for d in self.kept):
            return None
        written_out = [d for d in self.schedule.private_order if d in self.reduced and self.tile(d) > 1]
        return written_out[-1] if written_out else None

    def guard_uses(self, d: int) -> bool:
        """Whether the guard depends on a dimension."""
        return self.hom.guard is not None and self.hom.iterators[d] in names_in(self.hom.guard)


def parts_vectors(facts: TileFacts, d: int) -> bool:
    """Whether conditions tell points of vectors along a dimension apart: they are no bounds of its loop."""
    name, others = facts.hom.iterators[d], [n for n in facts.hom.iterators if n != facts.hom.iterators[d]]
    spoken = [c for c in conjuncts(facts.hom.guard) if name in names_in(c)]
    return any(d in facts.reduced or bound_of(c, (*others, name)) is None for c in spoken)


def ceiling(extent: IntExpression, size: int) -> IntExpression:
    """Return ``extent / size`` rounded up; 0 for an empty dimension."""
    if isinstance(extent, Number):
        return Number(-(-extent.value // size))
    if size == 1:
        return extent
    return Operation("/", (sum_of([(1, extent), (1, Number(size - 1))]), Number(size)))


def has_tiles(hom: MdHom) -> bool:
    """Whether an md_hom has schedules: ``++`` and one point-wise operator, its outputs where ``++`` says."""
    if any(o.order not in (Order.CONCATENATE, Order.POINTWISE) for o in hom.combine):
        return False
    reduced = reduced_dimensions(hom)
    combiners = {operator for d in reduced if (operator := hom.combine[d].combiner) is not None}
    if len(combiners) > 1 or not all(c.associative for c in combiners) or not hom.extents:
        return False
    indices = [index for view in hom.outputs for index in view.indices]
    return all(isinstance(i, Index) and not any(i.coefficients[d] for d in reduced) for i in indices)
