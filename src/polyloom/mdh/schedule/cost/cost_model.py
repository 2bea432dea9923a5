"""How long a schedule is expected to take, without running it: to rank candidates, not to predict seconds.

On CPUs: the instructions of a register tile (``compute_cost``), times their number, against what each cache
level must deliver (``memory_cost``). GPUs: ``gpu_cost``. All numbers are the device's (``device/costs``).

Source: the usual model of tiled loop nests. Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod
from typing import Protocol

from polyloom.mdh.device.costs import CpuCosts, GpuCosts
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.cost.compiled_loops import compiled_vectors
from polyloom.mdh.schedule.cost.compute_cost import CycleModel, StepModel
from polyloom.mdh.schedule.cost.gpu_cost import GpuModel
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes, Reads
from polyloom.mdh.schedule.cost.matrix_cost import MatrixModel
from polyloom.mdh.schedule.cost.memory_cost import CacheModel, MemoryModel
from polyloom.mdh.schedule.legality import WIDTHS, written_points
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
    compiled = compiled_vectors(facts, reads, device)
    sizes, costs = LoopSizes(facts, reads) if compiled is None else compiled, device.costs
    step = StepModel(sizes, costs.instructions, device.vector_bytes)
    memory = MemoryModel(sizes, costs.memory)
    if isinstance(costs.kernels, GpuCosts):
        model = MatrixModel if facts.schedule.matrix else GpuModel
        return model(step, memory, device, costs.kernels)
    return _Cpu(step, memory, device, costs.kernels)


def predicted_seconds(facts: TileFacts, reads: Reads, device: DeviceModel) -> float:
    """Return the expected time of a valid schedule; ``reads``: of the md_hom."""
    return prediction(facts, reads, device).seconds


def unbeaten_seconds(plain: TileFacts, reads: Reads, device: DeviceModel) -> float:
    """Return seconds that no schedule of an md_hom is expected to go below; 0 on GPUs.

    Every point in full vectors on all units, or every element once through each cache that does not hold
    them all, whichever takes longer. ``plain``: the md_hom under the schedule without decisions.
    """
    sizes, costs = LoopSizes(plain, reads), device.costs
    if isinstance(costs.kernels, GpuCosts):
        return 0.0
    step = StepModel(sizes, costs.instructions, device.vector_bytes)
    memory = MemoryModel(sizes, costs.memory)
    return _Cpu(step, memory, device, costs.kernels).unbeaten_seconds


@dataclass(frozen=True)
class _Cpu:
    step: StepModel
    memory: MemoryModel
    device: DeviceModel
    costs: CpuCosts

    @property
    def sizes(self) -> LoopSizes:
        return self.step.sizes

    @property
    def facts(self) -> TileFacts:
        return self.step.sizes.facts

    @property
    def least_seconds(self) -> float:
        """The seconds where all data are at hand."""
        return self._seconds(self._computing)

    @property
    def unbeaten_seconds(self) -> float:
        """Seconds of full vectors on all units, each element once through each cache."""
        costs, extents = self.costs, self.sizes.extents
        single = self.sizes.shares(tuple([1] * len(extents))).some
        points = prod(extents) * single
        results = prod(extents[d] for d in self.facts.kept) * len(self.facts.hom.outputs)
        per_result = costs.stored_vector if self.facts.combiner is None else costs.total
        lanes = max(1, min(max(WIDTHS), self.device.vector_bytes // self.sizes.reads.widest))
        computing = (points * self.step.operations / costs.fma_per_cycle + results * per_result) / lanes
        caches = CacheModel(self.memory, costs, self.device.caches, self.device.ways)
        cycles = max(computing, caches.least_cycles * single)
        clock = self.device.hertz(costs.least_clock_mhz)
        return costs.launch_seconds + cycles / max(1, self.device.compute_units) / clock

    @property
    def seconds(self) -> float:
        """The expected seconds: the slowest of computation and memory's levels hides most of the others."""
        caches = CacheModel(self.memory, self.costs, self.device.caches, self.device.ways)
        levels = [self._computing, *caches.cycles]
        hidden = self.costs.unhidden_share * (sum(levels) - max(levels))
        return self._seconds(max(levels) + hidden + caches.waits)

    def _seconds(self, cycles: float) -> float:
        """Return the seconds for cycles on one unit: shared by all, and what launches and groups take."""
        costs, clock = self.costs, self.device.hertz(self.costs.least_clock_mhz)
        groups = self.sizes.all_groups
        units = max(1, self.device.compute_units)
        waiting = costs.imbalance * units / groups if units > 1 else 0.0
        share = ceil(groups / units) / groups * (1.0 + waiting)
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
            model.steps * model.step_cycles * self._partial_tiles
            + self.sizes.tiles * self.sizes.of_tiles * model.tile_cycles
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
        factor, vector = 1.0, self.facts.schedule.vector
        for d, n in enumerate(self.sizes.extents):
            tile = self.facts.tile(d)
            if d == vector and self.facts.extent(d) is None:
                factor *= 1.0 + self.costs.unknown_partial_tile * tile / n
            elif d == vector and n % self.facts.width(d):
                factor *= 1.0 + self.costs.partial_vector * tile / n
            elif n % tile:
                factor *= 1.0 + self.costs.partial_tile * tile / n
        return factor
