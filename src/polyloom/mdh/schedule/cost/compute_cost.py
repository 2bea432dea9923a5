"""How many cycles the instructions of a scheduled md_hom take, data at hand in the first cache.

A step of the innermost loop: operations, loads, the latency of chains, spilled registers. A register tile:
its start and its results. Copies into local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, product
from math import ceil, prod
from operator import add, mul

from polyloom.ir.types import ElementType
from polyloom.mdh.device.costs import NEAR, CpuCosts, InstructionCosts
from polyloom.mdh.schedule.addresses import Access
from polyloom.mdh.schedule.copy_plan import CopyPlan, is_turned, turned_share
from polyloom.mdh.schedule.cost.loop_sizes import LoopSizes
from polyloom.mdh.schedule.turning import turned_dimension
from polyloom.polyhedra.loops.tree import IntExpression, Number, sum_of

_PER_VECTOR = 1.5
"""What each further vector costs, of every second element's cost; an estimate, loops in the first cache."""

_OF_NARROW = {1: 0.5, 2: 0.75}
"""What a shuffled element of so many bytes costs, of one of four: a register has more; an estimate."""

_REVERSAL = 1.0
"""Instructions that put the elements of a vector into the other order."""


@dataclass(frozen=True)
class StepModel:
    """The instructions of one scheduled md_hom; ``vector_bytes``: of a register."""

    sizes: LoopSizes
    costs: InstructionCosts
    vector_bytes: int

    @cached_property
    def registers_per_value(self) -> int:
        """How many registers a vector takes, of the widest values on the way to a result."""
        size = self.sizes.facts.schedule.width * self.sizes.reads.widest
        return max(1, ceil(size / self.vector_bytes))

    @cached_property
    def operations(self) -> float:
        """Instructions of the scalar function and the combination."""
        work = self.sizes.reads.work
        if work.combining is None:
            return max(work.terms, self.costs.least_operations)
        if work.is_fused:
            return self.costs.operation
        return work.terms + max(work.combining, self.costs.operation)

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
            return self.costs.computed_address * self.sizes.points * width
        if self._is_constant(access):
            return self.sizes.points * self._constants_in_memory
        count = self.distinct(access)
        if vector is None or not access.uses(vector):
            return float(count)
        plan = self.sizes.plan(k)
        unit = self._copy_is_unit(plan, vector) if plan is not None else access.is_unit(vector)
        aligned = sum(1 for step in access.steps[-1] if step) == 1
        aligned = aligned and (plan is None or plan.has_whole_vectors(width))
        is_single = self.sizes.private(vector) == 1
        split = self.costs.split_load if is_single else self.costs.split_load_of_several
        if plan is None and access.strides[vector] == Number(-1):
            return count * self.registers_per_value * (split + _REVERSAL)
        if not unit:
            distance = access.strides[vector] if plan is None else None
            apart = self.near_element(distance, access.buffer.type) * width
            turned = turned_dimension(self.sizes.facts, access) if plan is None else None
            return count * (apart if turned is None else min(apart, self._turned))
        return count * self.registers_per_value * (self.costs.aligned_load if aligned else split)

    def shared(self, k: int) -> float:
        """Return which part of an input's loads a step does: points of a register tile share elements.

        ``A[i - 1][j]`` at one point is ``A[i][j]`` at the point before, so that both are loaded once.
        """
        return self._shared.get(k, 1.0)

    @cached_property
    def _shared(self) -> dict[int, float]:
        if self.sizes.points == 1 or len(self.sizes.inner) == 1:
            return {}
        spots = tuple(
            (self.sizes.private(d), self.sizes.facts.width(d)) for d in range(len(self.sizes.extents))
        )
        found = dict[int, float]()
        for numbers, offsets in self.sizes.reads.neighbours:
            if not any(self.sizes.plan(k) is not None for k in numbers):
                access = self.sizes.reads.inputs[numbers[0]]
                assert access is not None
                part = distinct_elements(access.steps, offsets, spots)
                found |= dict.fromkeys(numbers, part / (len(numbers) * self.distinct(access)))
        return found

    def near_element(self, distance: IntExpression | None, kind: ElementType) -> float:
        """Return the cost of an element where those of a vector lie apart: near ones are shuffled out.

        ``distance``: None where it is not known.
        """
        gathered = self.costs.gathered_element
        second = self.costs.every_second_element * _OF_NARROW.get(kind.size, 1.0)
        if distance == Number(2):
            return second
        if isinstance(distance, Number) and distance.value in NEAR:
            return min(gathered, _PER_VECTOR * second * (distance.value - 1))
        return gathered

    @property
    def _turned(self) -> float:
        """Return the cost of a vector out of a block that is turned in registers."""
        steps = self.sizes.facts.schedule.width.bit_length() - 1
        return self.registers_per_value * (self.costs.split_load + steps * self.costs.turned_step)

    @property
    def _is_wide(self) -> bool:
        return self.vector_bytes >= self.costs.wide_vector_bytes

    @cached_property
    def registers(self) -> int:
        """How many vector registers there are."""
        return self.costs.wide_vector_registers if self._is_wide else self.costs.vector_registers

    @cached_property
    def reserved(self) -> int:
        """How many of them are needed beside what a step needs."""
        return self.costs.wide_reserved_registers if self._is_wide else self.costs.reserved_registers

    @cached_property
    def needed(self) -> int:
        """Registers that a step needs, values that never change not counted."""
        totals = self.sizes.accumulators if self.sizes.facts.combiner is not None else 0
        return (totals + self.live) * self.registers_per_value

    @cached_property
    def _constants_in_memory(self) -> float:
        """Which part of the values that never change does not stay in registers."""
        count = sum(self.distinct(a) for _, a in self.sizes.inner if a is not None and self._is_constant(a))
        room = max(0, self.registers - self.reserved - self.needed)
        return max(0.0, 1.0 - room / max(count, 1))

    def _copy_is_unit(self, plan: CopyPlan, vector: int) -> bool:
        return sum(s[vector] * x for s, x in zip(plan.access.steps, plan.strides, strict=True)) == 1

    def _is_constant(self, access: Access | None) -> bool:
        """Whether a value is loaded once for the whole kernel."""
        if access is None or self.sizes.is_tested:
            return False
        return all(not access.uses(d) or self.is_unrolled(d) for d in range(len(self.sizes.extents)))

    def is_unrolled(self, d: int) -> bool:
        """Whether a reduced dimension has no loop."""
        return (
            d in self.sizes.facts.reduced
            and self.sizes.private(d) * self.sizes.facts.width(d) >= self.sizes.extents[d]
        )

    @cached_property
    def live(self) -> int:
        """Loaded values that are needed again, at the point of a step where they are most."""
        if self.sizes.is_tested:
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


