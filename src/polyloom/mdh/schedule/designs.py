"""Schedules that are made, not drawn: register tiles as large as the registers allow, of the usual forms.

    y[c, p] = sum over k of W[c, k] * x[k, p]

    vectors along p:  rows of x in vectors, elements of W for all lanes
    vectors along c:  W copied so that its rows along c lie together, elements of x for all lanes

Each kept dimension may have the vectors, each other one the rest of a register tile. What is read along the
vectors and lies apart is copied where it is constant: such copies are packed when a program is loaded. They
are where a search begins, so that it needs few others. Source: the usual form of matrix products and
convolutions (Goto and van de Geijn, Anatomy of high-performance matrix multiplication). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil

from polyloom.ir.host import Order
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Access
from polyloom.mdh.schedule.loop_sizes import Reads
from polyloom.mdh.schedule.schedules import Caching, Memory, Schedule
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.polyhedra.loops.tree import Number

VECTORS = (1, 2, 3, 4, 6)
"""Vectors of a register tile along their dimension."""

TOTALS = 0.75
"""The part of the vector registers that a register tile has; compilers want the others for what is loaded."""

SHORT = 5
"""A reduced dimension of at most so many points may be written out."""

_LOADED = (Number(1), Number(2))
"""Distances of neighbours in vectors that are loaded without a copy: two loads and a shuffle for 2."""

GROUPS = 4
"""Groups of which each thread has about as many, where only they keep threads busy."""


def designs(
    plain: Schedule, facts: TileFacts, reads: Reads, width: int, device: DeviceModel
) -> list[Schedule]:
    """Return schedules of the usual forms for an md_hom, not all of them legal; none where sizes are open.

    ``width``: elements of a vector register.
    """
    if any(facts.extent(d) is None for d in range(len(facts.hom.extents))):
        return []
    return list(dict.fromkeys(_Designs(plain, facts, reads, width, device).all()))


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
        return self.facts.extent(d) or 1

    def all(self) -> Iterator[Schedule]:
        """Yield schedules: vectors along each dimension, tiles with each other one."""
        for v in self.kept:
            n = self.extent(v)
            width = next((w for w in (self.width, self.width // 2, self.width // 4) if 1 < w <= n), 0)
            inputs = self._inputs(v) if width and not self.facts.guard_uses(v) else None
            if inputs is None:
                continue
            for t in [d for d in self.kept if d != v] or [v]:
                for a, b in self._tiles(v, t, width):
                    yield from self._forms(v, t, width, a, b, inputs)

    def _inputs(self, v: int) -> tuple[Caching, ...] | None:
        """Return how inputs are read where vectors run along ``v``; None where elements lie apart."""
        found = []
        for k, access in enumerate(self.reads.inputs):
            if access is None:
                return None
            apart = k in self.reads.inner and access.uses(v) and access.strides[v] not in _LOADED
            if apart and not access.buffer.constant:
                return None
            copied = (
                k in self.reads.inner and access.uses(v) and access.buffer.constant and len(access.steps) > 1
            )
            found.append(_panels(access, v) if copied else Caching())
        return tuple(found)

    def _tiles(self, v: int, t: int, width: int) -> Iterator[tuple[int, int]]:
        """Yield how many vectors and how many points of another dimension a register tile has."""
        vectors = ceil(self.extent(v) / width)
        for a in VECTORS:
            if a > vectors:
                break
            most = max(1, int(TOTALS * self.registers) // a)
            if t == v:
                yield a, 1
                continue
            n = self.extent(t)
            even = ceil(n / ceil(n / most))
            whole = max(b for b in range(1, most + 1) if n % b == 0)
            yield from {(a, min(n, most)), (a, even), (a, whole)}

    def _forms(
        self, v: int, t: int, width: int, a: int, b: int, inputs: tuple[Caching, ...]
    ) -> Iterator[Schedule]:
        """Yield schedules with a register tile of ``a`` vectors times ``b`` points."""
        count, reduced = len(self.plain.private), self.facts.reduced
        rest = [d for d in range(count) if d not in (v, t) and d not in reduced]
        private = [1] * count
        private[t], private[v] = b, a
        first = list(dict.fromkeys((v, *rest, t)))
        last = list(dict.fromkeys((*rest, t, v)))
        copied = any(c.memory is Memory.LOCAL for c in inputs)
        local, group = [0] * count, [0] * count
        if copied:
            local[v] = group[v] = a * width
        self._share(group, [d for d in (*rest, v, t) if d != v or not copied], v, private[v] * width, b, t)
        short = [d for d in reduced[-1:] if 1 < self.extent(d) <= SHORT]
        for order in (first,) if copied else (first, last):
            for unrolled in {(), tuple(short)}:
                yield replace(
                    self.plain,
                    group=tuple(group),
                    local=tuple(local),
                    private=tuple(self.extent(d) if d in unrolled else private[d] for d in range(count)),
                    vector=v,
                    width=width,
                    private_order=(*order, *reduced),
                    unrolled_order=(*reduced, *rest, *dict.fromkeys((t, v))),
                    inputs=inputs,
                )

    def _share(self, group: list[int], dims: Sequence[int], v: int, vectors: int, b: int, t: int) -> None:
        """Let groups be enough for all threads."""
        units = max(1, self.device.compute_units)
        have = ceil(self.extent(v) / group[v]) if group[v] else 1
        wanted = GROUPS * units if units > 1 else 1
        for d in dims:
            if have >= wanted:
                return
            step = {v: vectors, t: b}.get(d, 1)
            size = ceil(self.extent(d) / ceil(wanted / have) / step) * step
            if size < self.extent(d):
                group[d] = size
                have *= ceil(self.extent(d) / size)


def _panels(access: Access, v: int) -> Caching:
    """Return a copy in which neighbours along the vectors are neighbours, register tile by register tile."""
    along = [axis for axis, steps in enumerate(access.steps) if steps[v]]
    others = [axis for axis in range(len(access.steps)) if axis not in along]
    axes = (*others, *along)
    return Caching(Memory.LOCAL, () if axes == tuple(range(len(axes))) else axes, 0, True)
