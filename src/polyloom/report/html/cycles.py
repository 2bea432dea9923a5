"""Where the cycles of a run went on its busiest PE, from the limit to what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.result import Trace, TraceKind

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
    trace = result.trace
    if trace is None or not len(trace.events):
        return None
    busy = result.simulation.busy.ravel()
    pe = max(np.unique(trace.events["pe"]).tolist(), key=lambda number: (int(busy[number]), -number))
    events = trace.events[trace.events["pe"] == pe]
    return Budget((pe % trace.width, pe // trace.width), tuple(_parts(result, trace, events)))


def _parts(result: SimulationResult, trace: Trace, events: Events) -> list[Part]:
    tasks, simd, waits = (
        events[events["kind"] == kind] for kind in (TraceKind.TASK, TraceKind.SIMD, TraceKind.WAIT)
    )
    worked, waited = int(tasks["duration"].sum()), int(waits["duration"].sum())
    launch = len(simd) * result.program.machine.simd_launch
    elements = int(simd["duration"].sum()) - launch - _inside(waits, simd)
    dispatch = _dispatch(result, trace, tasks)
    before, between, after = _idle(result, trace, tasks)
    return [
        Part("simd", "SIMD instructions at work", elements),
        Part("launch", "launching them", launch),
        Part("dispatch", "dispatching tasks", dispatch),
        Part("task", "scalar code and descriptors", worked - waited - elements - launch - dispatch),
        Part("wait", "waiting in tasks for the fabric", waited),
        Part("before", "idle until the first element comes", before),
        Part("between", "idle between elements", between),
        Part("after", "idle after the last task", after),
    ]


def _inside(waits: Events, simd: Events) -> int:
    """Return the cycles of waits that lie within SIMD instructions of the main thread."""
    if not len(simd):
        return 0
    at = np.searchsorted(simd["start"], waits["start"], side="right") - 1
    ends = simd["start"][at] + simd["duration"][at]
    return int(waits["duration"][(at >= 0) & (waits["start"] < ends)].sum())


def _data_tasks(result: SimulationResult) -> set[str]:
    tasks = [task for role in result.program.roles for task in role.code.data_tasks]
    return {name for task in tasks for name in (task.name, f"end of {task.name}")}


def _dispatch(result: SimulationResult, trace: Trace, tasks: Events) -> int:
    machine, data = result.program.machine, _data_tasks(result)
    cost = [
        machine.data_task_dispatch if name in data else 0 if name == "main" else machine.local_task_activate
        for name in trace.names
    ]
    if not len(tasks):
        return 0
    return int(np.minimum(np.array(cost)[tasks["name"]], tasks["duration"]).sum())


def _idle(result: SimulationResult, trace: Trace, tasks: Events) -> tuple[int, int, int]:
    """Return the idle cycles before the first element of a stream, after the last task, and others."""
    if not len(tasks):
        return 0, 0, result.cycles
    order = np.argsort(tasks["start"], kind="stable")
    starts = tasks["start"][order]
    ends = starts + tasks["duration"][order]
    gaps = np.maximum(starts - np.concatenate([[0], ends[:-1]]), 0)
    data = np.array([name in _data_tasks(result) for name in trace.names])[tasks["name"][order]]
    first = int(np.argmax(data)) if data.any() else -1
    before = int(gaps[: first + 1].sum())
    return before, int(gaps.sum()) - before, max(result.cycles - int(ends.max()), 0)
