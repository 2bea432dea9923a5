"""Writes what happened when as Perfetto's trace JSON: a process for each PE, a cycle shown as a microsecond.

Source: the Trace Event Format ("X" complete events, "M" metadata), which ui.perfetto.dev and
chrome://tracing read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from polyloom.wafer.simulator.result import Trace, TraceKind

SIDES = ("north", "south", "east", "west", "ramp")
MAIN, SIMD, MICROTHREADS, LINKS = 0, 1, 2, 16
CATEGORIES = {
    TraceKind.TASK: "task",
    TraceKind.SIMD: "simd",
    TraceKind.MICROTHREAD: "microthread",
    TraceKind.LINK: "link",
    TraceKind.WAIT: "wait",
}


def write_trace(trace: Trace, path: Path) -> None:
    """Write the trace as a JSON file for a timeline viewer.

    Threads of a PE: 0 main (tasks, and what they wait for), 1 SIMD instructions of the main thread, from 3
    on microthreads, 16 to 20 what leaves the router to the north, south, east, west and to the ramp.
    """
    with path.open("w", encoding="utf-8") as file:
        _write(file, trace_events(trace))


def _write(file: TextIO, events: Iterable[dict[str, Any]]) -> None:
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    lines = (json.dumps(event, separators=(",", ":")) for event in events)
    file.writelines(line if i == 0 else f",\n{line}" for i, line in enumerate(lines))
    file.write("\n]}\n")


def trace_events(trace: Trace) -> Iterator[dict[str, Any]]:
    """Yield the events of the file: names of processes and threads, then what happened, ordered by start."""
    threads = {(int(e["pe"]), _thread(int(e["kind"]), int(e["lane"]))) for e in trace.events}
    for pe in sorted({pe for pe, _ in threads}):
        label = f"PE({pe % trace.width}, {pe // trace.width})"
        yield {"ph": "M", "name": "process_name", "pid": pe, "tid": 0, "args": {"name": label}}
        yield {"ph": "M", "name": "process_sort_index", "pid": pe, "tid": 0, "args": {"sort_index": pe}}
    for pe, thread in sorted(threads):
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": pe,
            "tid": thread,
            "args": {"name": _thread_name(thread)},
        }
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": pe,
            "tid": thread,
            "args": {"sort_index": thread},
        }
    for event in trace.events:
        yield _complete(trace, event)


def _complete(trace: Trace, event: Any) -> dict[str, Any]:
    kind = TraceKind(int(event["kind"]))
    return {
        "ph": "X",
        "name": trace.names[int(event["name"])],
        "cat": CATEGORIES[kind],
        "ts": int(event["start"]),
        "dur": int(event["duration"]),
        "pid": int(event["pe"]),
        "tid": _thread(int(kind), int(event["lane"])),
    }


def _thread(kind: int, lane: int) -> int:
    return {
        TraceKind.SIMD: SIMD,
        TraceKind.MICROTHREAD: MICROTHREADS + lane,
        TraceKind.LINK: LINKS + lane,
    }.get(TraceKind(kind), MAIN)


def _thread_name(thread: int) -> str:
    if thread >= LINKS:
        return f"to {SIDES[thread - LINKS]}"
    return {MAIN: "main", SIMD: "SIMD"}.get(thread, f"microthread {thread - MICROTHREADS}")
