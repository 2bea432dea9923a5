"""Schedules that are made, not drawn: register tiles as large as the registers allow, of the usual forms.

    y[c, p] = sum over k of W[c, k] * x[k, p]

    vectors along p:  rows of x in vectors, elements of W for all lanes
    vectors along c:  W copied so that its rows along c lie together, elements of x for all lanes

Each kept dimension may have the vectors, each other one the rest of a register tile. What is read along the
vectors and lies apart is copied where it is constant: such copies are packed when a program is loaded. They
are where a search begins, so that it needs few others. Sums that turn from page to page are also cut, with a
copy of one input or without. Source: the usual form of matrix products and convolutions (Goto and van de
Geijn, Anatomy of high-performance matrix multiplication). Not in the papers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from math import ceil, prod

from polyloom.ir.host import Order
from polyloom.mdh.device.costs import NEAR
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Access, places
from polyloom.mdh.schedule.cost.compiled_loops import are_open
from polyloom.mdh.schedule.cost.loop_sizes import Reads, likely
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.tiling import TileFacts, parts_vectors
from polyloom.mdh.schedule.turning import can_turn
from polyloom.polyhedra.loops.tree import Number

VECTORS, VECTORS_OF_MAPS = (2, 3, 4, 1, 6), (4, 16, 1)
"""Vectors of a register tile along their dimension, those first that are good more often."""

ROWS_OF_MAPS = (8, 4, 2)
"""Rows of a register tile of a map in which neighbours share what they read."""

TOTALS = 0.75
"""The part of the vector registers that a register tile has; compilers want the others for what is loaded."""

SHORT = 5
"""A reduced dimension of at most so many points may be written out whole."""

LONGEST_UNROLL, POINTS = 8, 64
"""How often a loop of the reduction is unrolled at most; points of a step, vectors counted once."""

REUSED = 16
"""An input whose elements are read by so many results may be copied in each run."""

_LOADED = (Number(1), Number(2), Number(-1))
"""Distances of neighbours in vectors that are loaded without a copy: 2 takes two loads and a shuffle."""

_NEAR = (*_LOADED, *map(Number, NEAR))
"""The same of what is not packed when a program is loaded."""

_Tile = tuple[tuple[int, int], ...]
"""Dimensions and how many points, vectors counted once, a register tile has along them."""

PARTS, TILES_OF_COPY = (128, 256, 0), 4
"""Points of a sum whose pages stay known, 0 for all; register tiles along a copy that vectors do not load."""

VECTORS_OF_SUM = 2
"""A sum of fewer vectors has none, where it is the only one."""

GROUPS = 4
"""Groups of which each thread has about as many, where only they keep threads busy."""


def designs(
    plain: Schedule, facts: TileFacts, reads: Reads, width: int, device: DeviceModel
) -> Iterator[Schedule]:
    """Yield schedules of the usual forms for an md_hom, not all of them legal.

    ``width``: elements of a vector register. Of open sizes, sums with several results have none but blocks
    that are turned: rows of them may be short.
    """
    made = _Designs(plain, facts, reads, width, device)
    are_rows_open = are_open(facts.hom) and facts.kept and facts.combiner is not None
    seen = set[Schedule]()
    for schedule in made.turned() if are_rows_open else made.all():
        if schedule not in seen:
            seen.add(schedule)
            yield schedule


class _Designs:
    def __init__(
        self, plain: Schedule, facts: TileFacts, reads: Reads, width: int, device: DeviceModel
    ) -> None:
        self.plain, self.facts, self.reads, self.width, self.device = plain, facts, reads, width, device
        costs = device.costs.instructions
        is_wide = device.vector_bytes >= costs.wide_vector_bytes
        self.registers = costs.wide_vector_registers if is_wide else costs.vector_registers
        self.kept = [d for d in facts.kept if facts.hom.combine[d].order is Order.CONCATENATE]

    def extent(self, d: int) -> int:
        return likely(self.facts.hom.extents[d])

    def all(self) -> Iterator[Schedule]:
        """Yield schedules: vectors along each dimension, tiles with each other one.

        Inputs that are no constants are copied, or vectors run along sums, only where no results' vectors do
        without that.
        """
        found = self._found
        for v, width, inputs in found:
            turned = self._turned(v, inputs)
            if turned is not None:
                yield from self._in_turned_blocks(v, turned, width, inputs)
                continue
            for t in [d for d in self.kept if d != v] or [v]:
                for tile in dict.fromkeys(self._tiles(v, t, width)):
                    yield from self._forms(v, t, width, tile, inputs)
        for v, width, inputs in found:
            yield from self._from_other_pages(v, width, inputs)
        if not found:
            yield from self._sums_without_vectors()

    @cached_property
    def _found(self) -> list[tuple[int, int, tuple[Caching, ...]]]:
        return self._vectors(self.kept) or self._vectors((*self.kept, *self._summed()), copies=True)

    def turned(self) -> Iterator[Schedule]:
        """Yield schedules in which blocks of what is read are turned in registers, to be stored in rows."""
        for v, width, inputs in self._found:
            turned = self._turned(v, inputs)
            stored = (access for access in self.reads.outputs if access is not None)
            if turned is not None and any(access.strides[v] in _LOADED for access in stored):
                yield from self._in_turned_blocks(v, turned, width, inputs)

    def _in_turned_blocks(
        self, v: int, turned: int, width: int, inputs: tuple[Caching, ...]
    ) -> Iterator[Schedule]:
        for tile in self._blocks_in_registers(v, turned, width):
            yield from self._forms(v, turned, width, tile, inputs, turned=True)

    def _sums_without_vectors(self) -> Iterator[Schedule]:
        """Yield sums of elements that lie apart, in so many totals that none waits for the one before."""
        for d in self._summed():
            for n in dict.fromkeys((self.registers // 2, LONGEST_UNROLL)):
                if n <= self.extent(d):
                    yield replace(
                        self.plain, private=tuple(n if e == d else 1 for e in range(len(self.plain.private)))
                    )

    def _from_other_pages(self, v: int, width: int, inputs: tuple[Caching, ...]) -> Iterator[Schedule]:
        """Yield schedules of sums whose innermost loop turns from page to page.

        The sum is cut, so that the pages of a part stay known, or what is read there is copied in panels.
        """
        if not self.facts.reduced:
            return
        r = self._reductions[0][-1]
        turning = [k for k in sorted(self.reads.inner) if self._turns_pages(k, r)]
        if not turning:
            return
        for t in [d for d in self.kept if d != v]:
            for tile in dict.fromkeys(self._tiles(v, t, width)):
                forms = tuple(self._forms(v, t, width, tile, inputs))
                for copied, part in product((None, *turning), PARTS):
                    if part < self.extent(r):
                        yield from (self._in_parts(form, r, part, copied) for form in forms)

    def _turns_pages(self, k: int, r: int) -> bool:
        """Whether each point of a sum reads another page of an input, and other results read it again."""
        access, far = self.reads.inputs[k], self.device.costs.memory.foreseen_bytes
        if access is None or access.buffer.constant or not access.uses(r):
            return False
        step = access.strides[r]
        is_far = isinstance(step, Number) and abs(step.value) * access.buffer.type.size >= far
        return is_far and any(access.is_unit(d) and self._is_reused(access, d) for d in self.kept)

    def _in_parts(self, form: Schedule, r: int, part: int, copied: int | None) -> Schedule:
        """Return a schedule that sums ``part`` points of ``r`` at a time, 0 for all, and copies an input."""
        local, group, inputs = list(form.local), list(form.group), list(form.inputs)
        local[r] = part
        access = None if copied is None else self.reads.inputs[copied]
        if copied is not None and access is not None:
            along = next(d for d in self.kept if access.is_unit(d))
            inputs[copied] = _panels(access, along, form.private_order)
            for d in (d for d in self.kept if access.uses(d)):
                tiles = TILES_OF_COPY if d == along and d != form.vector else 1
                local[d] = group[d] = tiles * form.private[d] * (form.width if d == form.vector else 1)
        return replace(form, local=tuple(local), group=tuple(group), inputs=tuple(inputs))

    @cached_property
    def _reductions(self) -> list[tuple[int, ...]]:
        """Orders of the reduction's loops: one that ends along rows in memory, and as they stand.

        Of a convolution with channels last the rows are channels: as the loops stand, all points of a window
        wait in the first cache, often in the same sets, for the next channel. Not where rows are short.
        """
        reduced, found = self.facts.reduced, list[tuple[int, ...]]()
        is_free = self.facts.combiner is not None and self.facts.combiner.commutative
        for access in (self.reads.inputs[k] for k in sorted(self.reads.inner)) if is_free else ():
            if access is not None and access.steps and not access.buffer.constant:
                line = self.device.costs.memory.line_bytes // access.buffer.type.size
                rows = [d for d in reduced if access.is_unit(d) and self.extent(d) >= line]
                found += [(*(e for e in reduced if e != d), d) for d in rows]
        return list(dict.fromkeys([*found, reduced]))

    def _vectors(
        self, along: Sequence[int], *, copies: bool = False
    ) -> list[tuple[int, int, tuple[Caching, ...]]]:
        """Return the dimensions that vectors may run along, the vectors' width, and how inputs are read."""
        found = []
        for v in along:
            n = self.extent(v)
            width = next((w for w in (self.width, self.width // 2, self.width // 4) if 1 < w <= n), 0)
            inputs = self._inputs(v, copies) if width and not parts_vectors(self.facts, v) else None
            if inputs is not None:
                found.append((v, width, inputs))
        return found

    def _summed(self) -> tuple[int, ...]:
        """Return the reduced dimension whose neighbours vectors may hold, if the order does not matter.

        A short sum all alone is over before the totals of vectors have come together; and a vector of what
        was stored just before, element by element, is not there until all these stores have ended.
        """
        is_free = self.facts.combiner is not None and self.facts.combiner.commutative
        along = self.facts.reduced[-1:] if is_free else ()
        is_short = all(self.extent(d) < VECTORS_OF_SUM * self.width for d in along) and not self.facts.kept
        return () if is_short else along

    def _inputs(self, v: int, copies: bool) -> tuple[Caching, ...] | None:
        """Return how inputs are read where vectors run along ``v``; None where elements lie apart."""
        found = []
        for k, access in enumerate(self.reads.inputs):
            if access is None:
                return None
            is_moving = k in self.reads.inner and access.uses(v)
            loaded = _LOADED if access.buffer.constant else _NEAR
            apart = is_moving and access.strides[v] not in loaded
            constant = access.buffer.constant and len(access.steps) > 1
            turned = apart and self._can_turn(access, v)
            if apart and not constant and not turned and not (copies and self._is_reused(access, v)):
                return None
            copied = is_moving and (constant or apart) and not turned
            if copied and v in self.facts.reduced:
                return None
            found.append(_panels(access, v, self.facts.reduced) if copied else Caching())
        return tuple(found)

    def _can_turn(self, access: Access, v: int) -> bool:
        d = can_turn(self.facts, access, v)
        return d is not None and not access.buffer.constant and self.device.costs.instructions.turns_blocks

    def _turned(self, v: int, inputs: Sequence[Caching]) -> int | None:
        """Return the dimension along which blocks of what is read are turned in registers; None without."""
        reads = zip(self.reads.inputs, inputs, strict=True)
        read = [a for a, c in reads if a is not None and a.uses(v) and c.memory is not Memory.LOCAL]
        apart = [a for a in read if a.strides[v] not in _NEAR]
        return can_turn(self.facts, apart[0], v) if apart else None

    def _blocks_in_registers(self, v: int, t: int, width: int) -> Iterator[_Tile]:
        """Yield register tiles of blocks that are turned: of whole lines of what is read and written."""
        line = self.device.costs.memory.line_bytes // self.reads.widest
        for b in dict.fromkeys((max(line, width), width)):
            for a in dict.fromkeys((max(1, line // width), 1)):
                if width <= b <= self.extent(t) and a * width <= self.extent(v):
                    yield (v, a), (t, b)

    def _is_reused(self, access: Access, v: int) -> bool:
        """Whether an element is read often enough to be copied in each run, and rows along ``v`` can be."""
        along = [steps for steps in access.steps if steps[v]]
        single = len(along) == 1 and sum(map(abs, along[0])) == 1
        return single and prod(self.extent(d) for d in self.kept if not access.uses(d)) >= REUSED

    def _tiles(self, v: int, t: int, width: int) -> Iterator[_Tile]:
        """Yield register tiles: vectors along ``v``, points of ``t``, and of a third dimension."""
        vectors = ceil(self.extent(v) / width)
        others = [d for d in self.kept if d not in (v, t)]
        is_map = self.facts.combiner is None
        for a in (1,) if v not in self.kept else VECTORS_OF_MAPS if is_map else VECTORS:
            if a > vectors and a > 1:
                continue
            most = max(1, int(TOTALS * self.registers) // a)
            if t == v or is_map:
                rows = ROWS_OF_MAPS if t != v and self._share_rows(t) else ()
                yield from (((v, a), (t, b)) for b in rows if a * b <= most and b <= self.extent(t))
                yield ((v, a),)
                continue
            n = self.extent(t)
            beside = prod(map(self.extent, others)) * (ceil(vectors / a) if v in self.kept else 1)
            most = max(1, min(most, n // ceil(self.device.compute_units / beside)))
            whole = _divisor(n, most)
            even = ceil(n / ceil(n / most))
            for b in (whole, even) if 3 * whole >= 2 * even else (even, whole):
                yield (v, a), (t, b)
            for d in others[-1:]:
                if (c := _divisor(self.extent(d), most // whole)) > 1:
                    yield (v, a), (t, whole), (d, c)

    def _share_rows(self, t: int) -> bool:
        """Whether points along a dimension read elements that others read: rows of a stencil."""
        for numbers, offsets in self.reads.neighbours:
            access = self.reads.inputs[numbers[0]]
            axes = [axis for axis, steps in enumerate(access.steps) if steps[t]] if access else []
            if any(len({offset[axis] for offset in offsets}) > 1 for axis in axes):
                return True
        return False

    def _unrolled(self, v: int, totals: int, reduced: Sequence[int]) -> list[dict[int, int]]:
        """Return how often loops of the reduction are written out: the last one, others around it too.

        ``reduced``: their order.
        """
        found, room = [dict[int, int]()], POINTS // totals
        for d in reversed(reduced):
            n = ceil(self.extent(d) / self.width) if d == v else self.extent(d)
            most = min(room, int(TOTALS * self.registers) // totals) if d == v else room
            longest = min(LONGEST_UNROLL, max(1, most))
            size = n if n <= min(SHORT, most) else _divisor(n, longest)
            if d == v and 2 * size < longest and n >= SHORT * longest:
                size = longest  # few vectors are left over, and sums wait for each other where one has all
            if size > 1:
                found.append({**found[-1], d: size})
                room //= size
        return [*found[1:2], *found[2:][-1:]] or found

    def _forms(
        self, v: int, t: int, width: int, tile: _Tile, inputs: tuple[Caching, ...], *, turned: bool = False
    ) -> Iterator[Schedule]:
        """Yield schedules with a register tile: orders of loops, unrolled reductions."""
        for reduced in self._reductions:
            pairs = zip(inputs, self.reads.inputs, strict=True)
            packed = [_panels(a, v, reduced) if a and c.memory is Memory.LOCAL else c for c, a in pairs]
            for form in self._in_order(v, t, width, tile, tuple(packed), reduced):
                order = (*(d for d in form.unrolled_order if d != t), t)
                yield replace(form, unrolled_order=order) if turned else form

    def _in_order(
        self, v: int, t: int, width: int, tile: _Tile, inputs: tuple[Caching, ...], reduced: Sequence[int]
    ) -> Iterator[Schedule]:
        """Yield schedules whose loops of the reduction have an order."""
        count = len(self.plain.private)
        rest = [d for d in range(count) if d not in (v, t) and d not in reduced]
        kept = [d for d in dict.fromkeys((v, t)) if d not in reduced]
        points = {**dict.fromkeys(range(count), 1), **dict(tile)}
        steps = {d: n * width if d == v else n for d, n in points.items()}
        first = [*kept[:1], *rest, *kept[1:]]
        last = [*rest, *reversed(kept)]
        inner = sorted(kept, key=lambda d: (-points[d], -kept.index(d)))
        copied = [a for a, c in zip(self.reads.inputs, inputs, strict=True) if c.memory is Memory.LOCAL and a]
        local, group = [0] * count, [0] * count
        for d in self.kept if copied else ():
            if d == v or any(a.uses(d) for a in copied):
                local[d] = group[d] = steps[d]
        blocks = self._blocks(v, steps, copied) if copied else {}
        shared = (*rest, *kept) if self.facts.combiner is not None else (*rest, *reversed(kept))
        self._share(group, [d for d in shared if not group[d] and d not in blocks], steps)
        is_plain = bool(copied) and self.reads.hom.guard is None
        for order in (first,) if is_plain or first == last else (first, last):
            totals = prod(points.values()) * len(self.facts.hom.outputs)
            for unrolled in self._unrolled(v, totals, reduced):
                form = replace(
                    self.plain,
                    group=tuple(group),
                    local=tuple(local),
                    private=tuple({**points, **unrolled}.values()),
                    vector=v,
                    width=width,
                    private_order=(*order, *reduced),
                    unrolled_order=(*reduced, *rest, *inner),
                    inputs=inputs,
                )
                yield form
                if blocks:
                    sizes = tuple(blocks.get(d, size) for d, size in enumerate(group))
                    outside = (*blocks, *(d for d in form.group_order if d not in blocks))
                    yield replace(form, group=sizes, group_order=outside)

    def _blocks(self, v: int, steps: Mapping[int, int], copied: Sequence[Access]) -> dict[int, int]:
        """Return a block of the results' outermost dimension: half of the second cache holds its inputs.

        Empty where it has them for all results. Each block goes through all copies, which are packed.
        """
        d = next((d for d in self.kept if d != v and not any(a.uses(d) for a in copied)), None)
        if d is None or len(self.device.caches) < 2:
            return {}
        inner = [a for k, a in enumerate(self.reads.inputs) if a is not None and k in self.reads.inner]
        read = [a for a in inner if a.uses(d)]

        def needed(size: int) -> int:
            sizes = [size if e == d else self.extent(e) for e in range(len(self.plain.private))]
            return sum(_bytes(a, sizes) for a in read)

        room, n = self.device.caches[1] // 2, self.extent(d)
        if needed(n) <= room:
            return {}
        fitting = bisect_right(range(1, n + 1), room, key=needed)
        whole = max(1, fitting // steps[d]) * steps[d]
        even = ceil(n / ceil(n / whole))
        return {d: ceil(even / steps[d]) * steps[d]}

    def _share(self, group: list[int], dims: Sequence[int], steps: Mapping[int, int]) -> None:
        """Let groups be enough for all threads."""
        units = max(1, self.device.compute_units)
        have = prod(ceil(self.extent(d) / size) for d, size in enumerate(group) if size)
        wanted = GROUPS * units if units > 1 else 1
        for d in dims:
            if have >= wanted:
                return
            size = ceil(self.extent(d) / ceil(wanted / have) / steps[d]) * steps[d]
            if size < self.extent(d):
                group[d] = size
                have *= ceil(self.extent(d) / size)


def _bytes(access: Access, sizes: Sequence[int]) -> int:
    """Return the bytes of an array that some points read; rows that lie between those are not read."""
    found = [places([(d, abs(s)) for d, s in enumerate(steps) if s], sizes) for steps in access.steps]
    rows = prod(n for n, _ in found[:-1])
    return rows * (prod(found[-1]) if found else 1) * access.buffer.type.size


def _divisor(n: int, most: int) -> int:
    """Return the largest divisor that is at most ``most``, at least 1."""
    return max(k for k in range(1, max(1, most) + 1) if n % k == 0)


def _panels(access: Access, v: int, reduced: Sequence[int]) -> Caching:
    """Return a copy in which neighbours along the vectors are neighbours, register tile by register tile.

    Its other axes are in the order of the loops of the reduction: ``reduced``.
    """
    along = [axis for axis, steps in enumerate(access.steps) if steps[v]]
    places = [[k for k, d in enumerate(reduced) if steps[d]] for steps in access.steps]
    others = sorted(
        (a for a in range(len(places)) if a not in along), key=lambda a: min(places[a], default=-1)
    )
    axes = (*others, *along)
    return Caching(Memory.LOCAL, () if axes == tuple(range(len(axes))) else axes, 0, True)
