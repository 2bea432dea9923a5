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

from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Access, known
from polyloom.mdh.schedule.copy_plan import CopyPlan
from polyloom.mdh.schedule.loop_sizes import UNKNOWN, LoopSizes
from polyloom.mdh.schedule.schedules import Sizes

CACHE_BYTES_PER_CYCLE = (28.0, 14.0, 5.0)
"""From the second level, the third, and memory, per core."""

WAYS = 12, 16
"""Lines that share a set, of the first two levels; later levels spread their lines."""

PAGE, PAGES, PAGE_MISS = 4096, 72, (8.0, 20.0)
"""Bytes of a page, pages that are followed at a time, cycles to turn to another: in a cache, in memory."""


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

    @property
    def bytes(self) -> int:
        """The size of an element."""
        return self.access.buffer.type.size if self.plan is None else self.plan.element.size

    def rows(self, box: Sequence[int]) -> list[tuple[int, int]]:
        """Return how many elements a box has along each axis, and their distance, the nearest ones first."""
        if self.plan is None:
            return list(zip(reversed(box), reversed(self._distances), strict=True))
        axes, strides, size = self.plan.axes, self.plan.strides, self.bytes
        rows = [(box[axis], strides[axis] * size) for axis in reversed(axes)]
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

    @property
    def lines(self) -> float:
        """The bytes of all lines that are touched."""
        whole = self.bytes if self.aligned else self.bytes + 32.0
        return prod(n for n, _ in self.apart) * max(64.0, whole)


_Measure = Callable[[Traffic, Sizes], float]


