"""How long a schedule is expected to take, without running it: to rank candidates, not to predict seconds.

On CPUs: the instructions of a register tile (operations, loads, latency, spills), times their number, against
what each cache level must deliver. A loop nest's traffic through a level is what the largest inner part that
fits into it touches, times how often that part changes. GPUs: occupancy, coalescing, reuse in registers.

Source: the usual model of tiled loop nests; constants measured (docs/schedules.md). Not in the papers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from math import ceil, gcd, prod

import numpy as np

from polyloom.ir.expressions import EXACT_UNARY, Binary, BinaryOp, Expression, Read, Unary, children, walk
from polyloom.mdh.access import Access, Buffers, access_of, inner_reads, known
from polyloom.mdh.copies import CopyPlan, copy_plan, is_turned
from polyloom.mdh.devices import DeviceKind, DeviceModel
from polyloom.mdh.emit_points import risky_reads
from polyloom.mdh.legality import written_points
from polyloom.mdh.schedule import Sizes
from polyloom.mdh.tile_facts import TileFacts

UNKNOWN = 256
"""What an extent that is known only at launch is taken for."""

FMA_PER_CYCLE, LOADS_PER_CYCLE, LATENCY = 2.0, 2.0, 4.0
CACHE_BYTES_PER_CYCLE = (28.0, 14.0, 5.0)
"""From the second level, the third, and memory, per core."""

WAYS = 12, 16
"""Lines that share a set, of the first two levels; later levels spread their lines."""

PAGE, PAGES, PAGE_MISS = 4096, 72, (8.0, 20.0)
"""Bytes of a page, pages that are followed at a time, cycles to turn to another: in a cache, in memory."""

ACROSS_LINES = 4.0
"""Loads that a vector across two lines stands for, in tiles of several vectors: measured, not explained."""

LINE = 2e-4
"""What part of its time a kernel loses per line: of equals the shorter one, which also builds faster."""

WAITING_AT_END = 0.12
"""What part of a group's time units wait for the last one."""

LAUNCH, GROUP, SECOND_KERNEL = 2e-6, 1.5e-7, 1e-5
"""Seconds of a launch, of a work-group, of the kernel that combines parts."""


def predicted_seconds(facts: TileFacts, buffers: Buffers, device: DeviceModel) -> float:
    """Return the expected time of a valid schedule."""
    model = _Model(facts, buffers, device)
    return model.on_gpu() if device.kind is DeviceKind.GPU else model.on_cpu()


@dataclass(frozen=True, eq=False)
class _Traffic:
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
class _Pieces:
    """Memory that is touched: pieces of ``bytes``, as many as ``apart`` says, at those distances."""

    bytes: int
    apart: tuple[tuple[int, int], ...]
    aligned: bool

    @property
    def lines(self) -> float:
        """The bytes of all lines that are touched."""
        whole = self.bytes if self.aligned else self.bytes + 32.0
        return prod(n for n, _ in self.apart) * max(64.0, whole)


_Measure = Callable[[_Traffic, Sizes], float]