@dataclass(frozen=True)
class CycleModel:
    """The cycles of one scheduled md_hom on a CPU, data at hand in the first cache."""

    step: StepModel
    costs: CpuCosts

    @property
    def sizes(self) -> LoopSizes:
        """The loops."""
        return self.step.sizes

    @cached_property
    def step_cycles(self) -> float:
        """Cycles of one step of the innermost loop, from the first cache."""
        loads = sum(self.step.load_cost(k, access) * self.step.shared(k) for k, access in self.sizes.inner)
        regs = self.step.registers_per_value
        compute = self.sizes.points * self.step.operations * regs / self.costs.fma_per_cycle
        outputs = len(self.sizes.facts.hom.outputs)
        latency = self.costs.fma_latency * self.sizes.points * outputs / max(self.sizes.accumulators, 1)
        looped = any(not self.step.is_unrolled(d) for d in self.sizes.facts.reduced)
        latency *= 1.0 if looped else self.costs.latency_between_tiles
        latency = latency if self.sizes.facts.combiner is not None else 0.0
        loading = loads / self.costs.loads_per_cycle
        cycles = max(compute, loading, latency) + self.costs.load_overlap * min(compute, loading)
        wide = self.costs.vector_of_several if regs > 1 else 1.0
        return (cycles + self.costs.loop_step) * wide * self.spill_factor() * self._guard_factor()

    def spill_factor(self) -> float:
        """Return how much slower a step is for values that do not fit into registers."""
        over = self.step.needed + self.step.reserved - 1 - self.step.registers
        return 1.0 if over <= 0 else self.costs.spill_start + self.costs.spill_per_register * over

    def _guard_factor(self) -> float:
        return self.costs.guard_factor if self.sizes.is_tested else 1.0

    @property
    def steps(self) -> float:
        """How often the innermost step runs; those that are cut have loops of their own and count more."""
        shares, cut = self.sizes.of_steps, self.costs.guard_factor
        if shares.whole < shares.some and self.sizes.lanes_are_apart:
            cut *= self.sizes.facts.schedule.width
        return self.sizes.steps * (shares.whole + cut * (shares.some - shares.whole))

    @cached_property
    def copy_cycles(self) -> float:
        """Cycles that copies into local memory take, in all; those of constants are packed before."""
        count, dimensions = self.sizes.all_groups, range(len(self.sizes.extents))
        for d in self.sizes.facts.tiled_order:
            count *= ceil(self.sizes.covered(d) / self.sizes.length(d))
        total = 0.0
        for k in range(len(self.sizes.reads.inputs)):
            plan = self.sizes.plan(k)
            if plan is not None and not plan.access.buffer.constant:
                total += plan.elements * count * self._copied_element(plan)
        return total and total * self.sizes.shares(tuple(map(self.sizes.length, dimensions))).some

    def _copied_element(self, plan: CopyPlan) -> float:
        if plan.axes[-1] == len(plan.axes) - 1:
            return self.costs.copied_element
        if not is_turned(plan):
            return self.costs.reordered_element
        share = turned_share(plan, self.sizes.facts.schedule.width)
        return share * self.costs.turned_element + (1 - share) * self.costs.transposed_element

    @cached_property
    def tile_cycles(self) -> float:
        """Cycles of a register tile beside the reduction: start, results."""
        regs, width = self.step.registers_per_value, self.sizes.facts.schedule.width
        if self.sizes.facts.combiner is None:
            stored = self.sizes.totals * regs * self.costs.stored_vector
            start = self.costs.map_tile if self.sizes.has_tiles else 0.0
            return stored + start + self._scattered_stores(width)
        lanes = self.costs.combined_lanes if self.sizes.facts.vector_is_reduced else 0.0
        start = self.sizes.totals * regs * self.costs.total + self.sizes.totals * lanes
        start += self.costs.reduction_tile
        return start + self._scattered_stores(width) + self._waiting()

    def _waiting(self) -> float:
        waiting = self.sizes.totals * self.step.registers_per_value * self.costs.waiting_total
        return waiting if self.sizes.facts.waits else 0.0

    def _scattered_stores(self, width: int) -> float:
        vector = self.sizes.facts.schedule.vector
        if vector is None or vector not in self.sizes.facts.kept:
            return 0.0
        apart = [a for a in self.sizes.reads.outputs if a is not None and not a.is_unit(vector)]
        cost = sum(self._scattered_element(a, apart, vector) for a in apart)
        return cost * self.sizes.totals / max(1, len(self.sizes.reads.outputs)) * width

    def _scattered_element(self, access: Access, others: Sequence[Access], vector: int) -> float:
        """Return the cost of an element of a vector that is stored, by shuffles where several take turns."""
        alone, stride = self.costs.scattered_element, access.strides[vector]
        alike = [a for a in others if a.buffer == access.buffer and a.strides[vector] == stride]
        starts = {sum_of([(1, a.base), (-1, access.base)]) for a in alike}
        numbers = sorted(start.value for start in starts if isinstance(start, Number))
        is_whole = isinstance(stride, Number) and len(alike) == len(numbers) == stride.value
        if not is_whole or numbers[-1] - numbers[0] != len(numbers) - 1:
            return alone
        return min(alone, self.step.near_element(stride, access.buffer.type))


