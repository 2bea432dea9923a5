"""What the loops of a C file are, from Python: parallel, reductions or serial."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from polyloom.api.processor import scheduled
from polyloom.device_pipeline import open_program
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import NATIVE, choose
from polyloom.polyhedra.effort import limited
from polyloom.report.schedule_view import Scheduled
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, Transformation, host_program, schedule_tree
from polyloom.sources import Given, LoadedHost, Reading, load_scops


@dataclass(frozen=True, eq=False)
class LoopExplanation:
    """What each loop of a file of C is, and why: one entry for each static control part.

    ``scheduled``: where the loops of each are on the processor, if sizes were given.
    """

    parts: tuple[tuple[Scop, Transformation], ...]
    scheduled: tuple[Scheduled, ...] = ()

    def __repr__(self) -> str:
        return f"<LoopExplanation of {', '.join(scop.name for scop, _ in self.parts)}; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.loops_view import text

        return "\n".join(text(scop, found, where) for (scop, found), where in self._parts())

    @limited("the schedule tree")
    def schedule_trees(self) -> str:
        """Return what ``explain --schedule-tree`` prints: one tree for each static control part."""
        return "\n".join(schedule_tree(scop, found) for scop, found in self.parts)

    def json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the document of ``explain --json``: one object, or a list of several."""
        from polyloom.report.loops_view import document

        found = [document(scop, made, where) for (scop, made), where in self._parts()]
        return found[0] if len(found) == 1 else found

    def _parts(self) -> Iterator[tuple[tuple[Scop, Transformation], Scheduled | None]]:
        return zip_longest(self.parts, self.scheduled)


@limited("the loops of the program")
def explain_loops(
    source: Given,
    reading: Reading,
    given: Mapping[str, Any] | None = None,
    device: DeviceModel | None = None,
    database: Path | None = None,
) -> LoopExplanation:
    """Say of each loop of a file of C what it is: parallel, a reduction or serial, and why.

    ``given``: parameters, for which it is said where each loop is in the schedule on the processor; None: for
    none. ``device``: the processor; ``database``: of tuned schedules.

    Errors: ``file-...``, ``c-...``; those of ``explain_native``. Source: md_poly, Sec. 3.2.
    """
    mode, strict = ReductionMode(reading.reductions), reading.fp == "strict"
    scops = load_scops(source, replace(reading, unmarked=True))
    found = [host_program(scop, mode, strict=strict, schedule=reading.schedule) for scop in scops]
    parts = tuple(zip(scops, found, strict=True))
    if given is None:
        return LoopExplanation(parts)
    model = device or choose(NATIVE)
    return LoopExplanation(parts, tuple(_scheduled(part, given, model, database) for part in parts))


def _scheduled(
    part: tuple[Scop, Transformation], given: Mapping[str, Any], device: DeviceModel, database: Path | None
) -> Scheduled:
    scop, found = part
    program = open_program(LoadedHost(found.program, scop, ()), device, database)
    where = scheduled(program, given)
    if program.program == found.program:
        return where
    return replace(where, reasons=(_ROWS.format(threads=device.compute_units), *where.reasons))


_ROWS = "no wavefront on {threads} threads: the loops go along rows"
