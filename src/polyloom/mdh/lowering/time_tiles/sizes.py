"""How wide and high trapezoids are, and whether they are worth it: seconds of a host loop with and without.

Without tiles each sweep streams its arrays from where all of them fit; with tiles, from where one trapezoid's
rows fit, and all arrays once for a block of steps. The rates are the cost model's (``mdh/device/models``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from math import ceil, prod

from polyloom.ir.expressions import Constant, Expression, ParameterValue, Read, walk
from polyloom.ir.expressions import Iterator as IteratorValue
from polyloom.ir.host import Buffer, MdHom, View, expressions_of
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.tiles.groups import LEAST_SHARED
from polyloom.mdh.lowering.time_tiles.sweeps import TimeLoop
from polyloom.polyhedra.loops.tree import Number
from polyloom.polyhedra.time_tiles import Side, highest

LARGEST_SHARE = 0.8
"""Of the time without tiles that tiles may be expected to take; the expectation is no better than that."""
MOST_AXES = 2
"""Axes that are cut; each doubles the phases, and what is read again at their borders."""
CYCLES_OF_ROW, CYCLES_OF_POINT, CYCLES_OF_PART = 16.0, 5.0, 100.0
"""What a row of a trapezoid costs at an end besides its points, what each point does that is in no whole
vector, and what a sweep in it does. Estimates; of heat-2d of 4000, on a Zen 4, rows cut to 192 points on
average took 50 to 90 cycles each more than whole ones, which is counted as another end."""
CYCLES_OF_SHARED_LINE = 250.0
"""A line that two threads store into in turns, where rows are cut between them. Estimate: heat-2d, wave-2d
and fdtd-2d of 250 to 300 rows in halves took 180 to 370 cycles a row longer than the same in blocks of rows,
on two cores of a Zen 4."""
LIKELY_SHARE = 0.5
"""Of the last cache, which others use too: what trapezoids and whole arrays find of it. Estimates: of
trapezoids in one of 32 MB, at their widest, those of 6 MB ran as fast as those of 4, those of 12 and 24 took
up to 1.5 and 3 times as long; sweeps over 16 MB in all ran at its rate, over 24 and 33 MB as if a fifth and a
third came from memory, on both threads of a Zen 4 whose other cores may have been idle."""
LEAST_WIDTH = 4
WIDTHS = tuple(sorted({*(1 << k for k in range(2, 21)), *(3 << k for k in range(1, 19))}))


@dataclass(frozen=True)
class Shape:
    """The widths along some axes, by number, the steps of a block, and the seconds of all steps."""

    widths: Mapping[int, int]
    height: int
    seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TimeCost:
    """Seconds of a time loop on a processor.

    ``spans``: along each axis the first row and how many there are. ``sides_of``: the sides along an axis,
    None where it may not be cut; that is asked only where something may be gained.
    """

    loop: TimeLoop
    buffers: Mapping[str, Buffer]
    device: DeviceModel
    spans: Sequence[tuple[int, int]]
    sides_of: Callable[[int], tuple[Side, Side] | None]

    def best(self) -> Shape | None:
        """Return the shape that takes least; None where none is much better than no tiles."""
        if not self._may_gain():
            return None
        shapes = (s for axes in self.choices() for s in self._shapes(axes))
        found = min(shapes, key=lambda shape: shape.seconds, default=None)
        return found if found is not None and found.seconds < LARGEST_SHARE * self.untiled else None

    def _may_gain(self) -> bool:
        """Whether the loop touches more than the first cache of each thread holds, or leaves threads idle."""
        own = self._caches[:-1] or self._caches
        if self._footprint(()) / self.threads > min(own):
            return True
        least = self.untiled / self.threads + 2 * self.costs.launch_seconds
        return any(map(self._is_alone, self.loop.homs)) and least < LARGEST_SHARE * self.untiled

    def _is_alone(self, hom: MdHom) -> bool:
        """Whether one thread runs a sweep: it is too small for several."""
        return self._points(hom) < LEAST_SHARED

    @cached_property
    def sides(self) -> Mapping[int, tuple[Side, Side]]:
        """The sides along each axis that may be cut."""
        found = ((axis, self.sides_of(axis)) for axis in range(len(self.spans)))
        return {axis: lie for axis, lie in found if lie is not None}

    def choices(self) -> Iterator[tuple[int, ...]]:
        """Yield the axes that may be cut, one or several."""
        numbers = sorted(self.sides)
        return chain.from_iterable(combinations(numbers, n) for n in range(1, MOST_AXES + 1))

    def _shapes(self, axes: tuple[int, ...]) -> Iterator[Shape]:
        for widths in product(*(self._widths(axis) for axis in axes)):
            cut = tuple(zip(axes, widths, strict=True))
            most = min(self.highest(axis, width) for axis, width in cut)
            for height in dict.fromkeys((most, most * 3 // 4, most // 2, most // 4)):
                if height > 1:
                    yield Shape(dict(cut), height, self.tiled(cut, height))

    def highest(self, axis: int, width: int) -> int:
        """Return the most steps that there are, and that a width has room for."""
        return min(highest(*self.sides[axis], width), self.loop.steps.count)

    def _widths(self, axis: int) -> list[int]:
        rows, least = self.spans[axis][1], LEAST_WIDTH
        if self._is_innermost(axis):
            least = 8 * self.lanes
        even = [ceil(rows / (self.threads * k)) for k in (1, 2, 4)]
        return [w for w in dict.fromkeys((*WIDTHS, *even)) if least <= w <= max(least, rows // self.threads)]

    def _rows_of(self, axis: int) -> int:
        """Return how many rows of the arrays a row along an axis is."""
        return 2 if axis in self.loop.folded else 1

    def _is_innermost(self, axis: int) -> bool:
        return self.loop.from_end[axis] == 0

    @cached_property
    def costs(self) -> CpuCosts:
        """What kernels cost on the processor."""
        found = self.device.costs.kernels
        assert isinstance(found, CpuCosts)
        return found

    @property
    def threads(self) -> int:
        """How many threads share the loops."""
        return max(1, self.device.compute_units)

    @cached_property
    def lanes(self) -> int:
        """Elements of a vector, of the largest type."""
        return max(1, self.device.vector_bytes // max(b.type.size for b in self._touched))

    @cached_property
    def _touched(self) -> list[Buffer]:
        names = {view.buffer for hom in self.loop.homs for view in (*hom.inputs, *hom.outputs)}
        return [self.buffers[name] for name in sorted(names)]

    @cached_property
    def _hertz(self) -> float:
        return max(self.device.clock_mhz, self.costs.least_clock_mhz) * 1e6

    @cached_property
    def _caches(self) -> list[float]:
        """Bytes of each cache for one thread: threads share the last one."""
        caches = [
            self.device.costs.memory.usable_share * size
            for size in self.device.caches or self.costs.default_caches
        ]
        return [*caches[:-1], caches[-1] / self.threads]

    def _footprint(self, widths: Sequence[tuple[int, int]]) -> float:
        """Return the bytes of the arrays within so many rows along axes, counted from the last axis."""
        total = 0.0
        for buffer in self._touched:
            extents = list(reversed(buffer.extents))
            for axis, width in widths:
                if axis < len(extents):
                    extents[axis] = min(extents[axis], width)
            total += prod(extents) * buffer.type.size
        return total

    def _cycles(self, compute: float, moved: float, held: float) -> float:
        """Return the cycles of a thread that computes, and moves bytes from the cache that holds so much.

        What its share of the last cache cannot hold comes from memory, and no more than that:
        it keeps what it has where more streams by.
        """
        *rates, memory = (
            *self.costs.bytes_per_cycle[: len(self._caches) - 1],
            self.costs.bytes_per_cycle[-1],
        )
        levels, own = [compute], LIKELY_SHARE * self._caches[-1]
        for rate, cache in zip(rates, self._caches[:-1], strict=True):
            levels += [moved / rate] if held > cache else []
        if held > own:
            levels.append(moved / memory * (1 - own / held))
        return max(levels) + self.costs.unhidden_share * (sum(levels) - max(levels))

    def _points(self, hom: MdHom) -> int:
        return prod(_numbers(hom))

    def _compute(self, hom: MdHom) -> float:
        """Return the cycles of all points of an md_hom in one thread."""
        operations = sum(_operations(e) for e in expressions_of(hom))
        accesses = len(hom.inputs) + len(hom.outputs)
        each = max(operations / self.costs.fma_per_cycle, accesses / self.costs.loads_per_cycle)
        return self._points(hom) * each / self.lanes

    def _moved(self, hom: MdHom) -> float:
        """Return the bytes that all points of an md_hom move, each element once; what is stored twice."""
        stored = set(map(_plane, hom.outputs))
        planes = stored | set(map(_plane, hom.inputs))
        sizes = {plane: self.buffers[plane[0]].type.size for plane in planes}
        return self._points(hom) * sum(size * (2 if at in stored else 1) for at, size in sizes.items())

    @cached_property
    def untiled(self) -> float:
        """Seconds of all steps, one sweep after another: threads share those that are large enough."""
        whole, each = self._footprint(()), 0.0
        for hom in self.loop.homs:
            threads = 1 if self._is_alone(hom) else self.threads
            held = whole / threads
            cycles = self._cycles(self._compute(hom), self._moved(hom), held)
            each += cycles / threads / self._hertz + (self.costs.launch_seconds if threads > 1 else 0.0)
        return self.loop.steps.count * each

    def tiled(self, pairs: Sequence[tuple[int, int]], height: int) -> float:
        """Return the seconds of all steps in trapezoids; ``pairs``: axes and widths."""
        count, phases = self.loop.steps.count, 2 ** len(pairs)
        blocks = ceil(count / height)
        tiles = prod(ceil(self.spans[axis][1] / width) for axis, width in pairs)
        held = self._footprint(
            [(self.loop.from_end[axis], self._rows_of(axis) * width) for axis, width in pairs]
        )
        per_step = 0.0
        for hom in self.loop.homs:
            parts = CYCLES_OF_PART * tiles * phases + self._row_cycles(pairs) * self._rows(hom, pairs)
            parts += self._shared_lines(hom, pairs)
            per_step += self._cycles(self._compute(hom) + parts, self._moved(hom), held)
        whole = self._footprint(())
        again = prod(1 + self._overlap(axis, height) / width for axis, width in pairs)
        of_all = whole / self.threads
        streamed = self._cycles(0.0, 2 * whole * again, of_all) if held < whole else 0.0
        cycles = (count * per_step + blocks * streamed) * self._longest(pairs, height)
        return float(cycles / self._hertz + blocks * phases * self.costs.launch_seconds)

    def _longest(self, pairs: Sequence[tuple[int, int]], height: int) -> float:
        """Return the part of all points that the thread has that has most.

        Along one axis the trapezoids of the second phase are one more: those at the ends are halves.
        """
        counts = [ceil(self.spans[axis][1] / width) for axis, width in pairs]
        tiles = prod(counts)
        most = ceil(tiles / self.threads)
        if len(pairs) > 1 or self.threads == 1:
            return most / tiles
        ((axis, width),) = pairs
        second = min(1.0, self._overlap(axis, height) / 2 / width)
        return ((1 - second) * most + second * (tiles / self.threads + 0.5)) / tiles

    def _overlap(self, axis: int, height: int) -> int:
        lower, upper = self.sides[axis]
        return (lower.rise + upper.rise) * height

    def _rows(self, hom: MdHom, pairs: Sequence[tuple[int, int]]) -> float:
        """Return how many rows of memory there are in the parts of an md_hom: half of a width in each."""
        inner = _numbers(hom)[-1] if hom.extents else 1
        cut = next((width / 2 for axis, width in pairs if self._is_innermost(axis)), inner)
        return self._points(hom) / max(1, min(inner, cut))

    def _shared_lines(self, hom: MdHom, pairs: Sequence[tuple[int, int]]) -> float:
        """Return the cycles that all threads wait for lines of rows cut between them.

        They meet there in as many of the tiles along a row as there are threads; a row that is long hides it.
        """
        inner = next((axis for axis, _ in pairs if self._is_innermost(axis)), None)
        if inner is None or self.threads == 1:
            return 0.0
        width = dict(pairs)[inner]
        hidden = self._compute(hom) / self._points(hom) * width
        share = min(1.0, self.threads / ceil(self.spans[inner][1] / width))
        return self.threads * share * max(0.0, CYCLES_OF_SHARED_LINE - hidden) * self._rows(hom, ())

    def _row_cycles(self, pairs: Sequence[tuple[int, int]]) -> float:
        """Return the cycles of a row besides its whole vectors: points before and behind them, one by one.

        Half a vector remains behind them on average, and half a one before them where rows are cut.
        """
        is_cut = any(self._is_innermost(axis) for axis, _ in pairs)
        return (2 if is_cut else 1) * (CYCLES_OF_ROW + CYCLES_OF_POINT * (self.lanes - 1) / 2)


def _plane(view: View) -> tuple[str, tuple[object, ...]]:
    """Return which part of a buffer all points of a view are in: its subscripts that no iterator moves."""
    return view.buffer, tuple(None if any(i.coefficients) else i.offset for i in view.affine)


def _numbers(hom: MdHom) -> list[int]:
    return [extent.value for extent in hom.extents if isinstance(extent, Number)]


def _operations(expression: Expression) -> int:
    leaves = Read | Constant | ParameterValue | IteratorValue
    return sum(not isinstance(part, leaves) for part in walk(expression))