@lru_cache(maxsize=4096)
def distinct_elements(
    view: tuple[tuple[int, ...], ...],
    offsets: tuple[tuple[int, ...], ...],
    spots: tuple[tuple[int, int], ...],
) -> int:
    """Return how many elements the points of a step read through views that differ by ``offsets``.

    ``view``: its coefficients; ``spots``: per dimension, how many points a step has, and how far apart.
    """
    points = list(product(*(range(0, count * apart, apart) for count, apart in spots)))
    places = [tuple(sum(map(mul, steps, point)) for steps in view) for point in points]
    return len({tuple(map(add, place, offset)) for place in places for offset in offsets})


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
    found = [_elements(view, spots, order) for view in views]
    if lead:
        led = _elements(lead, spots, order)
        turns = sorted(range(len(led)), key=led.__getitem__)
        found = [[elements[k] for k in turns] for elements in found]
    changes = [0] * (1 + prod(n for n, _ in spots))
    for elements in found:
        last = {element: k for k, element in enumerate(elements)}
        first = {element: k for k, element in reversed([*enumerate(elements)])}
        for k in first.values():
            changes[k] += 1
        for k in last.values():
            changes[k + 1] -= 1
    return max(accumulate(changes), default=0)


_INDEX = 1 << 40
"""An index is less; several are the digits of one number."""


def _elements(
    view: tuple[tuple[int, ...], ...], spots: Sequence[tuple[int, int]], order: Sequence[int]
) -> list[int]:
    """Return a number for the element that a view reads at each point, in order; they rise as indices do."""
    elements = [0]
    for d in order:
        count, distance = spots[d]
        step = 0
        for steps in view:
            step = step * _INDEX + steps[d] * distance
        elements = [element + k * step for element in elements for k in range(count)]
    return elements