@dataclass(frozen=True)
class _Model:
    facts: TileFacts
    buffers: Buffers
    device: DeviceModel

    # Sizes

    @cached_property
    def extents(self) -> tuple[int, ...]:
        found = (self.facts.extent(d) for d in range(len(self.facts.hom.extents)))
        return tuple(UNKNOWN if n is None else max(n, 1) for n in found)

    def groups(self, d: int) -> int:
        size = self.facts.schedule.group[d]
        return ceil(self.extents[d] / size) if size else 1

    def covered(self, d: int) -> int:
        size = self.facts.schedule.group[d]
        return min(self.extents[d], size) if size else self.extents[d]

    def length(self, d: int) -> int:
        return (
            min(self.facts.schedule.local[d], self.covered(d)) if self.facts.is_tiled(d) else self.covered(d)
        )

    def tile(self, d: int) -> int:
        return min(self.facts.tile(d), self.length(d))

    @cached_property
    def element(self) -> int:
        return max(term.type.size for term in self.facts.hom.terms)

    @cached_property
    def registers_per_value(self) -> int:
        """How many registers a vector takes."""
        return max(1, ceil(self.facts.schedule.width * self.element / self.device.vector_bytes))

    @cached_property
    def inner(self) -> list[tuple[int, Access | None]]:
        """The accesses of every point; the others are of the results."""
        reads = inner_reads(self.facts.hom)
        return [(k, access) for k, access in self.accesses if k in reads]

    @cached_property
    def accesses(self) -> list[tuple[int, Access | None]]:
        hom = self.facts.hom
        found = [access_of(view, self.buffers, len(hom.extents)) for view in hom.inputs]
        risky = risky_reads(hom, self.buffers)
        return [(k, None if k in risky else access) for k, access in enumerate(found)]

    def plan(self, k: int) -> CopyPlan | None:
        return copy_plan(self.facts, k, self.buffers)

    # One step of the innermost loop

    @cached_property
    def points(self) -> int:
        """Scalar function evaluations, vectors counted once, of a step."""
        return prod(self._private(d) for d in range(len(self.extents)))

    def _private(self, d: int) -> int:
        return max(1, min(self.facts.schedule.private[d], ceil(self.length(d) / self.facts.width(d))))

    @cached_property
    def totals(self) -> int:
        """Values that a register tile keeps."""
        return prod(self._private(d) for d in self.facts.kept) * len(self.facts.hom.outputs)

    @cached_property
    def operations(self) -> float:
        """Instructions of the scalar function and the combination."""
        hom = self.facts.hom
        work = sum(_operations(term) for term in hom.terms)
        if self.facts.combiner is None:
            return max(work, 0.5)
        combine = sum(_operations(result) for result in self.facts.combiner.results)
        if len(hom.terms) == 1 and _is_product(hom.terms[0]) and _is_sum(self.facts.combiner.results[0]):
            return 1.0
        return work + max(combine, 1.0)

    def distinct(self, access: Access) -> int:
        """How many different elements, vectors counted once, a step reads."""
        count = 1
        done: set[int] = set()
        for steps in access.steps:
            dims = [d for d, step in enumerate(steps) if step and d not in done]
            done |= set(dims)
            if len(dims) == 1:
                count *= self._private(dims[0])
            elif dims:
                count *= self._different(steps, dims)
        return count

    def _different(self, steps: Sequence[int], dims: Sequence[int]) -> int:
        width = self.facts.width
        ranges = [[k * steps[d] * width(d) for k in range(self._private(d))] for d in dims]
        return len({sum(numbers) for numbers in product(*ranges)})

    def _load_cost(self, k: int, access: Access | None) -> float:
        """Return the load instructions of a step."""
        vector, width = self.facts.schedule.vector, self.facts.schedule.width
        if access is None:
            return 3.0 * self.points * width
        if self._is_constant(access):
            return self.points * self._constants_in_memory
        count = self.distinct(access)
        if vector is None or not access.uses(vector):
            return float(count)
        plan = self.plan(k)
        unit = self._copy_is_unit(plan, vector) if plan is not None else access.is_unit(vector)
        aligned = sum(1 for step in access.steps[-1] if step) == 1
        across = 2.0 if self._private(vector) == 1 else ACROSS_LINES  # a vector that lies in two lines
        return (
            count * self.registers_per_value * (1.1 if aligned else across) if unit else 2.5 * count * width
        )

    @cached_property
    def _registers(self) -> int:
        return 32 if self.device.vector_bytes >= 64 else 16

    @cached_property
    def _needed(self) -> int:
        """Registers that a step needs, values that never change not counted."""
        totals = self.totals if self.facts.combiner is not None else 0
        return (totals + self.live) * self.registers_per_value

    @cached_property
    def _constants_in_memory(self) -> float:
        """Which part of the values that never change does not stay in registers."""
        count = sum(self.distinct(a) for _, a in self.inner if a is not None and self._is_constant(a))
        room = max(0, self._registers - 2 - self._needed)
        return max(0.0, 1.0 - room / max(count, 1))

    def _copy_is_unit(self, plan: CopyPlan, vector: int) -> bool:
        return sum(s[vector] * x for s, x in zip(plan.access.steps, plan.strides, strict=True)) == 1

    def _is_constant(self, access: Access | None) -> bool:
        """Whether a value is loaded once for the whole kernel."""
        if access is None or self.facts.hom.guard is not None:
            return False
        return all(not access.uses(d) or self._unrolled(d) for d in range(len(self.extents)))

    def _unrolled(self, d: int) -> bool:
        return d in self.facts.reduced and self._private(d) * self.facts.width(d) >= self.extents[d]

    @cached_property
    def step_cycles(self) -> float:
        """Cycles of one step of the innermost loop, from the first cache."""
        loads = sum(self._load_cost(k, access) for k, access in self.inner)
        regs = self.registers_per_value
        compute = self.points * self.operations * regs / FMA_PER_CYCLE
        latency = LATENCY * self.points * len(self.facts.hom.outputs) / max(self.totals, 1)
        looped = any(not self._unrolled(d) for d in self.facts.reduced)
        latency *= 1.0 if looped else 0.4  # the next tile begins before this one ends
        latency = latency if self.facts.combiner is not None else 0.0
        cycles = max(compute, loads / LOADS_PER_CYCLE, latency) + 0.35 * min(compute, loads / LOADS_PER_CYCLE)
        return (cycles + 1.0) * self._spill_factor() * self._guard_factor()

    def _spill_factor(self) -> float:
        """Return how much slower a step is for values that do not fit into registers."""
        over = self._needed + 1 - self._registers
        return 1.0 if over <= 0 else 1.15 + 0.06 * over

    @cached_property
    def live(self) -> int:
        """Loaded values that are needed again, at the point of a step where they are most."""
        if self.facts.hom.guard is not None:
            return 0
        schedule, follow = self.facts.schedule, self.facts.schedule.follow
        used = {k: a for k, a in self.inner if a is not None and not self._is_constant(a)}
        lead = None if follow is None or self.facts.combiner is None else self.accesses[follow][1]
        spots = tuple((self._private(d), self.facts.width(d)) for d in range(len(self.extents)))
        steps = tuple(access.steps for access in used.values())
        return live_values(spots, schedule.unrolled_order, steps, None if lead is None else lead.steps)

    def _guard_factor(self) -> float:
        return 1.0 if self.facts.hom.guard is None else 3.0

    # The loops

    @cached_property
    def loops(self) -> tuple[tuple[int, int, int], ...]:
        """The loops, outermost first: dimension, trips, points of the dimension inside one trip."""
        schedule, found = self.facts.schedule, []
        for d in schedule.group_order:
            found.append((d, self.groups(d), self.covered(d)))
        for d in self.facts.tiled_order:
            found.append((d, ceil(self.covered(d) / self.length(d)), self.length(d)))
        kept = [d for d in schedule.private_order if d in self.facts.kept]
        lost = [d for d in schedule.private_order if d in self.facts.reduced]
        for d in (*kept, *lost):
            found.append((d, ceil(self.length(d) / self.tile(d)), self.tile(d)))
        return tuple(loop for loop in found if loop[1] > 1)

    @cached_property
    def steps(self) -> float:
        """How often the innermost step runs in all."""
        return float(prod(trips for _, trips, _ in self.loops))

    @cached_property
    def tiles(self) -> float:
        """How many register tiles there are."""
        count = prod(trips for d, trips, _ in self.loops if d in self.facts.kept)
        count *= prod(self.groups(d) for d in self.facts.reduced)
        if self.facts.waits:
            count *= prod(ceil(self.covered(d) / self.length(d)) for d in self.facts.reduced)
        return float(count)

    @cached_property
    def insides(self) -> tuple[Sizes, ...]:
        """Points per dimension inside the outermost loops: inside none of them, one, two, ..., all."""
        sizes, found = list(self.extents), [tuple(self.extents)]
        for d, _, inner in self.loops:
            sizes[d] = min(sizes[d], inner)
            found.append(tuple(sizes))
        return tuple(found)

    def _box(self, item: _Traffic, sizes: Sizes) -> list[int]:
        """Return the box of elements that some points touch of an array."""
        return [1 + sum(step * (sizes[d] - 1) for d, step in axis) for axis in item.axes]

    @cached_property
    def _memo(self) -> dict[tuple[_Traffic, Sizes], _Pieces]:
        return {}

    def _room(self, item: _Traffic, sizes: Sizes, capacity: float, period: int) -> float:
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

    def _footprint(self, item: _Traffic, sizes: Sizes) -> float:
        """Return the bytes, in whole cache lines, that some points touch of an array."""
        return self._pieces(item, sizes).lines

    def _pages(self, item: _Traffic, sizes: Sizes) -> float:
        """Return the pages that some points touch of an array."""
        pieces = self._pieces(item, sizes)
        inside, count = pieces.bytes, 1
        for n, distance in pieces.apart:
            if distance < PAGE:
                inside = max(inside, n * distance)
            else:
                count *= n
        return count * max(1.0, inside / PAGE)

    def _pieces(self, item: _Traffic, sizes: Sizes) -> _Pieces:
        """Return the pieces of memory that some points touch of an array or of its copy."""
        key = item, sizes
        if key not in self._memo:
            self._memo[key] = self._touched(item, sizes)
        return self._memo[key]

    def _touched(self, item: _Traffic, sizes: Sizes) -> _Pieces:
        box = self._box(item, sizes)
        size, run, apart = item.bytes, item.bytes, list[tuple[int, int]]()
        for n, distance in item.rows(box):
            if n == 1:
                continue
            if not apart and distance == run:
                run *= n
            else:
                apart.append((n, distance))
        return _Pieces(run if box else size, tuple(apart), aligned=item.plan is not None)

    @cached_property
    def arrays(self) -> list[_Traffic]:
        hom = self.facts.hom
        reads = [(hom.inputs[k].buffer, access, self.plan(k), False) for k, access in self.accesses]
        outputs = ((v.buffer, access_of(v, self.buffers, len(hom.extents))) for v in hom.outputs)
        every = [*reads, *((name, access, None, True) for name, access in outputs)]
        single = {(n, a.steps): (a, plan, written) for n, a, plan, written in every if a is not None}
        alike: dict[object, list[_Traffic]] = {}
        for access, plan, written in single.values():
            form = access.steps, access.buffer.shape, access.buffer.type, plan, written
            alike.setdefault(form, []).append(_Traffic(access, plan, written, 1))
        return [replace(same[0], count=len(same)) for same in alike.values()]

    def _traffic(self, capacity: float, ways: int = 0) -> float:
        """Return the bytes that come through from behind a cache of some size."""
        period = int(capacity) // ways if ways else 0

        def need(item: _Traffic, sizes: Sizes) -> float:
            return self._room(item, sizes, 0.8 * capacity, period)

        def load(item: _Traffic, sizes: Sizes) -> float:
            return self._footprint(item, sizes) * (1.0 if ways else self._jumps(item))

        return self._through(0.8 * capacity, need, load)

    def _jumps(self, item: _Traffic) -> float:
        """Return how much longer memory takes for rows that are walked in short pieces."""
        kept = [k for k, (d, _, _) in enumerate(self.loops) if d in self.facts.kept]
        steps = item.access.steps
        if not kept or not steps or item.plan is not None:
            return 1.0
        along = steps[-1][self.loops[kept[-1]][0]] != 0
        piece = self._box(item, self.insides[kept[-1] if along else kept[-1] + 1])[-1]
        return min(3.0, 1.0 + 512 / (piece * item.access.buffer.type.size))

    @cached_property
    def page_misses(self) -> float:
        """How often a page is not at hand."""
        return self._through(PAGES, self._pages, self._pages, PAGE)

    def _through(self, capacity: float, need: _Measure, load: _Measure, unit: int = 64) -> float:
        """Return what is loaded where the largest inner part stays whose needs fit."""
        every = range(len(self.loops) + 1)
        depth = bisect_left(every, True, key=lambda k: self._total(need, self.insides[k]) <= capacity)
        stays, depth = depth < len(every), min(depth, len(self.loops))
        sizes = self.insides[depth]

        def part(item: _Traffic) -> float:
            return self._part_of_unit(item, depth, sizes, unit) if stays else 1.0

        return sum(
            item.count * self._reloaded(item, depth) * load(item, sizes) * part(item) for item in self.arrays
        )

    def _part_of_unit(self, item: _Traffic, depth: int, sizes: Sizes, unit: int) -> float:
        """Return how much of a line or page counts where the next loop outside walks to what comes behind."""
        if not depth:
            return 1.0
        d, _, points = self.loops[depth - 1]
        box = self._box(item, sizes)
        further = item.distance(d) * points
        if not further:
            return 1.0
        exact = self._pieces(item, sizes).bytes if box else item.bytes
        return min(1.0, max(exact, further) / max(float(unit), exact + (32.0 if unit == 64 else 0.0)))

    def _total(self, need: _Measure, sizes: Sizes) -> float:
        return sum(item.count * need(item, sizes) for item in self.arrays)

    def _reloaded(self, item: _Traffic, depth: int) -> float:
        """Return how often the part of an array inside some loops is loaded."""
        times, reused = 1.0, True
        for d, trips, _ in reversed(self.loops[:depth]):
            uses = item.access.uses(d) if d not in self.facts.reduced or not item.written else False
            reused = reused and not uses
            times *= 1 if reused else trips
        factor = 1.0 if not item.written else 1.0 if self.facts.schedule.streaming else 2.0
        return times * factor

    @cached_property
    def memory_cycles(self) -> list[float]:
        """Cycles that the levels behind the first cache take, summed over cores; data that fit are there."""
        caches = list(self.device.caches) or [32 << 10, 1 << 20, 8 << 20]
        rates = CACHE_BYTES_PER_CYCLE[: len(caches) - 1] + CACHE_BYTES_PER_CYCLE[2:]
        ways = (*WAYS, *(0 for _ in caches))
        levels = zip(caches, rates, ways, strict=False)
        data = self._total(self._footprint, self.extents)
        cycles = [self._traffic(size, way) / rate if data > 0.8 * size else 0.0 for size, rate, way in levels]
        in_cache = data <= caches[-1]
        return [*cycles, self.page_misses * PAGE_MISS[0 if in_cache else 1]]

    @cached_property
    def copy_cycles(self) -> float:
        """Cycles that copies into local memory take, in all."""
        count = prod(self.groups(d) for d in range(len(self.extents)))
        for d in self.facts.tiled_order:
            count *= ceil(self.covered(d) / self.length(d))
        total = 0.0
        for k, _ in self.accesses:
            plan = self.plan(k)
            if plan is not None:
                straight = plan.axes[-1] == len(plan.axes) - 1
                total += plan.elements * count * (0.25 if straight else 0.8 if is_turned(plan) else 2.0)
        return total

    @cached_property
    def tile_cycles(self) -> float:
        """Cycles of a register tile beside the reduction: start, results."""
        regs, width = self.registers_per_value, self.facts.schedule.width
        if self.facts.combiner is None:
            stores = self.totals * regs * 1.0
            return stores + 2.0
        across = self.totals * 8.0 if self.facts.vector_is_reduced else 0.0
        return self.totals * regs * 2.0 + across + 4.0 + self._scattered_stores(width) + self._waiting()

    def _waiting(self) -> float:
        return self.totals * self.registers_per_value * 4.0 if self.facts.waits else 0.0

    def _scattered_stores(self, width: int) -> float:
        vector = self.facts.schedule.vector
        if vector is None or vector not in self.facts.kept:
            return 0.0
        views = [access_of(v, self.buffers, len(self.extents)) for v in self.facts.hom.outputs]
        apart = sum(1 for a in views if a is not None and not a.is_unit(vector))
        return apart * self.totals * width * 2.0

    def on_cpu(self) -> float:
        """Return the expected seconds on a CPU."""
        clock = max(self.device.clock_mhz, 1000) * 1e6
        rest = self._rest_factor()
        compute = self.steps * self.step_cycles * rest + self.tiles * self.tile_cycles + self.copy_cycles
        levels = [compute, *self.memory_cycles]
        cycles = max(levels) + 0.25 * (sum(levels) - max(levels))
        groups = prod(self.groups(d) for d in range(len(self.extents)))
        units = max(1, self.device.compute_units)
        share = ceil(groups / units) / groups * (1.0 + WAITING_AT_END * units / groups)
        items = self.facts.total_items
        barriers = 1.0 if items == 1 else 2.5
        second = SECOND_KERNEL + self._partial_bytes * 3 / (CACHE_BYTES_PER_CYCLE[-1] * clock)
        second = second if self.facts.split else 0.0
        cycles *= 1.0 + LINE * written_points(self.facts) * max(1, len(self.inner))
        return LAUNCH + second + cycles * share * barriers / clock + GROUP * groups / units

    @property
    def _partial_bytes(self) -> float:
        """What groups leave to the kernel that combines parts."""
        kept = prod(self.extents[d] for d in self.facts.kept)
        return float(kept * prod(self.groups(d) for d in self.facts.reduced) * self.element)

    def _rest_factor(self) -> float:
        """Return the price of tiles that do not divide the extents."""
        factor = 1.0
        for d, n in enumerate(self.extents):
            tile = self.facts.tile(d)
            if self.facts.extent(d) is None and d == self.facts.schedule.vector:
                factor *= 1.0 + 0.5 * tile / n
            elif n % tile:
                factor *= 1.0 + 0.3 * tile / n
        return factor

    def on_gpu(self) -> float:
        """Return the expected seconds on a GPU."""
        clock = max(self.device.clock_mhz, 500) * 1e6
        units, lanes = max(1, self.device.compute_units), max(1, self.device.lanes)
        groups = prod(self.groups(d) for d in range(len(self.extents)))
        items = self.facts.total_items
        width = self.facts.schedule.width
        per_item = self.steps / max(groups * items, 1)
        loads = sum(self._load_cost(k, access) * self._coalescing(k) for k, access in self.inner)
        work = self.points * self.operations * width
        cycles = per_item * (work + loads * 2.0 + 4.0) * ceil(items / lanes) * lanes
        busy = min(1.0, groups / units) * min(1.0, items * max(1.0, groups / units) / (8.0 * lanes))
        pressure = 1.0 + max(0.0, self.totals * width - 96) / 32
        traffic = self._traffic(50e6) / 2e12 + self._traffic(128e3) / 6e12
        compute = cycles * groups * pressure / (units * 128 * max(busy, 1e-3)) / clock
        return 4e-6 + max(compute, traffic) + (4e-6 if self.facts.split else 0.0)

    def _coalescing(self, k: int) -> float:
        """Return how many transactions neighbouring work-items need, compared with the best."""
        if self.plan(k) is not None:
            return 0.7
        access = self.accesses[k][1]
        along = [d for d in self.facts.schedule.item_order if self.facts.schedule.items[d] > 1]
        if access is None or not along:
            return 8.0
        fastest = along[-1]
        if not access.uses(fastest):
            return 1.0
        return (
            1.5
            if access.is_unit(fastest) and self.facts.schedule.strided[fastest]
            else 3.0
            if access.is_unit(fastest)
            else 8.0
        )


