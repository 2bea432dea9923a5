"""A run of a CSL program as a page: its floor, time lines, where cycles go, programs, colors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.csl.host.run import Run
from polyloom.csl.survey import program_name, survey
from polyloom.files import write_text
from polyloom.report.csl.explain_view import started
from polyloom.report.html.document import (
    Document,
    activity,
    heat_maps,
    links,
    packed_json,
    packed_timelines,
    routes,
)
from polyloom.report.html.environment import as_json, rendered, scripts
from polyloom.report.html.page import SCRIPTS
from polyloom.report.html.tables import count_cards
from polyloom.wafer.explain.grids import NO_ROLE, Integers, RouteGrid
from polyloom.wafer.simulator.result import Trace, TraceKind


def write_csl_report(path: Path, run: Run, name: str) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``.

    ``name``: what the page is called.
    """
    write_text(path, csl_page(run, name))


def csl_page(run: Run, name: str) -> str:
    """Return the page. The same run gives the same text."""
    program = run.program
    sizes = [len(unit.image) for unit in program.units]
    found = survey(program)
    return rendered(
        "csl.html",
        name=name,
        run=run,
        machine=run.machine,
        grid={"width": program.width, "height": program.height},
        cards=count_cards(
            run.counts, len(program.tiles), (max(sizes, default=0), run.machine.sram_bytes), run.machine
        ),
        survey=found,
        started=started,
        tasks=tuple(task_rows(run)),
        waits=tuple(wait_rows(run)),
        recorded=0 if run.trace is None else len(np.unique(run.trace.events["pe"])),
        scripts=scripts(*SCRIPTS, "one.js"),
        data=as_json(_document(run)),
    )


def _document(run: Run) -> Document:
    """Return what the scripts draw, as of layers (``document.document``), without instance sets and lines."""
    program, roles = run.program, program_grid(run)
    sizes = np.array([*(len(unit.image) for unit in program.units), 0], np.int64)
    return {
        "cycles": run.counts.cycles,
        "grid": {"width": program.width, "height": program.height},
        "layers": heat_maps(run.counts, sizes[roles], roles, "program"),
        "links": links(run.counts),
        "roles": [unit.overview.file for unit in program.units],
        "colors": list(_colors(run)),
        "routes": routes(_route_grids(run)),
        "timelines": packed_timelines(run.trace),
        "samples": None,
        "listings": packed_json(found) if (found := list(listings(run))) else None,
        "activity": activity(run.trace, program.width, program.height),
    }


def program_grid(run: Run) -> Integers:
    """Return the number of each PE's program, int64[height, width]; NO_ROLE without one."""
    grid = np.full((run.program.height, run.program.width), NO_ROLE, np.int64)
    for (x, y), number in run.program.tiles.items():
        grid[y, x] = number
    return grid


def _colors(run: Run) -> Iterator[Document]:
    used = {route.color for routes_of in run.program.routes.values() for route in routes_of}
    for color in sorted(used):
        yield {"color": color, "carries": ", ".join(run.program.color_names.get(color, ())) or "no name"}


def _route_grids(run: Run) -> Iterator[RouteGrid]:
    """Yield where wavelets of each color go in the positions that switches begin at."""
    found: dict[tuple[int, str, tuple[str, ...]], npt.NDArray[np.bool_]] = {}
    for (x, y), routes_of in run.program.routes.items():
        for route in routes_of:
            rx, tx = route.positions[min(route.position, len(route.positions) - 1)]
            for side in rx:
                empty = np.zeros((run.program.height, run.program.width), np.bool_)
                found.setdefault((route.color, side, tuple(sorted(tx))), empty)[y, x] = True
    for (color, source, targets), on in sorted(found.items(), key=lambda item: item[0]):
        yield RouteGrid(color, source, targets, on)


# ---- Cycles of lines

_Uses = dict[int, npt.NDArray[np.int64]]
"""By line: how often it was entered; cycles at work, waiting, of microthreads beside."""


