"""How long a schedule is expected to take, without running it: to rank candidates, not to predict seconds.

On CPUs: the instructions of a register tile (``compute_cost``), times their number, against what each cache
level must deliver (``memory_cost``). GPUs: occupancy, coalescing, reuse in registers. All numbers are the
device's (``device/costs``).

Source: the usual model of tiled loop nests. Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Protocol

from polyloom.mdh.device.costs import CpuCosts, GpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.compute_cost import CycleModel, StepModel
from polyloom.mdh.schedule.copy_plan import local_bytes
from polyloom.mdh.schedule.legality import written_points
from polyloom.mdh.schedule.loop_sizes import LoopSizes, Reads
from polyloom.mdh.schedule.memory_cost import CacheModel, MemoryModel
from polyloom.mdh.schedule.tiling import TileFacts


class Prediction(Protocol):
    """The expected time of a schedule, and a time below it that is known sooner."""

    @property
    def least_seconds(self) -> float:
        """Seconds that it takes at least: memory is not looked at."""

    @property
    def seconds(self) -> float:
        """The expected seconds."""


def prediction(facts: TileFacts, reads: Reads, device: DeviceModel) -> Prediction:
    """Return what is expected of a valid schedule; ``reads``: of the md_hom."""
    sizes, costs = LoopSizes(facts, reads), device.costs
    step = StepModel(sizes, costs.instructions, device.vector_bytes)
    memory = MemoryModel(sizes, costs.memory)
    if isinstance(costs.kernels, GpuCosts):
        return _Gpu(step, memory, device, costs.kernels)
    return _Cpu(step, memory, device, costs.kernels)


def predicted_seconds(facts: TileFacts, reads: Reads, device: DeviceModel) -> float:
    """Return the expected time of a valid schedule; ``reads``: of the md_hom."""
    return prediction(facts, reads, device).seconds


@dataclass(frozen=True)
class _Processor:
    step: StepModel
    memory: MemoryModel
    device: DeviceModel

    @property
    def sizes(self) -> LoopSizes:
        return self.step.sizes

    @property
    def facts(self) -> TileFacts:
        return self.step.sizes.facts


@dataclass(frozen=True)
class _Cpu(_Processor):
    costs: CpuCosts

    @property
    def least_seconds(self) -> float:
        """The seconds where all data are at hand."""
        return self._seconds(self._computing)

    @property
    def seconds(self) -> float:
        """The expected seconds: the slowest of computation and memory's levels hides most of the others."""
        caches = CacheModel(self.memory, self.costs, self.device.caches)
        levels = [self._computing, *caches.cycles]
        hidden = self.costs.unhidden_share * (sum(levels) - max(levels))
        return self._seconds(max(levels) + hidden + caches.waits)

    def _seconds(self, cycles: float) -> float:
        """Return the seconds for cycles on one unit: shared by all, and what launches and groups take."""
        costs, clock = self.costs, _hertz(self.device, self.costs.least_clock_mhz)
        groups = self.sizes.all_groups
        units = max(1, self.device.compute_units)
        share = ceil(groups / units) / groups * (1.0 + costs.imbalance * units / groups)
        barriers = 1.0 if self.facts.total_items == 1 else costs.barrier_factor
        partial = self._partial_bytes * costs.partial_result_passes / (costs.bytes_per_cycle[-1] * clock)
        second = costs.second_kernel_seconds + partial if self.facts.split else 0.0
        cycles *= 1.0 + costs.per_line * written_points(self.facts) * max(1, len(self.sizes.inner))
        started = costs.launch_seconds + second
        return started + cycles * share * barriers / clock + costs.group_seconds * groups / units

    @cached_property
    def _computing(self) -> float:
        """Cycles on one unit, data at hand in the first cache."""
        model = CycleModel(self.step, self.costs)
        return (
            self.sizes.steps * model.step_cycles * self._partial_tiles
            + self.sizes.tiles * model.tile_cycles
            + model.copy_cycles
        )

    @property
    def _partial_bytes(self) -> float:
        """What groups leave to the kernel that combines parts."""
        kept = prod(self.sizes.extents[d] for d in self.facts.kept)
        return float(kept * prod(self.sizes.groups(d) for d in self.facts.reduced) * self.sizes.element)

    @property
    def _partial_tiles(self) -> float:
        """The factor for tiles that do not divide the extents."""
        factor = 1.0
        for d, n in enumerate(self.sizes.extents):
            tile = self.facts.tile(d)
            if self.facts.extent(d) is None and d == self.facts.schedule.vector:
                factor *= 1.0 + self.costs.unknown_partial_tile * tile / n
            elif n % tile:
                factor *= 1.0 + self.costs.partial_tile * tile / n
        return factor


