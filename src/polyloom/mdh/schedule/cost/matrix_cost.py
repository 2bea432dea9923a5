"""How long a product takes whose blocks matrix units do: products, blocks that are loaded, copies, results.

A multiprocessor's units have a rate that all of its warps share; blocks come from its local memory, which has
one, too. What is copied, stored and waited for is as in other kernels (``gpu_cost``).

All numbers are data sheets and estimates; no matrix unit was at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, prod

from polyloom.mdh.schedule.cost.gpu_cost import GpuModel
from polyloom.mdh.schedule.matrix_units import Side, matrix_bytes, sides_of
from polyloom.mdh.tree.matrix.steps import FACTOR, SIDE, SUM

_OF_BLOCK = 8
"""Registers of a thread for a block of sums, or of a factor."""


@dataclass(frozen=True)
class MatrixModel(GpuModel):
    """The time of a product under a schedule with ``matrix``."""

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        return sides_of(self.facts, self.sizes.reads.buffers)

    @cached_property
    def _blocks(self) -> tuple[int, int]:
        """Blocks of a warp along rows and columns."""
        rows, columns, _ = self.facts.schedule.matrix
        return self.facts.schedule.private[rows] // SIDE, self.facts.schedule.private[columns] // SIDE

    @cached_property
    def _warps(self) -> int:
        return prod(self.facts.schedule.items)

    @cached_property
    def _depths(self) -> float:
        """Steps of a group in blocks of ``SIDE``, all reduced dimensions together."""
        return prod(self.sizes.extents[d] for d in self.facts.reduced) / SIDE

    @cached_property
    def _refills(self) -> int:
        local = self.facts.schedule.local[self.facts.schedule.matrix[2]]
        return max(1, round(self._depths * SIDE / local))

    @cached_property
    def _copying(self) -> float:
        """Instructions of a thread that fill copies, a piece of neighbours at a time."""
        threads = self._threads
        each = sum(ceil(side.elements / side.width / threads) for side in self._sides)
        return each * self.costs.copied_element * self._refills

    @cached_property
    def _finishing(self) -> float:
        """Instructions of a thread that store results, one after another."""
        rows, columns = self._blocks
        return rows * columns * SIDE * SIDE * self._warps / self._threads * 2.0 * self.costs.copied_element

    @cached_property
    def _step_cycles(self) -> float:
        """Cycles of all warps of a group for a block of steps: products, or the blocks that they need."""
        rows, columns = self._blocks
        multiplied = rows * columns * SIDE**3 / max(1, self.device.matrix_products)
        loaded = (rows + columns) * SIDE**2 * FACTOR.size / self.costs.local_bytes_per_cycle
        return self._warps * (max(multiplied, loaded) + self.costs.unhidden_share * min(multiplied, loaded))

    @cached_property
    def _group_cycles(self) -> float:
        own = (self._copying + self._finishing) * self._threads / self.costs.lanes_of_unit
        rows, columns = self._blocks
        left = 2 * rows * columns * SIDE**2 * SUM.size * self._warps / self.costs.local_bytes_per_cycle
        return self._depths * self._step_cycles + own + left

    @cached_property
    def _alone(self) -> float:
        """Cycles from the start of a group to its end where nothing else is there."""
        costs = self.costs
        tile = self._depths / self._refills * (costs.wait_of_local_load + self._step_cycles)
        strips = self._blocks[0] * (2.0 * costs.barrier + costs.wait_of_local_load)
        return self._refills * (costs.wait_of_copy + 2.0 * costs.barrier + tile) + strips + costs.wait_of_load

    @cached_property
    def _resident_groups(self) -> int:
        limits = self.device.unit
        if limits is None:
            return max(1, self.costs.resident_items // self._threads)
        rows, columns = self._blocks
        own = self.costs.registers_of_kernel + 2 * self.costs.registers_of_copy
        registers = min(self.costs.most_registers, own + _OF_BLOCK * (rows * columns + rows + columns))
        most = min(
            limits.items // self._threads,
            int(limits.registers // (self._threads * registers)),
            limits.local_memory // matrix_bytes(self.facts, self.sizes.reads.buffers),
            self.costs.most_groups,
        )
        return max(1, most)
