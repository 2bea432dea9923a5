"""How long a schedule is expected to take on a GPU: registers, occupancy, waits for copies, traffic.

A multiprocessor has several groups at a time, as many as its registers, threads and shared memory let in.
While one waits others work. Values that do not fit into a thread's registers are stored and loaded in each
step.

Source: the usual model of occupancy (CUDA C++ Programming Guide, Hardware Multithreading). The registers are
held against ``ptxas`` by ``benchmarks/gpu_registers.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, prod

from polyloom.mdh.device.costs import GpuCosts
from polyloom.mdh.device.devices import DeviceModel, UnitLimits
from polyloom.mdh.schedule.copy_plan import fetched_values, local_bytes
from polyloom.mdh.schedule.cost.compute_cost import StepModel
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes
from polyloom.mdh.schedule.cost.memory_cost import MemoryModel
from polyloom.mdh.schedule.tiling import TileFacts

_WORD = 4
"""Bytes of a register."""

_WARP = 32
"""Threads that go together."""

_REGISTERS_AT_ONCE = 8
"""A thread gets multiples of so many."""


@dataclass(frozen=True)
class GpuRegisters:
    """The registers of a thread: totals and loaded values, which are on their way for long, and addresses."""

    step: StepModel
    costs: GpuCosts

    @property
    def sizes(self) -> LoopSizes:
        """The loops."""
        return self.step.sizes

    @cached_property
    def totals(self) -> int:
        """Registers of what a reduction has so far; where vectors run along it, each lane has totals."""
        facts = self.sizes.facts
        if facts.combiner is None:
            return 0
        width, each = facts.schedule.width, 1
        if facts.schedule.vector is not None:
            each = width * self.sizes.private(facts.schedule.vector) + 1 if facts.vector_is_reduced else width
        return self.sizes.totals * each * _words(self.sizes.element)

    @cached_property
    def results(self) -> int:
        """Registers of what a step of a map stores."""
        facts = self.sizes.facts
        if facts.combiner is not None:
            return 0
        return self.sizes.totals * facts.schedule.width * _words(self.sizes.element)

    @cached_property
    def loaded(self) -> int:
        """Registers of the different elements that a step loads from global memory."""
        facts, reads = self.sizes.facts, self.sizes.reads
        vector, width, found = facts.schedule.vector, facts.schedule.width, 0
        for k, access in self.sizes.inner:
            words = _words(reads.buffers[facts.hom.inputs[k].buffer].type.size)
            if access is None:
                found += self.sizes.points * width * words
            elif self.sizes.plan(k) is None:
                lanes = width if vector is not None and access.uses(vector) else 1
                found += self.step.distinct(access) * lanes * words
        return found

    @cached_property
    def needed(self) -> float:
        """About how many registers a thread needs, whether or not there are so many."""
        costs = self.costs
        room = costs.registers_of_loads + costs.registers_of_loads_by_total * self.totals
        on_their_way = room * (1.0 - exp(-costs.register_of_load * self.loaded / room))
        copies = sum(self.sizes.plan(k) is not None for k, _ in self.sizes.inner)
        fetched = fetched_values(self.sizes.facts, self.sizes.reads.buffers) * _words(self.sizes.element)
        return (
            costs.registers_of_kernel
            + costs.register_of_total * self.totals
            + costs.register_of_result * self.results
            + on_their_way
            + costs.registers_of_copy * copies
            + costs.register_of_loop * len(self.sizes.loops)
            + fetched
        )

    def limit(self, unit: UnitLimits | None) -> int:
        """Return how many registers a thread may have, so that a group fits onto a multiprocessor."""
        if unit is None:
            return self.costs.most_registers
        threads = ceil(self.sizes.facts.total_items / _WARP) * _WARP
        fitting = unit.registers // threads // _REGISTERS_AT_ONCE * _REGISTERS_AT_ONCE
        return min(self.costs.most_registers, fitting)


def _words(size: int) -> int:
    return max(1, size // _WORD)


@dataclass(frozen=True)
class GpuModel:
    """The time of one scheduled md_hom on a GPU."""

    step: StepModel
    memory: MemoryModel
    device: DeviceModel
    costs: GpuCosts

    @property
    def sizes(self) -> LoopSizes:
        """The loops."""
        return self.step.sizes

    @property
    def facts(self) -> TileFacts:
        """The md_hom under its schedule."""
        return self.step.sizes.facts

    @property
    def least_seconds(self) -> float:
        """Nothing is known sooner."""
        return 0.0

    @property
    def seconds(self) -> float:
        """The expected seconds: the longer of computation and traffic hides most of the other one."""
        costs = self.costs
        second = costs.second_kernel_seconds if self.facts.split else 0.0
        both = self._compute, self._traffic
        return costs.launch_seconds + second + max(both) + costs.unhidden_share * min(both)

    @property
    def _traffic(self) -> float:
        """Seconds that memory and the last cache take for what the caches before them do not hold."""
        costs, device = self.costs, self.device
        cache = device.caches[-1] if device.unit is not None else costs.cache_bytes
        missed = self.memory.traffic(cache) / (device.memory_rate or costs.memory_bytes_per_second)
        passed = self.memory.traffic(costs.unit_cache_bytes) / costs.cache_bytes_per_second
        return max(missed, passed) + costs.unhidden_share * min(missed, passed)

    @property
    def _compute(self) -> float:
        """Seconds of the multiprocessor that has most groups: it works, or all of its groups wait."""
        groups, units = self.sizes.all_groups, max(1, self.device.compute_units)
        works = ceil(groups / units) * self._group_cycles
        waits = ceil(groups / (units * self._resident_groups)) * self._alone
        return max(works, waits) / self.device.hertz(self.costs.least_clock_mhz)

    @cached_property
    def registers(self) -> GpuRegisters:
        """The registers of a thread."""
        return GpuRegisters(self.step, self.costs)

    @cached_property
    def _threads(self) -> int:
        """Threads of a group, those of whole warps."""
        lanes = max(1, self.device.lanes)
        return ceil(self.facts.total_items / lanes) * lanes

    @cached_property
    def _steps(self) -> float:
        """How many steps of the innermost loop a thread goes through."""
        return max(1.0, self.sizes.steps / (self.sizes.all_groups * self.facts.total_items))

    @cached_property
    def _group_cycles(self) -> float:
        """Cycles in which a multiprocessor does the work of a group, if it never waits."""
        costs, width = self.costs, self.facts.schedule.width
        loads = sum(self.step.load_cost(k, access) * self._coalescing(k) for k, access in self.sizes.inner)
        work = self.sizes.points * self.step.operations * width * _words(self.sizes.element)
        spilled = max(0.0, self.registers.needed - self.registers.limit(self.device.unit))
        moved = loads + spilled * costs.spilled_register
        cycles = self._steps * (work + moved * costs.load + costs.step) + self._copying
        return cycles * self._threads / costs.lanes_of_unit

    @cached_property
    def _alone(self) -> float:
        """Cycles from the start of a group to its end where nothing else is there: what waits for what.

        Where the next tile's copies are loaded one tile ahead, a group has work of its own meanwhile.
        """
        costs, facts = self.costs, self.facts
        from_memory = any(self.sizes.plan(k) is None for k, _ in self.sizes.inner)
        wait = costs.wait_of_load if from_memory else costs.wait_of_local_load
        chain = self.sizes.points * costs.wait_of_operation / max(self.sizes.totals, 1)
        tile = self._steps * (wait / costs.steps_ahead + chain) / max(self._refills, 1)
        barriers = costs.barrier if facts.staged else 2.0 * costs.barrier
        if not self._refills:
            return costs.wait_of_load + tile
        each = max(tile, costs.wait_of_copy) if facts.staged else tile + costs.wait_of_copy
        return costs.wait_of_load + self._refills * (each + barriers)

    @cached_property
    def _refills(self) -> int:
        """How often a group fills its copies."""
        plans = [self.sizes.plan(k) for k, _ in self.sizes.inner]
        if not any(plan is not None for plan in plans):
            return 0
        covered, length = self.sizes.covered, self.sizes.length
        return prod(ceil(covered(d) / length(d)) for d in self.facts.tiled_order)

    @cached_property
    def _copying(self) -> float:
        """Instructions of a thread that fill copies."""
        plans = [plan for k, _ in self.sizes.inner if (plan := self.sizes.plan(k)) is not None]
        each = sum(ceil(prod(plan.extents) / self.facts.total_items) for plan in plans)
        return each * self.costs.copied_element * self._refills

    @cached_property
    def _resident_groups(self) -> int:
        """Groups that a multiprocessor has room for at a time."""
        limits = self.device.unit
        if limits is None:
            return max(1, self.costs.resident_items // self._threads)
        needed = min(self.registers.needed, self.registers.limit(limits))
        registers = ceil(needed / _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        copied = local_bytes(self.facts, self.sizes.reads.buffers)
        most = min(
            limits.items // self._threads,
            limits.registers // (self._threads * registers),
            limits.local_memory // max(copied, 1),
            self.costs.most_groups,
        )
        return max(1, most)

    def _coalescing(self, k: int) -> float:
        """Return what a load costs by how neighbouring work-items' elements lie."""
        if self.sizes.plan(k) is not None:
            return self.costs.local_load
        access, schedule = self.sizes.reads.inputs[k], self.facts.schedule
        along = [d for d in schedule.item_order if schedule.items[d] > 1]
        if access is None or not along:
            return self.costs.scattered_load
        fastest = along[-1]
        if not access.uses(fastest):
            return self.costs.broadcast_load
        if not access.is_unit(fastest):
            return self.costs.scattered_load
        neighbours = schedule.strided[fastest] or self.sizes.private(fastest) == 1
        return self.costs.coalesced_load if neighbours else self.costs.blocked_load
