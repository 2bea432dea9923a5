"""Schedules of the usual forms for GPUs, where a search begins: tiles of products, shared reductions, rows.

    products    a group has a tile of two kept dimensions, an item a part of it in registers; what is read
                again lies in local memory, a few steps of the reduction at a time, in one stage or two
    reductions  the items of a group share a long reduction; groups have parts of it where they are too few
    rows        neighbouring items have neighbouring results, one vector or point each, or some rows of them

Source: the usual forms of CUDA's libraries (CUTLASS: Efficient GEMM in CUDA). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, prod

from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.cost.loop_sizes import Reads
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.tiling import TileFacts

ITEMS = ((16, 16), (8, 16), (8, 8), (4, 16), (2, 32), (1, 32))
POINTS = ((8, 8), (8, 4), (4, 4), (2, 4), (2, 2), (1, 2), (1, 1))
DEPTHS = (8, 16, 32)
"""Items and points of each, across and along rows; steps of the reduction in local memory."""

SHARES = (32, 128, 256)
"""Items that share a reduction."""

UNROLLED = 5
"""Points of a reduced dimension that are written out."""

GROUPS = (1, 4, 16)
"""Groups of each multiprocessor, about, where a reduction is cut for them."""


def gpu_designs(plain: Schedule, facts: TileFacts, reads: Reads, device: DeviceModel) -> list[Schedule]:
    """Return schedules of the usual forms, not all of them legal; none where sizes are open."""
    if any(facts.extent(d) is None for d in range(len(facts.hom.extents))):
        return []
    return list(dict.fromkeys(_Designs(plain, facts, reads, device).all()))


class _Designs:
    def __init__(self, plain: Schedule, facts: TileFacts, reads: Reads, device: DeviceModel) -> None:
        self.plain, self.facts, self.reads, self.device = plain, facts, reads, device
        self.every = range(len(facts.hom.extents))
        self.kept = sorted(facts.kept, key=self._fitness)
        short = [d for d in facts.reduced if self.extent(d) <= UNROLLED]
        self.long = sorted((d for d in facts.reduced if d not in short), key=self.extent)
        self.short = tuple(short)

    def extent(self, d: int) -> int:
        return self.facts.extent(d) or 1

    def _fitness(self, d: int) -> tuple[int, int]:
        """Return in how many arrays neighbours along a dimension lie together, results first; its extent."""
        outputs = sum(a is not None and a.is_unit(d) for a in self.reads.outputs)
        inputs = sum(a is not None and a.is_unit(d) for a in self.reads.inputs)
        return 2 * outputs + inputs, self.extent(d)

    def all(self) -> Iterator[Schedule]:
        if self.long:
            yield from self._reductions()
            if len(self.kept) > 1:
                yield from self._products()
        if self.kept:
            yield from self._rows()

    # Forms

    def _products(self) -> Iterator[Schedule]:
        along, deep = self.kept[-1], self.long[-1]
        for across in [d for d in self.kept[:-1] if self.extent(d) > 1][-2:]:
            for items, points in product(ITEMS, POINTS):
                tiles = [(across, items[0], points[0]), (along, items[1], points[1])]
                if any(n * p >= 2 * self.extent(d) > 2 for d, n, p in tiles):
                    continue
                for base in self._vectors(self._tiled(tiles), along):
                    yield from self._cut(base, deep, 1)
                    for depth in DEPTHS:
                        yield from self._copied(base, deep, depth)

    def _copied(self, base: Schedule, deep: int, depth: int) -> Iterator[Schedule]:
        """Yield schedules that copy what several items read, a few steps of the reduction at a time."""
        inputs = tuple(
            Caching(Memory.LOCAL) if self._is_shared(base, k) else caching
            for k, caching in enumerate(base.inputs)
        )
        local = [1 if d in self.facts.reduced else n for d, n in enumerate(base.local)]
        local[deep] = min(depth, self.extent(deep))
        copied = replace(base, inputs=inputs, local=tuple(local))
        for schedule in self._cut(copied, deep, depth):
            yield schedule
            yield replace(schedule, stages=2)

    def _is_shared(self, base: Schedule, k: int) -> bool:
        access = self.reads.inputs[k]
        if access is None or k not in self.reads.inner or not access.steps:
            return False
        return any(n > 1 and not access.uses(d) for d, n in enumerate(base.items))

    def _reductions(self) -> Iterator[Schedule]:
        deep = self.long[-1]
        for items, points, rows in product(SHARES, (1, 2, 4), (1, 4)):
            if items * points > max(self.extent(deep), SHARES[0]):
                continue
            tiles = [(d, 1, rows if d == self.kept[-1] else 1) for d in self.kept]
            base = self._tiled([*tiles, (deep, items, points)])
            order = (*(d for d in base.item_order if d != deep), deep)
            yield from self._cut(replace(base, item_order=order), deep, items * points)

    def _rows(self) -> Iterator[Schedule]:
        along = self.kept[-1]
        across = self.kept[-2:-1]
        for items, rows, points, several in product((32, 64, 128), (1, 4, 8), (1, 2, 4, 8), (1, 2, 4)):
            if items > 2 * self.extent(along) or items * rows > self.device.max_group_size:
                continue
            if not across and (rows > 1 or several > 1):
                continue
            tiles = [(along, items, points), *((d, rows, several) for d in across)]
            base = self._tiled(tiles)
            strided = tuple(d == along for d in self.every)
            yield replace(base, strided=strided)
            yield from self._vectors(base, along)

    # Parts

    def _tiled(self, tiles: Sequence[tuple[int, int, int]]) -> Schedule:
        """Return a schedule whose groups have so many items along dimensions, and points of each."""
        group, items, private = [0] * len(self.every), [1] * len(self.every), [1] * len(self.every)
        for d in self.kept:
            group[d] = 1
        for d, n, p in tiles:
            items[d], private[d] = n, p
            group[d] = n * p if d in self.kept else 0
        group = [0 if n >= self.extent(d) else n for d, n in enumerate(group)]
        for d in self.short:
            private[d] = self.extent(d)
        order = (*self.facts.reduced, *self.kept)
        return replace(
            self.plain,
            group=tuple(group),
            items=tuple(items),
            private=tuple(private),
            item_order=order,
            private_order=(*self.kept, *self.facts.reduced),
            unrolled_order=(*self.facts.reduced, *self.kept),
        )

    def _vectors(self, base: Schedule, along: int) -> Iterator[Schedule]:
        """Yield a schedule, and one in which an item's points along rows are vectors."""
        yield base
        views = (*self.facts.hom.inputs, *self.facts.hom.outputs)
        size = max(self.reads.buffers[view.buffer].type.size for view in views)
        width = max(1, self.device.vector_bytes // size)
        points = base.private[along]
        if width > 1 and points % width == 0:
            private = tuple(points // width if d == along else n for d, n in enumerate(base.private))
            yield replace(base, private=private, vector=along, width=width)

    def _cut(self, base: Schedule, deep: int, unit: int) -> Iterator[Schedule]:
        """Yield a schedule, and some whose groups have parts of a reduction, where groups are few."""
        yield base
        units = max(1, self.device.compute_units)
        have = prod(ceil(self.extent(d) / base.group[d]) for d in self.kept if base.group[d])
        for each in GROUPS:
            parts = each * units // have
            size = ceil(self.extent(deep) / max(parts, 1) / unit) * unit
            if parts > 1 and size < self.extent(deep):
                yield replace(base, group=tuple(size if d == deep else n for d, n in enumerate(base.group)))
