"""What adapters cost: what comes through them arrives later, and what leaves by them is done later.

Elements go along a border line in one order, each PE taking all that pass it, so that the PE with the most
work decides. Rows and columns work on what they have while others get theirs. Not in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.border.flows import LINE, Kind
from polyloom.wafer.dataflow.streams import index_names
from polyloom.wafer.pe_program.tree import DataTask
from polyloom.wafer.placement.cost.code import Pricer
from polyloom.wafer.placement.cost.latency import stage_cycles
from polyloom.wafer.placement.cost.role import data_task_cycles, ends_of, on_pe, pricer_at, ranges_of
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram
from polyloom.wafer.roles.adapter_work import AdapterRole, AdapterWork, queue_name


@dataclass(frozen=True)
class Arrival:
    """``before``: the last row or column that is served gets its first element; ``cycles``: all have theirs.

    Both in cycles from the start.
    """

    before: float
    cycles: float

    def until(self, work: float) -> float:
        """Return when PEs are done that work so long on what comes to them."""
        return self.before + max(self.cycles - self.before, work)

    def later(self, other: Arrival) -> Arrival:
        """Return what comes of two PEs of a line."""
        return Arrival(max(self.before, other.before), max(self.cycles, other.cycles))


@dataclass(frozen=True)
class AdapterCycles:
    """``arrivals``: by tensor; ``leaving``: until all results have left, from when the first ones come."""

    arrivals: Mapping[str, Arrival]
    leaving: float


def adapter_cycles(program: WaferProgram) -> AdapterCycles:
    """Return what adapters take: of each tensor that arrives, and the busiest with results."""
    arrivals: dict[str, Arrival] = {}
    leaving = 0.0
    for role in program.roles:
        if isinstance(role.work, AdapterRole):
            for pe in dict.fromkeys(ends_of(role)):
                here = _on_pe(program, role, role.work, pe)
                for tensor, arrival in here.arrivals.items():
                    arrivals[tensor] = arrival.later(arrivals.get(tensor, arrival))
                leaving = max(leaving, here.leaving)
    return AdapterCycles(arrivals, leaving)


def _on_pe(
    program: WaferProgram, role: RoleProgram, adapters: AdapterRole, pe: tuple[int, int]
) -> AdapterCycles:
    """Add up the adapters of a PE, which does one after the other."""
    pricer = pricer_at(program.machine, role, pe)
    arrivals: dict[str, Arrival] = {}
    arriving, leaving = pricer.code(role.code.main), 0.0
    for work in adapters.works:
        cycles = sum(_data_task(pricer, work, task, pe) for task in role.code.data_tasks)
        kept = cycles if work.buffer is not None else 0.0
        task = next((t for t in role.code.local_tasks if t.name == work.task), None)
        cycles += 0.0 if task is None else pricer.code(task.body) + pricer.once(task.body)
        cycles += stage_cycles(program.machine) * (0 if work.adapter.spread else work.adapter.line.length - 1)
        if work.adapter.inward:
            before = arriving + kept + (cycles - kept) * _share_before(work, pe)
            arriving += cycles
            arrivals[work.adapter.tensor] = Arrival(before, arriving)
        else:
            leaving += cycles
    return AdapterCycles(arrivals, leaving)


def _data_task(pricer: Pricer, work: AdapterWork, task: DataTask, pe: tuple[int, int]) -> float:
    """Return the cycles of what comes from a port as sparse elements."""
    queues = {queue_name(work.adapter, k.origin, incoming=True): k for k in work.at_ports()}
    kind = queues.get(task.queue)
    if kind is None:
        return 0.0
    indices = _items(work, (kind,), pe)[1:]
    names = [f"{task.queue}_{name}" for name in index_names(work.adapter.rank)[:-1]]
    return data_task_cycles(pricer, task, names, indices)


def _share_before(work: AdapterWork, pe: tuple[int, int]) -> float:
    """Return how much of what passes a PE comes before the first element for its own row or column."""
    passing = _items(work, work.kinds, pe)
    own = _items(work, [kind for kind in work.kinds if LINE in kind.targets], pe)
    if not own:
        return 0.0
    place = 0
    for here, there in zip(own, passing, strict=True):
        place = place * (there[-1] - there[0] + 1) + here[0] - there[0]
    return place / math.prod(there[-1] - there[0] + 1 for there in passing)


def _items(work: AdapterWork, kinds: Sequence[Kind], pe: tuple[int, int]) -> list[range]:
    """Return the box of the ports and indices of kinds on a PE; nothing where it has none of them."""
    found: isl.Set | None = None
    for kind in kinds:
        here = on_pe(kind.here(work.adapter), pe)
        found = here if found is None else found.union(here)
    return [] if found is None else ranges_of(found)
