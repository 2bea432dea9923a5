"""How many cycles the instructions of a scheduled md_hom take, data at hand in the first cache.

A step of the innermost loop: operations, loads, the latency of chains, spilled registers. A register tile:
its start and its results. Copies into local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import ceil, prod

import numpy as np

from polyloom.ir.expressions import Binary, BinaryOp, Expression, Unary, children, walk
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.schedule.addresses import Access
from polyloom.mdh.schedule.copy_plan import CopyPlan, is_turned
from polyloom.mdh.schedule.loop_sizes import LoopSizes

FMA_PER_CYCLE, LOADS_PER_CYCLE, LATENCY = 2.0, 2.0, 4.0

ACROSS_LINES = 4.0
"""Loads that a vector across two lines stands for, in tiles of several vectors: measured, not explained."""


@dataclass(frozen=True)
class StepModel:
    """The instructions of one scheduled md_hom."""

    sizes: LoopSizes
    device: DeviceModel

    @cached_property
    def registers_per_value(self) -> int:
        """How many registers a vector takes."""
        return max(1, ceil(self.sizes.facts.schedule.width * self.sizes.element / self.device.vector_bytes))

    @cached_property
    def operations(self) -> float:
        """Instructions of the scalar function and the combination."""
        hom = self.sizes.facts.hom
        work = sum(_operations(term) for term in hom.terms)
        if self.sizes.facts.combiner is None:
            return max(work, 0.5)
        combine = sum(_operations(result) for result in self.sizes.facts.combiner.results)
        if (
            len(hom.terms) == 1
            and _is_product(hom.terms[0])
            and _is_sum(self.sizes.facts.combiner.results[0])
        ):
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
                count *= self.sizes.private(dims[0])
            elif dims:
                count *= self._different(steps, dims)
        return count

    def _different(self, steps: Sequence[int], dims: Sequence[int]) -> int:
        width = self.sizes.facts.width
        ranges = [[k * steps[d] * width(d) for k in range(self.sizes.private(d))] for d in dims]
        return len({sum(numbers) for numbers in product(*ranges)})

    def load_cost(self, k: int, access: Access | None) -> float:
        """Return the load instructions of a step."""
        vector, width = self.sizes.facts.schedule.vector, self.sizes.facts.schedule.width
        if access is None:
            return 3.0 * self.sizes.points * width
        if self._is_constant(access):
            return self.sizes.points * self._constants_in_memory
        count = self.distinct(access)
        if vector is None or not access.uses(vector):
            return float(count)
        plan = self.sizes.plan(k)
        unit = self._copy_is_unit(plan, vector) if plan is not None else access.is_unit(vector)
        aligned = sum(1 for step in access.steps[-1] if step) == 1
        across = 2.0 if self.sizes.private(vector) == 1 else ACROSS_LINES  # a vector that lies in two lines
        return (
            count * self.registers_per_value * (1.1 if aligned else across) if unit else 2.5 * count * width
        )

    @cached_property
    def _registers(self) -> int:
        return 32 if self.device.vector_bytes >= 64 else 16

    @cached_property
    def _needed(self) -> int:
        """Registers that a step needs, values that never change not counted."""
        totals = self.sizes.totals if self.sizes.facts.combiner is not None else 0
        return (totals + self.live) * self.registers_per_value

    @cached_property
    def _constants_in_memory(self) -> float:
        """Which part of the values that never change does not stay in registers."""
        count = sum(self.distinct(a) for _, a in self.sizes.inner if a is not None and self._is_constant(a))
        room = max(0, self._registers - 2 - self._needed)
        return max(0.0, 1.0 - room / max(count, 1))

    def _copy_is_unit(self, plan: CopyPlan, vector: int) -> bool:
        return sum(s[vector] * x for s, x in zip(plan.access.steps, plan.strides, strict=True)) == 1

    def _is_constant(self, access: Access | None) -> bool:
        """Whether a value is loaded once for the whole kernel."""
        if access is None or self.sizes.facts.hom.guard is not None:
            return False
        return all(not access.uses(d) or self._unrolled(d) for d in range(len(self.sizes.extents)))

    def _unrolled(self, d: int) -> bool:
        return (
            d in self.sizes.facts.reduced
            and self.sizes.private(d) * self.sizes.facts.width(d) >= self.sizes.extents[d]
        )

    @cached_property
    def step_cycles(self) -> float:
        """Cycles of one step of the innermost loop, from the first cache."""
        loads = sum(self.load_cost(k, access) for k, access in self.sizes.inner)
        regs = self.registers_per_value
        compute = self.sizes.points * self.operations * regs / FMA_PER_CYCLE
        latency = LATENCY * self.sizes.points * len(self.sizes.facts.hom.outputs) / max(self.sizes.totals, 1)
        looped = any(not self._unrolled(d) for d in self.sizes.facts.reduced)
        latency *= 1.0 if looped else 0.4  # the next tile begins before this one ends
        latency = latency if self.sizes.facts.combiner is not None else 0.0
        cycles = max(compute, loads / LOADS_PER_CYCLE, latency) + 0.35 * min(compute, loads / LOADS_PER_CYCLE)
        return (cycles + 1.0) * self._spill_factor() * self._guard_factor()

    def _spill_factor(self) -> float:
        """Return how much slower a step is for values that do not fit into registers."""
        over = self._needed + 1 - self._registers
        return 1.0 if over <= 0 else 1.15 + 0.06 * over

    @cached_property
    def live(self) -> int:
        """Loaded values that are needed again, at the point of a step where they are most."""
        if self.sizes.facts.hom.guard is not None:
            return 0
        schedule, follow = self.sizes.facts.schedule, self.sizes.facts.schedule.follow
        used = {k: a for k, a in self.sizes.inner if a is not None and not self._is_constant(a)}
        lead = (
            None if follow is None or self.sizes.facts.combiner is None else self.sizes.reads.inputs[follow]
        )
        spots = tuple(
            (self.sizes.private(d), self.sizes.facts.width(d)) for d in range(len(self.sizes.extents))
        )
        steps = tuple(access.steps for access in used.values())
        return live_values(spots, schedule.unrolled_order, steps, None if lead is None else lead.steps)

    def _guard_factor(self) -> float:
        return 1.0 if self.sizes.facts.hom.guard is None else 3.0

    @cached_property
    def copy_cycles(self) -> float:
        """Cycles that copies into local memory take, in all."""
        count = prod(self.sizes.groups(d) for d in range(len(self.sizes.extents)))
        for d in self.sizes.facts.tiled_order:
            count *= ceil(self.sizes.covered(d) / self.sizes.length(d))
        total = 0.0
        for k in range(len(self.sizes.reads.inputs)):
            plan = self.sizes.plan(k)
            if plan is not None:
                straight = plan.axes[-1] == len(plan.axes) - 1
                total += plan.elements * count * (0.25 if straight else 0.8 if is_turned(plan) else 2.0)
        return total

    @cached_property
    def tile_cycles(self) -> float:
        """Cycles of a register tile beside the reduction: start, results."""
        regs, width = self.registers_per_value, self.sizes.facts.schedule.width
        if self.sizes.facts.combiner is None:
            stores = self.sizes.totals * regs * 1.0
            return stores + 2.0
        across = self.sizes.totals * 8.0 if self.sizes.facts.vector_is_reduced else 0.0
        return self.sizes.totals * regs * 2.0 + across + 4.0 + self._scattered_stores(width) + self._waiting()

    def _waiting(self) -> float:
        return self.sizes.totals * self.registers_per_value * 4.0 if self.sizes.facts.waits else 0.0

    def _scattered_stores(self, width: int) -> float:
        vector = self.sizes.facts.schedule.vector
        if vector is None or vector not in self.sizes.facts.kept:
            return 0.0
        views = self.sizes.reads.outputs
        apart = sum(1 for a in views if a is not None and not a.is_unit(vector))
        return apart * self.sizes.totals * width * 2.0


@lru_cache(maxsize=4096)
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
            return op.instructions
        case Binary(op=op):
            return op.instructions
        case _:
            return 1.0 if children(part) else 0.0


def _is_product(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.MULTIPLY and expression.type.is_float


def _is_sum(expression: Expression) -> bool:
    return isinstance(expression, Binary) and expression.op is BinaryOp.ADD