@cache
def live_values(
    spots: tuple[tuple[int, int], ...],
    order: tuple[int, ...],
    views: tuple[tuple[tuple[int, ...], ...], ...],
    lead: tuple[tuple[int, ...], ...] | None,
) -> int:
    """Return how many loaded values of a step are waited for at once, where they are most.

    ``spots``: per dimension, how many points a step has, and how far apart; ``order``: of the dimensions,
    outermost first; ``views``: per input its coefficients; ``lead``: those of the input that leads.
    """
    axes = [np.arange(count) * distance for count, distance in (spots[d] for d in order)]
    grid = np.meshgrid(*axes, indexing="ij")
    points = np.stack([grid[order.index(d)].ravel() for d in range(len(spots))], axis=1)
    if lead:
        keys = points @ np.array(lead).T
        points = points[np.lexsort(keys.T[::-1])]
    changes = np.zeros(len(points) + 1, np.int64)
    for view in views:
        elements = points @ np.array(view).T if view else np.zeros((len(points), 1), np.int64)
        _, number = np.unique(elements, axis=0, return_inverse=True)
        number = number.ravel()
        last = np.zeros(number.max() + 1, np.int64)
        last[number] = np.arange(len(points))
        first = np.zeros_like(last)
        first[number[::-1]] = np.arange(len(points))[::-1]
        np.add.at(changes, first, 1)
        np.add.at(changes, last + 1, -1)
    return int(np.cumsum(changes).max(initial=0))


def _operations(expression: Expression) -> float:
    """Return about how many instructions an expression takes, reads not counted."""
    return sum(_cost(part) for part in walk(expression))


def _cost(part: Expression) -> float:
    match part:
        case Unary(op=op):
            return 1.0 if op in EXACT_UNARY else 15.0
        case Binary(op=BinaryOp.DIVIDE | BinaryOp.REMAINDER):
            return 8.0
        case Binary(op=BinaryOp.POWER | BinaryOp.ATAN2 | BinaryOp.HYPOT):
            return 40.0
        case Read():
            return 0.0
        case _ if not children(part):
            return 0.0
        case _:
            return 1.0


def _is_product(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.MULTIPLY and expression.type.is_float


def _is_sum(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.ADD
