"""How long a schedule is expected to take, without running it: to rank candidates, not to predict seconds.

On CPUs: the instructions of a register tile (``compute_cost``), times their number, against what each cache
level must deliver (``memory_cost``). GPUs: occupancy, coalescing, reuse in registers.

Source: the usual model of tiled loop nests; constants measured (docs/schedules.md). Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from polyloom.mdh.device.devices import DeviceKind, DeviceModel
from polyloom.mdh.schedule.compute_cost import StepModel
from polyloom.mdh.schedule.legality import written_points
from polyloom.mdh.schedule.loop_sizes import LoopSizes, Reads
from polyloom.mdh.schedule.memory_cost import CACHE_BYTES_PER_CYCLE, MemoryModel
from polyloom.mdh.schedule.tiling import TileFacts

LINE = 2e-4
"""What part of its time a kernel loses per line: of equals the shorter one, which also builds faster."""

WAITING_AT_END = 0.12
"""What part of a group's time units wait for the last one."""

LAUNCH, GROUP, SECOND_KERNEL = 2e-6, 1.5e-7, 1e-5
"""Seconds of a launch, of a work-group, of the kernel that combines parts."""


def predicted_seconds(facts: TileFacts, reads: Reads, device: DeviceModel) -> float:
    """Return the expected time of a valid schedule; ``reads``: of the md_hom."""
    model = _Model(LoopSizes(facts, reads), device)
    return model.on_gpu() if device.kind is DeviceKind.GPU else model.on_cpu()


@dataclass(frozen=True)
class _Model:
    sizes: LoopSizes
    device: DeviceModel

    @property
    def facts(self) -> TileFacts:
        return self.sizes.facts

    @cached_property
    def step(self) -> StepModel:
        return StepModel(self.sizes, self.device)

    @cached_property
    def memory(self) -> MemoryModel:
        return MemoryModel(self.sizes, self.device)

    def on_cpu(self) -> float:
        """Return the expected seconds on a CPU."""
        clock = max(self.device.clock_mhz, 1000) * 1e6
        rest = self._rest_factor()
        compute = (
            self.sizes.steps * self.step.step_cycles * rest
            + self.sizes.tiles * self.step.tile_cycles
            + self.step.copy_cycles
        )
        levels = [compute, *self.memory.cycles]
        cycles = max(levels) + 0.25 * (sum(levels) - max(levels))
        groups = prod(self.sizes.groups(d) for d in range(len(self.sizes.extents)))
        units = max(1, self.device.compute_units)
        share = ceil(groups / units) / groups * (1.0 + WAITING_AT_END * units / groups)
        items = self.facts.total_items
        barriers = 1.0 if items == 1 else 2.5
        second = SECOND_KERNEL + self._partial_bytes * 3 / (CACHE_BYTES_PER_CYCLE[-1] * clock)
        second = second if self.facts.split else 0.0
        cycles *= 1.0 + LINE * written_points(self.facts) * max(1, len(self.sizes.inner))
        return LAUNCH + second + cycles * share * barriers / clock + GROUP * groups / units

    @property
    def _partial_bytes(self) -> float:
        """What groups leave to the kernel that combines parts."""
        kept = prod(self.sizes.extents[d] for d in self.facts.kept)
        return float(kept * prod(self.sizes.groups(d) for d in self.facts.reduced) * self.sizes.element)

    def _rest_factor(self) -> float:
        """Return the price of tiles that do not divide the extents."""
        factor = 1.0
        for d, n in enumerate(self.sizes.extents):
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
        groups = prod(self.sizes.groups(d) for d in range(len(self.sizes.extents)))
        items = self.facts.total_items
        width = self.facts.schedule.width
        per_item = self.sizes.steps / max(groups * items, 1)
        loads = sum(self.step.load_cost(k, access) * self._coalescing(k) for k, access in self.sizes.inner)
        work = self.sizes.points * self.step.operations * width
        cycles = per_item * (work + loads * 2.0 + 4.0) * ceil(items / lanes) * lanes
        busy = min(1.0, groups / units) * min(1.0, items * max(1.0, groups / units) / (8.0 * lanes))
        pressure = 1.0 + max(0.0, self.sizes.totals * width - 96) / 32
        traffic = self.memory.traffic(50e6) / 2e12 + self.memory.traffic(128e3) / 6e12
        compute = cycles * groups * pressure / (units * 128 * max(busy, 1e-3)) / clock
        return 4e-6 + max(compute, traffic) + (4e-6 if self.facts.split else 0.0)

    def _coalescing(self, k: int) -> float:
        """Return how many transactions neighbouring work-items need, compared with the best."""
        if self.sizes.plan(k) is not None:
            return 0.7
        access = self.sizes.reads.inputs[k]
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