@dataclass(frozen=True)
class _Gpu(_Processor):
    costs: GpuCosts

    @property
    def least_seconds(self) -> float:
        """Nothing is known sooner."""
        return 0.0

    @property
    def seconds(self) -> float:
        """The expected seconds: the longer of computation and traffic, and what launches take."""
        second = self.costs.second_kernel_seconds if self.facts.split else 0.0
        return self.costs.launch_seconds + max(self._compute, self._traffic) + second

    @property
    def _traffic(self) -> float:
        """Seconds that memory and the last cache take for what the caches before them do not hold."""
        costs, device = self.costs, self.device
        cache = device.caches[-1] if device.unit is not None else costs.cache_bytes
        missed = self.memory.traffic(cache) / (device.memory_rate or costs.memory_bytes_per_second)
        return missed + self.memory.traffic(costs.unit_cache_bytes) / costs.cache_bytes_per_second

    @property
    def _compute(self) -> float:
        """Seconds that instructions take, with as many units and lanes busy as there are groups and items."""
        costs, groups, items = self.costs, self.sizes.all_groups, self.facts.total_items
        units, lanes = max(1, self.device.compute_units), max(1, self.device.lanes)
        width = self.facts.schedule.width
        per_item = self.sizes.steps / max(groups * items, 1)
        loads = sum(self.step.load_cost(k, access) * self._coalescing(k) for k, access in self.sizes.inner)
        work = self.sizes.points * self.step.operations * width
        cycles = per_item * (work + loads * costs.load + costs.step) * ceil(items / lanes) * lanes
        resident = items * self._resident_groups
        hidden = min(1.0, resident / (costs.groups_of_lanes_to_hide_latency * lanes))
        busy = max(min(1.0, groups / units) * hidden, 1e-3)
        excess = max(0.0, self.sizes.totals * width - costs.registers_of_item)
        pressure = 1.0 + excess / costs.register_pressure
        clock = _hertz(self.device, costs.least_clock_mhz)
        return cycles * groups * pressure / (units * costs.lanes_of_unit * busy) / clock

    @property
    def _resident_groups(self) -> float:
        """Groups that are on a unit at a time: as many as there are, and as its limits let in."""
        groups, limits = max(1.0, self.sizes.all_groups / max(1, self.device.compute_units)), self.device.unit
        if limits is None:
            return groups
        items = max(1, self.facts.total_items)
        registers = self.costs.registers_of_step + self.sizes.totals * self.facts.schedule.width
        copied = local_bytes(self.facts, self.sizes.reads.buffers)
        most = min(
            limits.items / items,
            limits.registers / (items * min(registers, self.costs.most_registers)),
            limits.local_memory / max(copied, 1),
        )
        return max(1.0, min(groups, float(int(most))))

    def _coalescing(self, k: int) -> float:
        """Return what a load costs by how neighbouring work-items' elements lie."""
        if self.sizes.plan(k) is not None:
            return self.costs.local_load
        access = self.sizes.reads.inputs[k]
        along = [d for d in self.facts.schedule.item_order if self.facts.schedule.items[d] > 1]
        if access is None or not along:
            return self.costs.scattered_load
        fastest = along[-1]
        if not access.uses(fastest):
            return self.costs.broadcast_load
        if not access.is_unit(fastest):
            return self.costs.scattered_load
        strided = self.facts.schedule.strided[fastest]
        return self.costs.coalesced_load if strided else self.costs.blocked_load


def _hertz(device: DeviceModel, least_mhz: int) -> float:
    return max(device.clock_mhz, least_mhz) * 1e6