@dataclass(frozen=True)
class MemoryModel:
    """The traffic of one scheduled md_hom with each level."""

    sizes: LoopSizes
    device: DeviceModel

    def _box(self, item: Traffic, sizes: Sizes) -> list[int]:
        """Return the box of elements that some points touch of an array."""
        return [1 + sum(step * (sizes[d] - 1) for d, step in axis) for axis in item.axes]

    @cached_property
    def _memo(self) -> dict[tuple[Traffic, Sizes], Pieces]:
        return {}

    def _room(self, item: Traffic, sizes: Sizes, capacity: float, period: int) -> float:
        """Return the bytes of cache that some points need of an array.

        More than they touch, where rows lie at multiples of a power of two and more of them meet in a
        set than it holds; ``period``: the distance at which lines meet in a set, 0 where they are spread.
        """
        pieces = self._pieces(item, sizes)
        footprint = pieces.lines
        if not period or not pieces.apart:
            return footprint
        positions = prod(min(n, period // gcd(distance, period)) for n, distance in pieces.apart)
        used = min(1.0, positions * max(64.0, pieces.bytes) / period)
        return footprint / used if footprint / used > capacity else footprint

    def _footprint(self, item: Traffic, sizes: Sizes) -> float:
        """Return the bytes, in whole cache lines, that some points touch of an array."""
        return self._pieces(item, sizes).lines

    def _pages(self, item: Traffic, sizes: Sizes) -> float:
        """Return the pages that some points touch of an array."""
        pieces = self._pieces(item, sizes)
        inside, count = pieces.bytes, 1
        for n, distance in pieces.apart:
            if distance < PAGE:
                inside = max(inside, n * distance)
            else:
                count *= n
        return count * max(1.0, inside / PAGE)

    def _pieces(self, item: Traffic, sizes: Sizes) -> Pieces:
        """Return the pieces of memory that some points touch of an array or of its copy."""
        key = item, sizes
        if key not in self._memo:
            self._memo[key] = self._touched(item, sizes)
        return self._memo[key]

    def _touched(self, item: Traffic, sizes: Sizes) -> Pieces:
        run, apart = item.bytes, list[tuple[int, int]]()
        for n, distance in item.rows(self._box(item, sizes)):
            if n == 1:
                continue
            if not apart and distance == run:
                run *= n
            else:
                apart.append((n, distance))
        return Pieces(run, tuple(apart), aligned=item.plan is not None)

    @cached_property
    def arrays(self) -> list[Traffic]:
        """What the loops touch: each array and access once, those of one form together."""
        hom = self.sizes.facts.hom
        reads = [
            (hom.inputs[k].buffer, access, self.sizes.plan(k), False)
            for k, access in enumerate(self.sizes.reads.inputs)
        ]
        outputs = zip((v.buffer for v in hom.outputs), self.sizes.reads.outputs, strict=True)
        every = [*reads, *((name, access, None, True) for name, access in outputs)]
        single = {(n, a.steps): (a, plan, written) for n, a, plan, written in every if a is not None}
        alike: dict[object, list[Traffic]] = {}
        for access, plan, written in single.values():
            form = access.steps, access.buffer.shape, access.buffer.type, plan, written
            alike.setdefault(form, []).append(Traffic(access, plan, written, 1))
        return [replace(same[0], count=len(same)) for same in alike.values()]

    def traffic(self, capacity: float, ways: int = 0) -> float:
        """Return the bytes that come through from behind a cache of some size."""
        period = int(capacity) // ways if ways else 0

        def need(item: Traffic, sizes: Sizes) -> float:
            return self._room(item, sizes, 0.8 * capacity, period)

        def load(item: Traffic, sizes: Sizes) -> float:
            return self._footprint(item, sizes) * (1.0 if ways else self._jumps(item))

        return self._through(0.8 * capacity, need, load)

    def _jumps(self, item: Traffic) -> float:
        """Return how much longer memory takes for rows that are walked in short pieces."""
        kept = [k for k, (d, _, _) in enumerate(self.sizes.loops) if d in self.sizes.facts.kept]
        steps = item.access.steps
        if not kept or not steps or item.plan is not None:
            return 1.0
        along = steps[-1][self.sizes.loops[kept[-1]][0]] != 0
        piece = self._box(item, self.sizes.insides[kept[-1] if along else kept[-1] + 1])[-1]
        return min(3.0, 1.0 + 512 / (piece * item.access.buffer.type.size))

    @cached_property
    def page_misses(self) -> float:
        """How often a page is not at hand."""
        return self._through(PAGES, self._pages, self._pages, PAGE)

    def _through(self, capacity: float, need: _Measure, load: _Measure, unit: int = 64) -> float:
        """Return what is loaded where the largest inner part stays whose needs fit."""
        every = range(len(self.sizes.loops) + 1)
        depth = bisect_left(every, True, key=lambda k: self._total(need, self.sizes.insides[k]) <= capacity)
        stays, depth = depth < len(every), min(depth, len(self.sizes.loops))
        sizes = self.sizes.insides[depth]

        def part(item: Traffic) -> float:
            return self._part_of_unit(item, depth, sizes, unit) if stays else 1.0

        return sum(
            item.count * self._reloaded(item, depth) * load(item, sizes) * part(item) for item in self.arrays
        )

    def _part_of_unit(self, item: Traffic, depth: int, sizes: Sizes, unit: int) -> float:
        """Return how much of a line or page counts where the next loop outside walks to what comes behind."""
        if not depth:
            return 1.0
        d, _, points = self.sizes.loops[depth - 1]
        further = item.distance(d) * points
        if not further:
            return 1.0
        exact = self._pieces(item, sizes).bytes
        return min(1.0, max(exact, further) / max(float(unit), exact + (32.0 if unit == 64 else 0.0)))

    def _total(self, need: _Measure, sizes: Sizes) -> float:
        return sum(item.count * need(item, sizes) for item in self.arrays)

    def _reloaded(self, item: Traffic, depth: int) -> float:
        """Return how often the part of an array inside some loops is loaded."""
        times, reused = 1.0, True
        for d, trips, _ in reversed(self.sizes.loops[:depth]):
            uses = item.access.uses(d) if d not in self.sizes.facts.reduced or not item.written else False
            reused = reused and not uses
            times *= 1 if reused else trips
        factor = 1.0 if not item.written else 1.0 if self.sizes.facts.schedule.streaming else 2.0
        return times * factor

    @cached_property
    def cycles(self) -> list[float]:
        """Cycles that the levels behind the first cache take, summed over cores; data that fit are there."""
        caches = list(self.device.caches) or [32 << 10, 1 << 20, 8 << 20]
        rates = CACHE_BYTES_PER_CYCLE[: len(caches) - 1] + CACHE_BYTES_PER_CYCLE[2:]
        ways = (*WAYS, *(0 for _ in caches))
        levels = zip(caches, rates, ways, strict=False)
        data = self._total(self._footprint, self.sizes.extents)
        cycles = [self.traffic(size, way) / rate if data > 0.8 * size else 0.0 for size, rate, way in levels]
        in_cache = data <= caches[-1]
        return [*cycles, self.page_misses * PAGE_MISS[0 if in_cache else 1]]
