"""What sweeps take of memory: bytes that come through each cache, apart and in blocks, as seconds.

An array is still in a cache if what was touched since it was used before, with itself, fits into it. Source:
the usual model of a stack (Mattson et al. 1970) over whole arrays, or over what a block touches of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from polyloom.ir.host import HostProgram, Index, MdHom, View
from polyloom.mdh.device.costs import CpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.sweeps.members import Member
from polyloom.mdh.schedule.addresses import known

MOST_USES = 4
"""Points for each element that a node touches, at most, that it counts as a sweep: where elements are used
more often than that, its own tiles decide."""


Part = tuple[str, tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Use:
    """Bytes of a buffer that are touched.

    ``along``: its axes in which a block lies beside the one before, and by how much a row moves it there.
    Blocks of a matrix's rows and of its columns have little in common: what one brought in is no use to the
    other.
    ``weight``: how often memory moves them: a written line is read first and written back later; pieces that
    are short come slower.
    """

    buffer: str
    bytes: float
    weight: float
    along: tuple[tuple[int, int], ...] = ()

    @property
    def moves(self) -> bool:
        """Whether a block touches other elements than the one before."""
        return bool(self.along)

    @property
    def part(self) -> Part:
        """What uses have in common that touch about the same elements in a block."""
        return self.buffer, self.along


@dataclass(frozen=True)
class Traffic:
    """Counts for a device; ``program``: that of the nodes."""

    program: HostProgram
    device: DeviceModel

    @cached_property
    def _costs(self) -> CpuCosts:
        costs = self.device.costs.kernels
        assert isinstance(costs, CpuCosts)
        return costs

    @cached_property
    def levels(self) -> list[tuple[float, float]]:
        """Bytes that fit into each cache behind the first, and seconds that a byte from behind it takes."""
        caches = self.device.caches or self._costs.default_caches
        rates = self._costs.bytes_per_cycle[: len(caches) - 1] + self._costs.bytes_per_cycle[-1:]
        cycle = 1e-6 / max(self.device.clock_mhz, self._costs.least_clock_mhz)
        share = self.device.costs.memory.usable_share
        return [(share * size, cycle / rate) for size, rate in zip(caches, rates, strict=False)][1:]

    @property
    def room(self) -> float:
        """The bytes of a block: half of the second cache, as the rest of it is on its way."""
        return self.levels[0][0] / 2 if self.levels else 0.0

    def uses(self, node: MdHom, dimension: int | None = None, rows: int = 0) -> list[Use]:
        """Return what a node touches, in all, or in ``rows`` of a dimension; each part of a buffer once."""
        found: dict[Part, Use] = {}
        extents = [known(extent) or 0 for extent in node.extents]
        if dimension is not None:
            extents[dimension] = min(rows, extents[dimension])
        written = {view.buffer for view in node.outputs}
        for view in (*node.inputs, *node.outputs):
            use = self._use(view, extents, dimension, written=view.buffer in written)
            before = found.get(use.part)
            if before is None or before.bytes < use.bytes:
                found[use.part] = use
        return list(found.values())

    def _use(self, view: View, extents: Sequence[int], d: int | None, *, written: bool) -> Use:
        buffer, costs = self.program.buffer(view.buffer), self.device.costs.memory
        box, along = [], []
        for axis, (index, extent) in enumerate(zip(view.indices, buffer.shape, strict=True)):
            whole = known(extent) or 1
            if not isinstance(index, Index):
                box.append(whole)
                continue
            if d is not None and index.coefficients[d]:
                along.append((axis, index.coefficients[d]))
            steps = sum(abs(c) * max(n - 1, 0) for c, n in zip(index.coefficients, extents, strict=True))
            box.append(min(whole, 1 + steps))
        run = buffer.type.size
        for n, extent in zip(reversed(box), reversed(buffer.shape), strict=True):
            run *= n
            if n != known(extent):
                break
        jump = min(costs.largest_prefetch_factor, 1.0 + costs.prefetch_bytes / run)
        weight = (costs.write_factor if written else 1.0) * jump
        return Use(view.buffer, prod(box) * buffer.type.size, weight, tuple(along))

    def is_sweep(self, node: MdHom) -> bool:
        """Whether memory decides how long a node takes: it is larger than the second cache, used seldom."""
        return self.is_large(node) and self._uses_seldom(node)

    def is_light(self, node: MdHom) -> bool:
        """Whether a node takes little beside sweeps: the second cache holds it, and it uses it seldom."""
        return not self.is_large(node) and self._uses_seldom(node)

    def _uses_seldom(self, node: MdHom) -> bool:
        touched = self.uses(node)
        elements = sum(use.bytes / self.program.buffer(use.buffer).type.size for use in touched)
        return prod(known(extent) or 0 for extent in node.extents) <= MOST_USES * elements

    def is_large(self, node: MdHom) -> bool:
        """Whether the second cache does not hold what a node touches."""
        return bool(self.levels) and sum(use.bytes for use in self.uses(node)) > self.levels[0][0]

    def leaves_caches(self, nodes: Sequence[MdHom]) -> bool:
        """Whether no cache holds what nodes touch."""
        return bool(self.levels) and _bytes(u for n in nodes for u in self.uses(n)) > self.levels[-1][0]

    def apart(self, nodes: Sequence[MdHom], *, repeated: bool) -> float:
        """Return the seconds of nodes one after another; ``repeated``: again and again."""
        trace = [self.uses(node) for node in nodes]
        return sum(_missed(trace, room, repeated=repeated) * each for room, each in self.levels)

    def together(self, group: Sequence[Member], rows: int, *, repeated: bool) -> float:
        """Return the seconds of sweeps in blocks of so many rows."""
        blocks = -(-max(m.rows + m.shift for m in group) // rows)
        trace = [self.uses(m.node, m.dimension, rows) for m in group]
        every = _bytes(use for m in group for use in self.uses(m.node))
        found = blocks * len(group) * self._costs.second_kernel_seconds
        for room, each in self.levels:
            stays = repeated and every <= room
            found += each * sum(
                use.bytes
                * use.weight
                * (1 if not use.moves and room >= _bytes(u for t in trace for u in t) else blocks)
                for use in _missing(trace, room, stays=stays)
            )
        return found

    def block_bytes(self, group: Sequence[Member], rows: int) -> float:
        """Return the bytes that a block touches, with rows that shifts keep waiting."""
        late = max(m.shift for m in group)
        return _bytes(use for m in group for use in self.uses(m.node, m.dimension, rows + late))


def _bytes(uses: Iterator[Use]) -> float:
    """Return what uses touch, each part of a buffer once."""
    most: dict[Part, float] = {}
    for use in uses:
        most[use.part] = max(most.get(use.part, 0.0), use.bytes)
    return sum(most.values())


def _missed(trace: Sequence[Sequence[Use]], room: float, *, repeated: bool) -> float:
    """Return the weighted bytes that are not in a cache when they are used."""
    steps = [*trace, *trace] if repeated else list(trace)
    last: Mapping[Part, int] = {}
    missed = 0.0
    for k, step in enumerate(steps):
        for use in step:
            since = last.get(use.part)
            hit = since is not None and _bytes(u for s in steps[since : k + 1] for u in s) <= room
            if not hit and (not repeated or k >= len(trace)):
                missed += use.bytes * use.weight
        last = {**last, **{use.part: k for use in step}}
    return missed


def _missing(trace: Sequence[Sequence[Use]], room: float, *, stays: bool) -> Iterator[Use]:
    """Yield what a block brings in: what is new, unless all ``stays``; what was pushed out."""
    last: dict[Part, int] = {}
    for k, step in enumerate(trace):
        for use in step:
            since = last.get(use.part)
            if since is None:
                if not stays:
                    yield use
            elif _bytes(u for s in trace[since : k + 1] for u in s) > room:
                yield use
        last.update({use.part: k for use in step})
