"""The profile: cycles of lines of the emitted C, and activity in time, against counts and the trace."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from polyloom import read_mapping, read_program, simulate
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulation.run import simulate_program
from polyloom.wafer.simulator.profile import ACTIVITIES, Profile
from polyloom.wafer.simulator.result import TraceKind

EXAMPLES = Path(__file__).parents[3] / "examples"


@cache
def traced(name: str, map_name: str) -> SimulationResult:
    program = read_program(EXAMPLES / f"{name}.lair", defines={})
    return simulate(program, read_mapping(EXAMPLES / f"{map_name}.map", program), trace=True)


def profile_of(result: SimulationResult) -> Profile:
    assert result.trace is not None and result.trace.profile is not None
    return result.trace.profile


@pytest.mark.parametrize(("name", "map_name"), [("conv1d", "conv1d"), ("training", "training")])
def test_each_busy_cycle_is_of_one_line(name: str, map_name: str) -> None:
    result = traced(name, map_name)
    lines = profile_of(result).lines
    assert sum(line.worked + line.beside for line in lines) == result.simulation.busy.sum()
    for line in lines:
        assert (line.line == 0) == bool(line.task) and min(line.worked, line.waited, line.beside) >= 0
    waits = result.trace.events[result.trace.events["kind"] == TraceKind.WAIT] if result.trace else None
    assert waits is not None and sum(line.waited for line in lines) == waits["duration"].sum()


def test_a_line_is_what_stands_there() -> None:
    """Every fmach of conv1d: 16 elements on two PEs, each launched at the line that says so."""
    result = traced("conv1d", "conv1d")
    text = result.program.files["C_0.c"].splitlines()
    (found,) = [line for line in profile_of(result).lines if line.line and "fmach" in text[line.line - 1]]
    assert result.trace is not None
    events = result.trace.events
    of_line = events[(events["line"] == found.line) & (events["kind"] == TraceKind.SIMD)]
    assert found.times == len(of_line) == 32 and found.worked == of_line["duration"].sum()
    assert {result.trace.names[e["name"]] for e in of_line} == {"fmach"}


def counted(result: SimulationResult, kind: str) -> npt.NDArray[np.int64]:
    """By looking at every event of the trace, cycle by cycle: int64[PEs, cycles]."""
    trace, cycles = result.trace, result.cycles
    assert trace is not None
    counts = np.zeros((result.simulation.busy.size, cycles), np.int64)
    signs = {
        "computes": {TraceKind.TASK: 1, TraceKind.WAIT: -1},
        "waits": {TraceKind.WAIT: 1},
        "sends": {TraceKind.LINK: 1},
    }[kind]
    for event in trace.events:
        sign = signs.get(TraceKind(event["kind"]), 0)
        if event["kind"] == TraceKind.LINK and event["lane"] == 4:
            continue
        start = int(event["start"])
        counts[event["pe"], start : start + int(event["duration"])] += sign
    return counts


@pytest.mark.parametrize("kind", ["computes", "waits", "sends"])
def test_activity_is_what_the_trace_says(kind: str) -> None:
    """training runs for more cycles than there are frames, which were made longer meanwhile."""
    result = traced("training", "training")
    activity = profile_of(result).activity
    assert activity is not None and activity.side == 1 and activity.length > 1
    found = activity.cycles[:, ACTIVITIES.index(kind)].reshape(len(activity.cycles), -1)
    expected = counted(result, kind)
    for frame, cells in enumerate(found):
        span = slice(frame * activity.length, (frame + 1) * activity.length)
        assert cells.tolist() == expected[:, span].sum(axis=1).tolist()


def test_threads_count_the_same() -> None:
    result = traced("training", "training")
    program = result.program
    shapes = {name: program.analysis.program.buffer(name) for name in program.analysis.program.inputs}
    inputs = {name: np.ones(b.extents, b.type.dtype) for name, b in shapes.items()}
    found = []
    for threads in (1, 3):
        run = simulate_program(program, inputs, trace=True, threads=threads)
        assert run.trace is not None and run.trace.profile is not None
        found.append(run.trace.profile)
    assert Counter(found[0].lines) == Counter(found[1].lines)
    assert found[0].activity is not None and found[1].activity is not None
    assert (found[0].activity.cycles == found[1].activity.cycles).all()
    assert found[0].activity.length == found[1].activity.length


def test_without_a_trace_nothing_is_counted() -> None:
    program = read_program(EXAMPLES / "conv1d.lair", defines={})
    bare = simulate(program, read_mapping(EXAMPLES / "conv1d.map", program))
    assert bare.trace is None and bare.cycles == traced("conv1d", "conv1d").cycles
