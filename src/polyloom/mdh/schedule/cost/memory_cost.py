"""What the levels of memory behind the first cache take for the loops of a scheduled md_hom.

A loop nest's traffic through a level is what the largest inner part that fits into it touches, times how
often that part changes. Memory is counted in whole lines of what lies together; rows that meet in a set more
often than it holds lines need more room. Source: the usual model of tiled loop nests; constants measured.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, gcd, prod

from polyloom.mdh.device.costs import CpuCosts, MemoryCosts
from polyloom.mdh.schedule.addresses import Access, known, places
from polyloom.mdh.schedule.copy_plan import CopyPlan
from polyloom.mdh.schedule.cost.loop_sizes import UNKNOWN, LoopSizes
from polyloom.mdh.schedule.schedules import Sizes
from polyloom.mdh.schedule.turning import turned_dimension


@dataclass(frozen=True, eq=False)
class Traffic:
    """An array as the loops touch it, or several of one shape: the access, the copy it is read from."""

    access: Access
    plan: CopyPlan | None
    written: bool
    count: int

    @cached_property
    def axes(self) -> list[list[tuple[int, int]]]:
        """Per axis the dimensions that move along it, and how far."""
        return [[(d, abs(step)) for d, step in enumerate(steps) if step] for steps in self.access.steps]

    @cached_property
    def source(self) -> Traffic:
        """The array itself, where it is read from a copy that is made in each run."""
        is_made = self.plan is not None and not self.access.buffer.constant
        return replace(self, plan=None) if is_made else self

    @cached_property
    def known(self) -> dict[Sizes, tuple[Pieces, float]]:
        """What some points touch of it, and in lines; most schedules have the same arrays."""
        return {}

    @cached_property
    def bytes(self) -> int:
        """The size of an element."""
        return self.access.buffer.type.size if self.plan is None else self.plan.element.size

    def rows(self, sizes: Sizes) -> list[tuple[int, int]]:
        """Return how many elements some points touch along each axis, and their distance, the nearest first.

        Windows two rows apart touch every second row, none of those between.
        """
        found = [places(axis, sizes) for axis in self.axes]
        if self.plan is None:
            pairs = zip(found, self._distances, strict=True)
            return [(n, unit * distance) for (n, unit), distance in pairs][::-1]
        axes, strides, size = self.plan.axes, self.plan.strides, self.bytes
        rows = [(found[axis][0], found[axis][1] * strides[axis] * size) for axis in reversed(axes)]
        if self.plan.panel is None:
            return rows
        width = self.plan.panel[1]
        panels = ceil(rows[0][0] / width)
        return [(min(rows[0][0], width), size), *rows[1:], (panels, self.plan.rest * width * size)]

    def distance(self, d: int) -> int:
        """Return how many bytes a step along a dimension goes."""
        if self.plan is None:
            pairs = zip(self.access.steps, self._distances, strict=True)
            return abs(sum(step[d] * far for step, far in pairs))
        pairs = zip(self.access.steps, self.plan.strides, strict=True)
        return abs(sum(step[d] * far for step, far in pairs)) * self.bytes

    @cached_property
    def _distances(self) -> list[int]:
        """How far apart neighbours along each axis are."""
        shape, found = self.access.buffer.shape, [self.bytes]
        for extent in reversed(shape[1:]):
            found.append(found[-1] * (known(extent) or UNKNOWN))
        return found[::-1] if shape else []


@dataclass(frozen=True)
class Pieces:
    """Memory that is touched: pieces of ``bytes``, as many as ``apart`` says, at those distances."""

    bytes: int
    apart: tuple[tuple[int, int], ...]
    aligned: bool


def _positions(pieces: Pieces, period: int) -> int:
    """Return at how many places pieces begin, of those at which lines lie in different sets."""
    apart = prod(min(n, period // gcd(distance, period)) for n, distance in pieces.apart)
    return min(apart, period // gcd(period, *(distance for _, distance in pieces.apart)))


_Touched = tuple[str, Access | None, CopyPlan | None, bool]
"""An array by its name, how it is accessed, the copy of it, whether it is written."""


def _of_one_form(every: Sequence[_Touched]) -> list[Traffic]:
    """Return each array and access once, those of one form together."""
    single = {(n, a.steps, plan): (a, plan, written) for n, a, plan, written in every if a is not None}
    by_form: dict[object, list[Traffic]] = {}
    for access, plan, written in single.values():
        form = access.steps, access.buffer.shape, access.buffer.type, plan, written
        by_form.setdefault(form, []).append(Traffic(access, plan, written, 1))
    return [replace(same[0], count=len(same)) for same in by_form.values()]


_Measure = Callable[[Traffic, Sizes], float]


@dataclass(frozen=True)
class MemoryModel:
    """The traffic of one scheduled md_hom with a cache of any size."""

    sizes: LoopSizes
    costs: MemoryCosts

    def _box(self, item: Traffic, sizes: Sizes) -> list[int]:
        """Return the box of elements that some points touch of an array."""
        return [1 + sum(step * (sizes[d] - 1) for d, step in axis) for axis in item.axes]

    def _room(self, item: Traffic, sizes: Sizes, capacity: float, period: int) -> float:
        """Return the bytes of cache that some points need of an array.

        More than they touch, where rows lie at multiples of a power of two and more of them meet in a
        set than it holds; ``period``: the distance at which lines meet in a set, 0 where they are spread.
        """
        pieces, footprint = self._known(item, sizes)
        if not period or not pieces.apart:
            return footprint
        used = min(1.0, _positions(pieces, period) * max(self.costs.line_bytes, pieces.bytes) / period)
        return footprint / used if footprint / used > capacity else footprint

    def footprint(self, item: Traffic, sizes: Sizes) -> float:
        """Return the bytes, in whole cache lines, that some points touch of an array."""
        return self._known(item, sizes)[1]

    def elements(self, item: Traffic, sizes: Sizes) -> float:
        """Return the bytes of the elements that some points touch of an array, nothing between them."""
        moving = prod(sizes[d] for d in {d for axis in item.axes for d, _ in axis})
        return float(min(moving, prod(places(axis, sizes)[0] for axis in item.axes)) * item.bytes)

    def pieces(self, item: Traffic, sizes: Sizes) -> Pieces:
        """Return the pieces of memory that some points touch of an array or of its copy."""
        return self._known(item, sizes)[0]

    def _known(self, item: Traffic, sizes: Sizes) -> tuple[Pieces, float]:
        """Return the pieces that some points touch, and the bytes of all lines of them."""
        if sizes not in item.known:
            pieces = self._touched(item, sizes)
            whole = pieces.bytes if pieces.aligned else pieces.bytes + self.costs.misaligned_bytes
            lines = prod([n for n, _ in pieces.apart]) * max(float(self.costs.line_bytes), whole)
            item.known[sizes] = pieces, lines
        return item.known[sizes]

    def _touched(self, item: Traffic, sizes: Sizes) -> Pieces:
        """Return the pieces of memory between which there are whole lines that nothing touches."""
        run, apart = item.bytes, list[tuple[int, int]]()
        for n, distance in item.rows(sizes):
            if n == 1:
                continue
            if not apart and run <= distance <= self.costs.line_bytes:
                run += distance * (n - 1)
            else:
                apart.append((n, distance))
        return Pieces(run, tuple(apart), aligned=item.plan is not None)

    @cached_property
    def arrays(self) -> list[Traffic]:
        """What the loops touch: each array and access once, those of one form together."""
        reads = self.sizes.reads
        plans = [self.sizes.plan(k) for k in range(len(reads.inputs))]
        key = "arrays", tuple([plan is None for plan in plans])
        if key not in reads.known:
            uncopied = [k for k, plan in enumerate(plans) if plan is None]
            outputs = zip((v.buffer for v in reads.hom.outputs), reads.outputs, strict=True)
            written = [(name, access, None, True) for name, access in outputs]
            reads.known[key] = _of_one_form([*self._read(uncopied), *written])
        read: list[Traffic] = reads.known[key]
        copied = [k for k, plan in enumerate(plans) if plan is not None]
        return [*read, *_of_one_form(self._read(copied))] if copied else read

    def _read(self, inputs: Sequence[int]) -> list[_Touched]:
        reads = self.sizes.reads
        return [(reads.hom.inputs[k].buffer, reads.inputs[k], self.sizes.plan(k), False) for k in inputs]

    def traffic(self, capacity: float, period: int = 0, *, short: float | None = None) -> float:
        """Return the bytes that come through from behind a cache of some size.

        ``period``: the distance at which lines meet in a set, 0 where they are spread; ``short``: how much
        longer a line takes of which less is wanted, far from others; None where what is behind is slower for
        all rows in pieces.
        """

        def load(item: Traffic, sizes: Sizes) -> float:
            slower = self._jumps(item) if short is None else short if self._is_short(item, sizes) else 1.0
            return self.footprint(item, sizes) * slower

        return self._loaded(capacity, period, load)

    def _is_short(self, item: Traffic, sizes: Sizes) -> bool:
        """Whether some points read pieces of lines that lie further apart than any prefetcher foresees."""
        pieces = self.pieces(item, sizes)
        return self._is_far(pieces) and pieces.bytes < self.costs.line_bytes and not item.written

    def _is_far(self, pieces: Pieces) -> bool:
        """Whether pieces lie further apart than any prefetcher foresees."""
        return min((far for _, far in pieces.apart), default=0) >= self.costs.foreseen_bytes

    def unforeseen(self, capacity: float, period: int) -> float:
        """Return the bytes that could come from behind a cache while reductions wait for their results.

        A register tile's results are touched once, behind its loop over the reduction, those that wait in
        memory at its start: where its rows are short, nothing foresees them.
        """
        if not self.sizes.facts.reduced:
            return 0.0

        def late(item: Traffic, sizes: Sizes) -> float:
            if item.written and not self.sizes.facts.waits:
                return self.footprint(item, sizes) * (self._jumps(item) - 1.0)
            together = self._tile if item.written else sizes
            return self.footprint(item, sizes) * self._unforeseen_share(item, together)

        return self._loaded(capacity, period, late)

    def pushed_out(self, ways: int, period: int) -> float:
        """Return the bytes of lines that leave a cache between the prefetcher and their use, and come again.

        A step reads so many rows at once whose lines meet in a set of ``ways``, at multiples of ``period``,
        that each pushes out what was fetched ahead for another one.
        """
        step, whole = self.sizes.insides[-1], self.sizes.extents
        crowded = [item for item in self.arrays if self._in_a_set(item, step, period) > ways]
        return sum(item.count * self.footprint(item, whole) for item in crowded)

    def _in_a_set(self, item: Traffic, sizes: Sizes, period: int) -> float:
        """Return how many pieces of an array lie in a set."""
        pieces = self.pieces(item, sizes)
        return prod(n for n, _ in pieces.apart) / _positions(pieces, period)

    @cached_property
    def _tile(self) -> Sizes:
        """The points of a register tile."""
        return tuple(map(self.sizes.tile, range(len(self.sizes.extents))))

    def _unforeseen_share(self, item: Traffic, sizes: Sizes) -> float:
        """Return how much longer rows in other pages take, whose beginnings nothing foresees.

        Of a copy these are the rows from which it is made.
        """
        pieces, costs = self.pieces(item.source, sizes), self.costs
        if not self._is_far(pieces):
            return 0.0
        return min(costs.largest_prefetch_factor - 1.0, costs.prefetch_bytes / pieces.bytes)

    def _loaded(self, capacity: float, period: int, load: _Measure) -> float:
        usable = self.costs.usable_share * capacity

        def need(item: Traffic, sizes: Sizes) -> float:
            return self._room(item, sizes, usable, period)

        return self.through(usable, need, load, self.costs.line_bytes)

    def _jumps(self, item: Traffic) -> float:
        """Return how much longer memory takes for rows that are walked in short pieces."""
        kept = [k for k, (d, _, _) in enumerate(self.sizes.loops) if d in self.sizes.facts.kept]
        steps = item.access.steps
        if not kept or not steps or item.plan is not None or self._is_turned(item):
            return 1.0
        along = steps[-1][self.sizes.loops[kept[-1]][0]] != 0
        inside = kept[-1] if along else kept[-1] + 1
        bytes_of_piece = self._box(item, self.sizes.insides[inside])[-1] * item.access.buffer.type.size
        bytes_of_piece *= self._rows_behind(item, inside, bytes_of_piece)
        return min(self.costs.largest_prefetch_factor, 1.0 + self.costs.prefetch_bytes / bytes_of_piece)

    def _is_turned(self, item: Traffic) -> bool:
        """Whether blocks are turned in registers: all rows of one are on their way at the same time."""
        return not item.written and turned_dimension(self.sizes.facts, item.access) is not None

    def _rows_behind(self, item: Traffic, inside: int, row: int) -> int:
        """Return how many rows follow each other in memory, each walked when the one before it is."""
        if not inside or prod(self._box(item, self.sizes.insides[inside])[:-1]) > 1:
            return 1
        d, trips, points = self.sizes.loops[inside - 1]
        step = item.distance(d) * points
        return int(trips) if 0 < step <= row + self.costs.line_bytes else 1

    def through(
        self, capacity: float, need: _Measure, load: _Measure, unit: int, pass_by: _Measure | None = None
    ) -> float:
        """Return what is loaded where the largest inner part stays whose needs fit.

        ``pass_by``: what is touched to load it; where that does not fit, no unit is there twice.
        """
        every = range(len(self.sizes.loops) + 1)
        depth = bisect_left(every, True, key=lambda k: self.total(need, self.sizes.insides[k]) <= capacity)
        stays, depth = depth < len(every), min(depth, len(self.sizes.loops))
        sizes = self.sizes.insides[depth]

        def part(item: Traffic) -> float:
            is_there = stays and (pass_by is None or pass_by(item, sizes) <= capacity)
            return self._part_of_unit(item, depth, sizes, unit) if is_there else 1.0

        loaded = (
            item.count * self._reloaded(item, depth) * load(item, sizes) * part(item) for item in self.arrays
        )
        return self.sizes.shares(sizes).some * sum(loaded)

    def _part_of_unit(self, item: Traffic, depth: int, sizes: Sizes, unit: int) -> float:
        """Return how much of a line or page counts where the next loop outside walks to what comes behind."""
        if not depth:
            return 1.0
        d, _, points = self.sizes.loops[depth - 1]
        further = item.distance(d) * points
        if not further:
            return 1.0
        exact = self.pieces(item, sizes).bytes
        misaligned = self.costs.misaligned_bytes if unit == self.costs.line_bytes else 0.0
        return min(1.0, max(exact, further) / max(float(unit), exact + misaligned))

    def total(self, need: _Measure, sizes: Sizes) -> float:
        """Return what all arrays need inside some loops."""
        return sum(item.count * need(item, sizes) for item in self.arrays)

    def _reloaded(self, item: Traffic, depth: int) -> float:
        """Return how often the part of an array inside some loops is loaded; written elements also leave."""
        times, reused = 1.0, True
        for d, trips, _ in reversed(self.sizes.loops[:depth]):
            uses = item.access.uses(d) if d not in self.sizes.facts.reduced or not item.written else False
            reused = reused and not uses
            times *= 1 if reused else trips
        through_caches = item.written and not self.sizes.facts.schedule.streaming
        return times * self.costs.write_factor if through_caches else times


@dataclass(frozen=True)
class CacheModel:
    """The cycles that the levels of memory behind a CPU's first cache take.

    ``caches``: bytes, from the innermost level outwards; ``ways``: lines of a set of each of them; both empty
    where the system does not say.
    """

    memory: MemoryModel
    costs: CpuCosts
    caches: tuple[int, ...]
    ways: tuple[int, ...] = ()

    def _pages(self, item: Traffic, sizes: Sizes) -> float:
        """Return the pages that some points touch of an array."""
        pieces = self.memory.pieces(item, sizes)
        inside, count = pieces.bytes, 1
        for n, distance in pieces.apart:
            if distance < self.costs.page_bytes:
                inside = max(inside, n * distance)
            else:
                count *= n
        return count * max(1.0, inside / self.costs.page_bytes)

    def _pages_of_source(self, item: Traffic, sizes: Sizes) -> float:
        """Return the pages from which a copy of what some points touch is made."""
        return self._pages(item.source, sizes)

    def _page_misses(self, pages: float) -> float:
        """How often a page is none of the last so many."""
        source = self._pages_of_source
        return self.memory.through(pages, self._pages, source, self.costs.page_bytes, source)

    @cached_property
    def page_cycles(self) -> float:
        """Cycles in which pages are turned to, and looked for where they are not known."""
        costs = self.costs
        in_cache = self._data <= self._levels[-1][0]
        miss = costs.page_miss_in_cache if in_cache else costs.page_miss_in_memory
        looked_up = self._page_misses(costs.pages_known) * costs.page_walk
        return self._page_misses(costs.pages_at_hand) * miss + looked_up

    @cached_property
    def _levels(self) -> list[tuple[int, float, int]]:
        """The bytes of each cache, the rate of what is behind it, the distance at which lines meet in a set.

        Where neighbouring pages lie in memory nobody knows: beyond a page lines meet by chance.
        """
        caches = self.caches or self.costs.default_caches
        rates = self.costs.bytes_per_cycle[: len(caches) - 1] + self.costs.bytes_per_cycle[-1:]
        sizes = zip(caches, self._ways, strict=False)
        periods = [min(size // way, self.costs.page_bytes) for size, way in sizes]
        return list(zip(caches, rates, (*periods, *(0 for _ in caches)), strict=False))

    @cached_property
    def _data(self) -> float:
        return self.memory.total(self.memory.footprint, self.memory.sizes.extents)

    def _leaves(self, size: int) -> bool:
        return self._data > self.memory.costs.usable_share * size

    @property
    def least_cycles(self) -> float:
        """Cycles of the slowest level where each element comes through it once; whatever the schedule."""
        extents = self.memory.sizes.extents
        data = self.memory.total(self.memory.elements, extents)
        usable = self.memory.costs.usable_share
        return max([data / rate for size, rate, _ in self._levels if data > usable * size], default=0.0)

    @cached_property
    def waits(self) -> float:
        """Cycles in which nothing is done but wait for results, and for lines that had been there."""
        results = sum(
            self.memory.unforeseen(size, period) / rate
            for size, rate, period in self._levels[1:2]
            if self._leaves(size)
        )
        return results + sum(
            self.memory.pushed_out(ways, period) / rate
            for ways, (size, rate, period) in zip(self._ways[:1], self._levels, strict=False)
            if self._leaves(size)
        )

    @property
    def _ways(self) -> tuple[int, ...]:
        return (self.ways or self.costs.ways)[: len(self.costs.ways)]

    @cached_property
    def cycles(self) -> list[float]:
        """Cycles that each level takes, summed over cores, and page misses; data that fit are there."""
        reduces = bool(self.memory.sizes.facts.reduced)
        near = [
            self.costs.short_piece_factor,
            *(1.0 if reduces and p else None for _, _, p in self._levels[1:]),
        ]
        cycles = [
            self.memory.traffic(size, period, short=short) / rate if self._leaves(size) else 0.0
            for short, (size, rate, period) in zip(near, self._levels, strict=True)
        ]
        return [*cycles, self.page_cycles]