def listings(run: Run) -> Iterator[Document]:
    """Yield the files with lines that were counted, those of programs first, as of layers (``listing``)."""
    if run.trace is None or run.trace.profile is None:
        return
    found = _uses(run)
    roots = {unit.overview.file: None for unit in run.program.units}
    by_root = [name for root in roots for name in found if Path(name).name == Path(root).name]
    for name in dict.fromkeys([*by_root, *found]):
        numbers = _programs_of(run, name)
        uses = [[line, *use.tolist()] for line, use in sorted(found[name].items())]
        yield {
            "roles": numbers,
            "name": name,
            "pes": sum(number in numbers for number in run.program.tiles.values()),
            "cycles": sum(use[2] + use[4] for use in uses),
            "text": run.program.sources[name],
            "uses": [number for use in uses for number in use],
            "tasks": [],
            "names": dict(_heads(run.program.sources[name])),
        }


def _uses(run: Run) -> dict[str, _Uses]:
    """Return what was counted, by file; what a task takes before its first statement is of its head."""
    assert run.trace is not None
    assert run.trace.profile is not None
    found: dict[str, _Uses] = {}
    heads = {name: (file, line) for file, text in run.program.sources.items() for name, line in _heads(text)}
    for use in run.trace.profile.lines:
        file, line = (use.task, use.line) if use.line else heads.get(use.task, ("", 0))
        if file in run.program.sources:
            counts = np.array([use.times, use.worked, use.waited, use.beside], np.int64)
            lines = found.setdefault(file, {})
            lines[line] = lines.get(line, np.zeros(4, np.int64)) + counts
    return found


_HEAD = re.compile(r"^\s*(?:export\s+)?(?:task|fn)\s+(\w+)\s*\(")


def _heads(text: str) -> Iterator[tuple[str, int]]:
    """Yield the tasks and functions of a file, each with the line where it begins."""
    for number, line in enumerate(text.splitlines(), 1):
        if head := _HEAD.match(line):
            yield head[1], number


def _programs_of(run: Run, file: str) -> list[int]:
    """Return the numbers of the programs whose C has lines of a file."""
    mark = re.compile(f"^#line \\d+ {re.escape(json.dumps(file))}$", re.MULTILINE)
    return [number for number, unit in enumerate(run.program.units) if mark.search(unit.text)]


# ---- Where cycles go


@dataclass(frozen=True)
class TaskRow:
    """A task or launched function on the recorded PEs of a program. ``waited``, ``simd``: of ``cycles``."""

    program: str
    task: str
    times: int
    cycles: int
    waited: int
    simd: int


def task_rows(run: Run) -> Iterator[TaskRow]:
    """Yield what the main threads did, the most cycles first."""
    if run.trace is None:
        return
    programs = program_grid(run).ravel()
    sums: dict[tuple[int, int], npt.NDArray[np.int64]] = {}
    for pe in np.unique(run.trace.events["pe"]):
        for name, row in _of_pe(run.trace, int(pe)):
            key = (int(programs[pe]), name)
            sums[key] = sums.get(key, np.zeros(4, np.int64)) + row
    for (number, name), row in sorted(sums.items(), key=lambda item: (-int(item[1][1]), item[0])):
        yield TaskRow(program_name(number), run.trace.names[name], *row.tolist())


def _of_pe(trace: Trace, pe: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield the name of each task that ran on a PE, with runs, cycles, waits and SIMD cycles."""
    events = trace.events[trace.events["pe"] == pe]
    tasks = events[events["kind"] == TraceKind.TASK]
    waits, simd = (_within(tasks, events[events["kind"] == k]) for k in (TraceKind.WAIT, TraceKind.SIMD))
    for name in np.unique(tasks["name"]):
        own = tasks["name"] == name
        amounts = (amount[own].sum() for amount in (tasks["duration"], waits, simd))
        yield int(name), np.array([own.sum(), *amounts], np.int64)


def _within(tasks: npt.NDArray[np.void], events: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Return the cycles of events that began while each task ran; tasks of a PE do not overlap."""
    cycles = np.zeros(len(tasks), np.int64)
    if len(tasks):
        at = np.searchsorted(tasks["start"], events["start"], side="right") - 1
        inside = at >= 0
        np.add.at(cycles, at[inside], events["duration"][inside])
    return cycles


def wait_rows(run: Run) -> Iterator[tuple[str, int, int]]:
    """Yield what main threads waited for, how often and for how many cycles, the most cycles first."""
    if run.trace is None:
        return
    events: Any = run.trace.events[run.trace.events["kind"] == TraceKind.WAIT]
    names = np.unique(events["name"])
    rows = [(run.trace.names[n], events["duration"][events["name"] == n]) for n in names]
    for name, durations in sorted(rows, key=lambda row: -int(row[1].sum())):
        yield name, len(durations), int(durations.sum())
