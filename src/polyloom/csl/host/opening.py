"""Compiled programs put on simulated wafers, and the last run of each folder, which debuggers read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from polyloom.csl.compiled import Compiled
from polyloom.csl.host.program import Built
from polyloom.csl.host.run import Run, watched
from polyloom.diagnostics import PolyloomError, error, render, warning
from polyloom.files import refusing_unwritable
from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.simulator import csl_fabric as fabric
from polyloom.wafer.simulator.line_trace import write_line_trace
from polyloom.wafer.simulator.trace import write_trace

if TYPE_CHECKING:
    from polyloom.csl.host.session import Session


@dataclass(frozen=True)
class Recording:
    """What is told of each run when it stops: files for a timeline viewer and for wse-viz, a summary.

    ``report`` gets the run, also one that a fault ends.
    """

    timeline: Path | None = None
    lines: Path | None = None
    summary: bool = False
    report: Callable[[Run], None] | None = None

    @property
    def traces(self) -> bool:
        """Whether the simulation must record what happens when."""
        return self.records_all or self.report is not None

    @property
    def records_all(self) -> bool:
        """Whether it must do so on all PEs."""
        return self.timeline is not None or self.lines is not None


_recording = Recording()


@contextmanager
def recording(wanted: Recording) -> Iterator[None]:
    """Tell of the runs inside what is wanted."""
    global _recording
    before, _recording = _recording, wanted
    try:
        yield
    finally:
        _recording = before


MACHINES = {"wse2": "cs2", "wse3": "cs3"}
BOUNDS = "POLYLOOM_CSL_BOUNDS"
"""Environment variable: `memory` lets operations go beyond the variable of a DSD, as the machine does."""
MOST_CYCLES = "POLYLOOM_CSL_MAX_CYCLES"
"""Environment variable: a run that goes on for longer is an error."""

_LAST: dict[Path, tuple[Built, Session]] = {}


def machine_model(arch: str) -> Machine:
    """Return what PEs of ``wse2`` or ``wse3`` can do and what it costs."""
    return load_machine(MACHINES[arch])


class SimulatedWafer:
    """A `Machine` over the simulator's fabric; what stops the simulation becomes a diagnostic."""

    def __init__(self, program: Compiled) -> None:
        """Put a program on a wafer of its own."""
        limit = os.environ.get(MOST_CYCLES)
        self._program = program
        self._told = False
        self._fabric = fabric.CslFabric(
            {unit.name: unit.text for unit in program.units},
            machine_model(program.arch),
            program.width,
            program.height,
            max_cycles=int(limit) if limit else None,
            trace=_recording.traces,
            trace_only=None if _recording.records_all else watched(program),
            lines=_recording.report is not None,
            loose=os.environ.get(BOUNDS) == "memory",
        )
        self._lines = 0
        self._unknown: dict[tuple[int, int], int] = {}
        for (x, y), number in program.tiles.items():
            unit = program.units[number]
            self._fabric.place(x, y, unit.name, unit.image, unit.initialised)
            for route in program.routes.get((x, y), ()):
                self._fabric.route(x, y, route)
            for color in unit.host_out:
                self._fabric.sink(x, y, color)

    @property
    def cycles(self) -> int:
        """Cycles from the start to the last thing that happened."""
        return self._fabric.cycles

    def read(self, x: int, y: int, address: int, size: int) -> bytes:
        """Return memory of a PE; of what nothing wrote, bits that are no likely value."""
        data, known = self._fabric.read_known(x, y, address, size)
        if all(known):
            return data
        self._unknown[x, y] = self._unknown.get((x, y), 0) + known.count(0) // 2
        return bytes(byte if is_known else 0xA5 for byte, is_known in zip(data, known, strict=True))

    def write(self, x: int, y: int, address: int, data: bytes) -> None:
        """Change memory of a PE."""
        self._fabric.write(x, y, address, data)

    def call(self, x: int, y: int, function: str, words: Sequence[int]) -> None:
        """Append a launch to a PE's commands."""
        self._fabric.call(x, y, function, words)

    def inject(self, x: int, y: int, color: int, words: Sequence[int]) -> None:
        """Append words that the host sends to a PE on a color."""
        self._fabric.inject(x, y, color, words)

    def collect(self, x: int, y: int, color: int, words: int) -> list[int]:
        """Take the oldest words that a PE sent to the host on a color."""
        return [int(word) for word in self._fabric.collect(x, y, color, words)]

    def run(self, goals: Sequence[fabric.Goal]) -> None:
        """Let time pass until all goals hold."""
        with self._telling():
            self._fabric.run(goals)

    def let_pass(self, cycles: int) -> None:
        """Let so many cycles pass, or fewer where nothing moves."""
        with self._telling():
            self._fabric.let_pass(cycles)

    def finish(self) -> None:
        """Run until nothing moves, and check that nothing was left; say what was read and never written."""
        with self._telling():
            self._fabric.finish()
        self._tell()
        if self._unknown:
            (x, y), words = next(iter(self._unknown.items()))
            notes = [f"so for {len(self._unknown) - 1} more PEs"] if len(self._unknown) > 1 else []
            message = f"the host read {words} 16-bit words of PE ({x}, {y}) that nothing had written"
            print(render(warning("csl-host-unwritten", message, notes=notes)), file=sys.stderr)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell of a run that ends inside, and raise what ended it as a diagnostic."""
        with _as_diagnostics():
            try:
                yield
            except fabric.CslFailure:
                self._tell()
                raise

    def _tell(self) -> None:
        """Write the files, and print the summary, that are wanted; once."""
        if self._told:
            return
        self._told = True
        trace = self._fabric.trace()
        if _recording.report is not None:
            machine = machine_model(self._program.arch)
            counts, fault = self._fabric.counts(), self._fabric.error()
            _recording.report(Run(self._program, machine, counts, trace, fault))
        if trace is not None and _recording.timeline is not None:
            with refusing_unwritable(_recording.timeline):
                write_trace(trace, _recording.timeline)
        if trace is not None and _recording.lines is not None:
            with refusing_unwritable(_recording.lines):
                write_line_trace(trace, self._fabric.height, _recording.lines)
        if _recording.summary:
            counts = self._fabric.counts()
            busiest = np.unravel_index(int(counts.busy.argmax()), counts.busy.shape)
            rows = [
                ("cycles", f"{counts.cycles:,}"),
                ("PEs", f"{self._fabric.width} x {self._fabric.height}"),
                (
                    "busy",
                    f"{counts.busy.mean():,.0f} cycles on average,"
                    f" {int(counts.busy.max()):,} on PE ({busiest[1]}, {busiest[0]})",
                ),
                (
                    "SIMD",
                    f"{counts.simd_operations:,} operations in {counts.simd_instructions:,} instructions",
                ),
                ("fabric", f"{counts.wavelets:,} wavelets, {counts.hops:,} hops"),
            ]
            print("\n".join(f"{name:8}{value}" for name, value in rows), file=sys.stderr)

    def log(self) -> list[str]:
        """Take the lines that programs printed."""
        lines = self._fabric.log()[self._lines :]
        self._lines += len(lines)
        return [f"@{line.cycle} {line.text}" for line in lines]


def machine_of(built: Built) -> SimulatedWafer:
    """Put a program on a wafer of its own."""
    with _as_diagnostics():
        return SimulatedWafer(built.program)


@contextmanager
def _as_diagnostics() -> Iterator[None]:
    """Raise what stops a simulation as `csl-run-KIND`."""
    try:
        yield
    except fabric.CslFailure as failure:
        fault = failure.fault
        where = [f"PE ({fault.pe[0]}, {fault.pe[1]})"] if fault.pe else []
        where += [f"`{fault.task}`"] if fault.task else []
        notes = [", ".join([*where, f"cycle {fault.cycle}"]), *fault.details]
        raise PolyloomError(error(f"csl-run-{fault.kind}", fault.message, notes=notes)) from None


def note_last_run(folder: Path, built: Built, session: Session) -> None:
    """Keep a run for `last_run`, in this process."""
    _LAST[folder.resolve()] = built, session


def last_run(folder: Path) -> tuple[Built, Session] | None:
    """Return the last run of a folder's program in this process."""
    return _LAST.get(folder.resolve())
