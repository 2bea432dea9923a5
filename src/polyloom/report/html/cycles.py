"""Where the cycles of a run went on its busiest PE, from the limit to what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.pe_program.tree import RoleCode
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.result import Counts, Trace, TraceKind

Events = npt.NDArray[np.void]


@dataclass(frozen=True)
class Part:
    """A share of a PE's time; ``kind``: its colour in the page."""

    kind: str
    label: str
    cycles: int

    def json(self) -> dict[str, Any]:
        """Return what the page for two runs reads."""
        return {"kind": self.kind, "label": self.label, "cycles": self.cycles}


@dataclass(frozen=True)
class Budget:
    """The cycles of a run as the PE (x, y) spent them; ``parts`` add up to all of them."""

    pe: tuple[int, int]
    parts: tuple[Part, ...]


def budget(result: SimulationResult) -> Budget | None:
    """Return the parts for the busiest PE that has a time line; None where nothing was recorded."""
    trace, machine = result.trace, result.program.machine
    if trace is None or not len(trace.events):
        return None
    pe = busiest(result.simulation, np.unique(trace.events["pe"]))
    return budget_of(
        trace, pe, machine, data_tasks(role.code for role in result.program.roles), result.cycles
    )


def busiest(counts: Counts, pes: npt.NDArray[np.integer[Any]]) -> int:
    """Return the number of the PE that worked longest, the first of those."""
    busy = counts.busy.ravel()
    return max(map(int, pes), key=lambda number: (int(busy[number]), -number))


def budget_of(trace: Trace, pe: int, machine: Machine, data: frozenset[str], cycles: int) -> Budget:
    """Return the parts for a PE; ``data``: what the trace calls tasks that elements start."""
    events = trace.events[trace.events["pe"] == pe]
    return Budget((pe % trace.width, pe // trace.width), tuple(_parts(trace, events, machine, data, cycles)))


def data_tasks(codes: Iterable[RoleCode]) -> frozenset[str]:
    """Return what a trace calls the tasks that elements of streams start."""
    names = [task.name for code in codes for task in code.data_tasks]
    return frozenset(each for name in names for each in (name, f"end of {name}"))


def _parts(
    trace: Trace, events: Events, machine: Machine, data: frozenset[str], cycles: int
) -> Iterator[Part]:
    tasks, simd, waits = (
        events[events["kind"] == kind] for kind in (TraceKind.TASK, TraceKind.SIMD, TraceKind.WAIT)
    )
    worked, waited = int(tasks["duration"].sum()), int(waits["duration"].sum())
    launch = len(simd) * machine.simd_launch
    elements = int(simd["duration"].sum()) - launch - _inside(waits, simd)
    dispatch = _dispatch(trace, tasks, machine, data)
    before, between, after = _idle(trace, tasks, data, cycles)
    yield Part("simd", "SIMD instructions at work", elements)
    yield Part("launch", "launching them", launch)
    yield Part("dispatch", "dispatching tasks", dispatch)
    yield Part("task", "scalar code and descriptors", worked - waited - elements - launch - dispatch)
    yield Part("wait", "waiting in tasks for the fabric", waited)
    yield Part("before", "idle until the first element comes", before)
    yield Part("between", "idle between elements", between)
    yield Part("after", "idle after the last task", after)


def _inside(waits: Events, simd: Events) -> int:
    """Return the cycles of waits that lie within SIMD instructions of the main thread."""
    if not len(simd):
        return 0
    at = np.searchsorted(simd["start"], waits["start"], side="right") - 1
    ends = simd["start"][at] + simd["duration"][at]
    return int(waits["duration"][(at >= 0) & (waits["start"] < ends)].sum())


def _dispatch(trace: Trace, tasks: Events, machine: Machine, data: frozenset[str]) -> int:
    cost = [
        machine.data_task_dispatch if name in data else 0 if name == "main" else machine.local_task_activate
        for name in trace.names
    ]
    if not len(tasks):
        return 0
    return int(np.minimum(np.array(cost)[tasks["name"]], tasks["duration"]).sum())


def _idle(trace: Trace, tasks: Events, data: frozenset[str], cycles: int) -> tuple[int, int, int]:
    """Return the idle cycles before the first element of a stream, after the last task, and others."""
    if not len(tasks):
        return 0, 0, cycles
    order = np.argsort(tasks["start"], kind="stable")
    starts = tasks["start"][order]
    ends = starts + tasks["duration"][order]
    gaps = np.maximum(starts - np.concatenate([[0], ends[:-1]]), 0)
    of_data = np.array([name in data for name in trace.names])[tasks["name"][order]]
    first = int(np.argmax(of_data)) if of_data.any() else -1
    before = int(gaps[: first + 1].sum())
    return before, int(gaps.sum()) - before, max(cycles - int(ends.max()), 0)
