"""The trace: what it records, and the file that a timeline viewer reads."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from simulated import dense, feed, one_pe
from test_simulator_programs import ASYNCHRONOUS, chain

from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Result, Trace, TraceKind
from polyloom.wafer.simulator.trace import write_trace


@pytest.fixture
def traced() -> tuple[Fabric, Result, Trace]:
    simulation, _ = chain(3, 2, 2, trace=True)
    result = simulation.run()
    assert result.error is None and result.trace is not None
    return simulation, result, result.trace


def described(trace: Trace) -> list[tuple[int | str, ...]]:
    fields = ("start", "pe", "kind", "lane", "duration")
    return [(*(int(e[f]) for f in fields), trace.names[e["name"]]) for e in trace.events]


def names_of(trace: Trace, kind: TraceKind) -> set[str]:
    return {trace.names[e["name"]] for e in trace.events if e["kind"] == kind}


def test_every_event_is_recorded(traced: tuple[Fabric, Result, Trace]) -> None:
    _, result, trace = traced
    kinds = trace.events["kind"].tolist()
    assert kinds.count(TraceKind.TASK) + kinds.count(TraceKind.LINK) == result.events
    assert kinds.count(TraceKind.SIMD) == result.simd_instructions
    assert names_of(trace, TraceKind.SIMD) == {"fmach", "faddh", "fmovh"}
    assert {"main", "begin", "handle_x", "reduce_y"} <= names_of(trace, TraceKind.TASK)
    assert names_of(trace, TraceKind.LINK) == {"color 0", "color 1", "color 2"}
    assert names_of(trace, TraceKind.WAIT) <= {"faddh", "send_end(y_out)", "fmovh"}


def test_events_end_with_the_run_and_are_ordered(traced: tuple[Fabric, Result, Trace]) -> None:
    _, result, trace = traced
    ends = trace.events["start"] + trace.events["duration"]
    assert ends.max() == result.cycles
    assert (trace.events["start"][1:] >= trace.events["start"][:-1]).all()
    assert (trace.events["duration"] > 0).all()


def test_the_busy_cycles_are_those_of_tasks_less_what_they_wait(traced: tuple[Fabric, Result, Trace]) -> None:
    _, result, trace = traced
    busy = defaultdict(int)
    for e in trace.events:
        sign = {TraceKind.TASK: 1, TraceKind.WAIT: -1}.get(TraceKind(e["kind"]), 0)
        busy[int(e["pe"])] += sign * int(e["duration"])
    assert [busy[pe] for pe in range(6)] == result.busy.ravel().tolist()


def test_chosen_pes_are_traced_as_all_are(traced: tuple[Fabric, Result, Trace]) -> None:
    _, _, everything = traced
    simulation, _ = chain(3, 2, 2, trace=True, trace_only=[(2, 0), (1, 1)])
    chosen = simulation.run().trace
    assert chosen is not None and described(chosen) == [e for e in described(everything) if e[1] in (2, 4)]


def test_threads_record_the_same_trace(traced: tuple[Fabric, Result, Trace]) -> None:
    _, _, one = traced
    simulation, _ = chain(3, 2, 2, trace=True, threads=2)
    two = simulation.run().trace
    assert two is not None and described(two) == described(one)


def test_links_and_their_use(traced: tuple[Fabric, Result, Trace]) -> None:
    _, result, trace = traced
    counted = np.zeros_like(result.link_use).reshape(6, 5)
    for e in trace.events[trace.events["kind"] == TraceKind.LINK]:
        counted[e["pe"], e["lane"]] += 1
    assert (counted == result.link_use.reshape(6, 5)).all()
    assert result.link_use[:, :, :4].sum() == result.hops


def test_tasks_of_a_pe_do_not_overlap(traced: tuple[Fabric, Result, Trace]) -> None:
    _, _, trace = traced
    for pe in range(6):
        tasks = [e for e in trace.events if e["pe"] == pe and e["kind"] == TraceKind.TASK]
        assert all(a["start"] + a["duration"] <= b["start"] for a, b in pairwise(tasks))


def test_the_file_has_the_form_of_the_viewer(traced: tuple[Fabric, Result, Trace], tmp_path: Path) -> None:
    _, _, trace = traced
    write_trace(trace, tmp_path / "trace.json")
    document = json.loads((tmp_path / "trace.json").read_text())
    events = document["traceEvents"]
    complete = [e for e in events if e["ph"] == "X"]
    assert len(complete) == len(trace.events)
    for e in complete:
        assert set(e) == {"ph", "name", "cat", "ts", "dur", "pid", "tid"}
        assert isinstance(e["name"], str) and all(isinstance(e[k], int) for k in ("ts", "dur", "pid", "tid"))
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert named == {(e["pid"], e["tid"]) for e in complete}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert processes[4] == "PE(1, 1)" and len(processes) == 6
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} == {
        "main", "SIMD", "to south", "to east", "to ramp",
    }  # fmt: skip


def test_microthreads_have_lanes_of_their_own() -> None:
    """One stores what arrives, one sends what was computed; beside them the main thread has its own lanes."""
    simulation = one_pe(ASYNCHRONOUS, trace=True)
    feed(simulation, "north", 0, 0, dense(np.arange(24).astype(np.float16)), ends=1)
    simulation.sink("east", 0, 2, 25)
    trace = simulation.run().trace
    assert trace is not None
    lanes = [int(e["lane"]) for e in trace.events if e["kind"] == TraceKind.MICROTHREAD]
    assert lanes == [1, 1] and names_of(trace, TraceKind.MICROTHREAD) == {"fmovh"}
    assert names_of(trace, TraceKind.SIMD) == {"fmulh"}


def test_without_the_option_nothing_is_recorded() -> None:
    assert chain(1, 1, 1)[0].run().trace is None
