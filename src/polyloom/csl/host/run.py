"""A run of a compiled program, as reports see it: what was counted and recorded, and what ended it."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.csl.compiled import Compiled
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.result import Counts, SimulationError, Trace

WATCH_ALL = 64
"""On rectangles of at most so many PEs all are recorded for a report, else at most so many."""


@dataclass(frozen=True)
class Run:
    """``fault``: what stopped the simulation before its end."""

    program: Compiled
    machine: Machine
    counts: Counts
    trace: Trace | None
    fault: SimulationError | None


def watched(program: Compiled) -> tuple[tuple[int, int], ...] | None:
    """Return the PEs (x, y) that are recorded for a report; None: all.

    A few: the first and the last PE of each program, the corners and the centre.
    """
    width, height = program.width, program.height
    if width * height <= WATCH_ALL:
        return None
    chosen = {(x, y): None for x in (0, width - 1) for y in (0, height - 1)}
    chosen[width // 2, height // 2] = None
    first: dict[int, tuple[int, int]] = {}
    last: dict[int, tuple[int, int]] = {}
    for pe, number in program.tiles.items():
        first.setdefault(number, pe)
        last[number] = pe
    for number in first:
        chosen |= {first[number]: None, last[number]: None}
    return tuple(chosen)[:WATCH_ALL]
