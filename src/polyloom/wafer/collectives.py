"""Reductions along rows and columns by cost: one chain, two phases of chains, or a tree.

The PEs of a line are cut into groups, each reduced by a chain to its PE nearest to the side; those are
reduced the same way, and so on, until one is left. One group is a chain, two levels are Luczynski's two-phase
reduction, groups of two are a binary tree. Each level is a chain over PEs that are ``step`` apart.

The cost is the model of Luczynski et al. (Near-Optimal Wafer-Scale Reduce, HPDC 2024):
T = max(C, E/N + L) + (2 T_R + 1) D, with contention C, energy E, N links, distance L, depth D and the ramp's
latency T_R. Here a PE ends one level before it begins the next, so that C and L add up, and each level costs
the start of its task and instruction as well.
Broadcasts need no choice: routers copy a wavelet to several sides, so a line takes one cycle a hop, once.
Not in the papers: dtg_codegen says only that results are reduced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import islpy as isl

from polyloom.polyhedra.bounds import (
    integer_bounds,
)
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.broadcasts import links_and_directions
from polyloom.wafer.dataflow.reductions import Chain, Results
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.machine.instructions import combining_instruction
from polyloom.wafer.machine.model import Machine


class ReductionShape(Enum):
    """How a line is reduced; the value is its name on the command line."""

    AUTO = "auto"
    CHAIN = "chain"
    TWO_PHASE = "two-phase"
    TREE = "tree"


@dataclass(frozen=True)
class Estimate:
    """``groups``: how many PEs a group has at each level; ``cycles``: what the model says."""

    shape: ReductionShape
    groups: tuple[int, ...]
    cycles: int


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """What was chosen for a chain: ``pes`` of the longest line, ``elements`` that each of them has.

    ``estimates``: of the best grouping of each shape; ``reason``: why nothing else was to be had, or empty.
    """

    name: str
    tensor: str
    side: str
    pes: int
    elements: int
    estimates: tuple[Estimate, ...]
    chosen: Estimate
    reason: str


@dataclass(frozen=True, eq=False)
class _Line:
    """A chain to which every PE of its lines contributes the same elements.

    ``distance``: ``{ PE[x, y] -> [d] }``: of each contributor from the last one of its line.
    """

    distance: isl.Map
    pes: int
    elements: int


def plan_reductions(
    graph: TaskGraph, border: Border, machine: Machine, wanted: ReductionShape, *, simd: bool
) -> tuple[TaskGraph, tuple[Reduction, ...]]:
    """Choose a shape for every chain that reduces whole lines, and make its levels chains of their own.

    ``simd``: whether instructions on the fabric may be used. Levels need queues and colors: as many as the
    machine has left are given to the chains in their order.
    """
    spare = _spare(graph, border, machine)
    results: list[Results] = []
    found: list[Reduction] = []
    for result in graph.results:
        levels: dict[str, tuple[Chain, ...]] = {}
        for chain in result.chains:
            reduction, levels[chain.name] = _plan(chain, machine, wanted, spare, simd)
            if reduction is not None:
                found.append(reduction)
                spare = spare.without(len(reduction.chosen.groups) - 1)
        reduce = tuple(level for chain in result.reduce for level in levels[chain.name])
        leave = tuple(level for chain in result.leave for level in levels[chain.name])
        results.append(replace(result, reduce=reduce, leave=leave))
    return replace(graph, results=tuple(results)), tuple(found)


def _plan(
    chain: Chain, machine: Machine, wanted: ReductionShape, spare: _Spare, simd: bool
) -> tuple[Reduction | None, tuple[Chain, ...]]:
    line = _line_of(chain)
    if line is None:
        return None, (chain,)
    each = _element_cycles(chain, line.elements, machine, simd)
    most = min(1 + spare.levels, max(1, math.ceil(math.log2(line.pes))))
    estimates = [_estimate(balanced(line.pes, n), line, machine, each) for n in range(1, most + 1)]
    chosen = _choose(estimates, wanted)
    reduction = Reduction(
        name=chain.name,
        tensor=chain.tensor,
        side=chain.side.value,
        pes=line.pes,
        elements=line.elements,
        estimates=tuple(_best_of_each(estimates)),
        chosen=chosen,
        reason=_reason(line, most, wanted),
    )
    levels = staged(chain, line.distance, chosen.groups) if len(chosen.groups) > 1 else (chain,)
    return reduction, levels


def _choose(estimates: Sequence[Estimate], wanted: ReductionShape) -> Estimate:
    """Return the cheapest; of a stated shape, as many levels as it may have, or what comes nearest."""
    if wanted is ReductionShape.AUTO:
        return min(estimates, key=lambda e: (e.cycles, len(e.groups)))
    levels = {ReductionShape.CHAIN: 1, ReductionShape.TWO_PHASE: 2, ReductionShape.TREE: len(estimates)}
    return estimates[min(levels[wanted], len(estimates)) - 1]


def _best_of_each(estimates: Sequence[Estimate]) -> Iterator[Estimate]:
    for shape in ReductionShape:
        same = [e for e in estimates if e.shape is shape]
        if same:
            yield min(same, key=lambda e: e.cycles)


def _reason(line: _Line, most: int, wanted: ReductionShape) -> str:
    full = max(1, math.ceil(math.log2(line.pes)))
    if most < full and wanted in (ReductionShape.AUTO, ReductionShape.TREE):
        return f"queues and colors are left for {most} of the {full} levels of a binary tree"
    return ""


# The model.


def _estimate(groups: tuple[int, ...], line: _Line, machine: Machine, each: int) -> Estimate:
    shapes = {1: ReductionShape.CHAIN, 2: ReductionShape.TWO_PHASE}
    shape = shapes.get(len(groups), ReductionShape.TREE)
    return Estimate(shape, groups, reduction_cycles(groups, line.pes, line.elements, machine, each))


def reduction_cycles(groups: Sequence[int], pes: int, elements: int, machine: Machine, each: int = 1) -> int:
    """Return what the model says for a line of ``pes``: C + L + (2 T_R + 1) D, and what starts each level.

    ``each``: cycles of a PE for an element, 1 with instructions on the fabric.
    """
    contention, distance = len(groups) * elements * each, (pes - 1) * machine.hop_latency
    depth = sum(size - 1 for size in groups)
    started = machine.local_task_activate + (machine.simd_launch if each == 1 else 0)
    return contention + distance + (2 * machine.ramp_latency + each) * depth + len(groups) * started


def _element_cycles(chain: Chain, elements: int, machine: Machine, simd: bool) -> int:
    """Return what an element costs a PE: 1 with an instruction, else one iteration of the loop."""
    operator = chain.reduction.operator
    if simd and operator is not None and combining_instruction(operator, chain.type) is not None:
        return 1
    if elements == 1:
        return machine.receive + machine.scalar_operation
    body = machine.receive + machine.scalar_load + 2 * machine.scalar_operation + machine.send
    return body + machine.loop_iteration


def balanced(pes: int, levels: int) -> tuple[int, ...]:
    """Return the sizes of groups, as equal as they can be, with which so many levels reduce a line.

    ``balanced(12, 2)`` is ``(4, 3)``.
    """
    base = max(1, int(pes ** (1 / levels)))
    sizes = [base] * levels
    for k in range(levels):
        if math.prod(sizes) < pes:
            sizes[k] += 1
    while math.prod(sizes) < pes:  # the root was rounded
        sizes[0] += 1
    return tuple(sizes)


# Which chains reduce whole lines.


def _line_of(chain: Chain) -> _Line | None:
    """Return what a chain reduces; None where its PEs have different elements, or are not side by side."""
    contributors = chain.contributors
    if chain.reduction.operator is None or chain.own.is_disjoint(chain.upstream):
        return None
    others = chain.nearer.union(chain.nearer.reverse())
    pairs = others.intersect_domain(contributors).intersect_range(contributors)
    if not pairs.apply_range(chain.own).is_subset(chain.own):
        return None
    onwards = contributors.subtract(chain.last).apply(chain.onwards(1, 1))
    if not (onwards.is_subset(contributors) and chain.last.is_subset(contributors)):
        return None
    distance = _distance(chain, contributors)
    ((_, farthest),) = integer_bounds(distance.range())
    return _Line(distance, farthest + 1, _elements(chain))


def _distance(chain: Chain, contributors: isl.Set) -> isl.Map:
    same = isl.Map("{ PE[x, y] -> PE[x, y] }")
    to_last = chain.nearer.union(same).intersect_domain(contributors).intersect_range(chain.last)
    dx, dy = chain.side.step
    along = {1: "x1 - x", -1: "x - x1"}.get(dx) or {1: "y1 - y", -1: "y - y1"}[dy]
    measured = isl.Map(f"{{ [PE[x, y] -> PE[x1, y1]] -> [{along}] }}")
    return to_last.domain_map().reverse().apply_range(measured).coalesce()


def _elements(chain: Chain) -> int:
    """Return how many elements a PE has at most, by the box around them.

    From the distances of two elements of one PE: isl may take many seconds, of which it counts few
    operations, for the ends of the boxes as functions of the PEs.
    """
    apart = chain.own.reverse().apply_range(chain.own).deltas()
    return math.prod(high + 1 for _, high in integer_bounds(apart))


# Levels.


def staged(chain: Chain, distance: isl.Map, groups: Sequence[int]) -> tuple[Chain, ...]:
    """Return the chains of all levels, the last one as the chain itself where it leaves and by name."""
    levels: list[Chain] = []
    step = 1
    for number, size in enumerate(groups, start=1):
        is_final = number == len(groups)
        levels.append(_level(chain, distance, step, size, 0 if is_final else number))
        step *= size
    return tuple(levels)


def _level(chain: Chain, distance: isl.Map, step: int, size: int, number: int) -> Chain:
    """Return a chain over the PEs that are ``step`` apart, in groups of ``size``; ``number``: 0 for the last.

    The PE at distance d has the place d / step in its group; place 0 takes what the others have.
    """

    def at(condition: str) -> isl.Set:
        taking_part = isl.Set(f"{{ [d] : d mod {step} = 0 and {condition} }}")
        return distance.intersect_range(taking_part).domain().coalesce()

    place = f"floor(d/{step}) mod {size}"
    senders = at(f"{place} >= 1")
    receivers = senders.apply(chain.onwards(step, step))
    leaves = chain.leaves and not number
    members = senders.union(receivers)
    members = members.union(at("d = 0")) if leaves else members
    return replace(
        chain,
        leaves=leaves,
        sparse=chain.sparse and leaves,
        own=chain.own.intersect_domain(members).coalesce(),
        upstream=chain.own.intersect_domain(receivers).coalesce(),
        contributors=chain.contributors.intersect(members).coalesce(),
        last=members.intersect(at(f"{place} = 0")).coalesce(),
        level=number,
        step=step,
        second=at(f"floor(d/{step}) mod 2 = 1"),
    )


# What is left of queues and colors.


@dataclass(frozen=True)
class _Spare:
    queues: int
    colors: int

    @property
    def levels(self) -> int:
        """How many levels more than one there is room for: each takes a queue and up to two colors."""
        return max(0, min(self.queues, self.colors // 2))

    def without(self, levels: int) -> _Spare:
        return _Spare(self.queues - levels, self.colors - 2 * levels)


def _spare(graph: TaskGraph, border: Border, machine: Machine) -> _Spare:
    """Return what the layer leaves even if all its streams and chains met on one PE."""
    chains = sum(len(result.chains) for result in graph.results)
    moves = [move for result in graph.results for move in result.moves]
    links, directions = links_and_directions(moves)
    taken = len(graph.streams) + 2 * chains + links + 2 * directions + 2 * len(border.adapters)
    queues = len(machine.input_queues) - len(graph.streams) - chains - links - directions
    return _Spare(queues, machine.colors - taken)
