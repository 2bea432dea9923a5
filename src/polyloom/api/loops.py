"""What the loops of a C file are, from Python: parallel, reductions or serial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polyloom.polyhedra.effort import limited
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode, Transformation, host_program, schedule_tree
from polyloom.sources import Given, Reading, load_scops


@dataclass(frozen=True, eq=False)
class LoopExplanation:
    """What each loop of a file of C is, and why: one entry for each static control part."""

    parts: tuple[tuple[Scop, Transformation], ...]

    def __repr__(self) -> str:
        return f"<LoopExplanation of {', '.join(scop.name for scop, _ in self.parts)}; print it>"

    def __str__(self) -> str:
        """Return what ``polyloom explain`` prints."""
        from polyloom.report.loops_view import text

        return "\n".join(text(scop, found) for scop, found in self.parts)

    @limited("the schedule tree")
    def schedule_trees(self) -> str:
        """Return what ``explain --schedule-tree`` prints: one tree for each static control part."""
        return "\n".join(schedule_tree(scop, found) for scop, found in self.parts)

    def json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the document of ``explain --json``: one object, or a list of several."""
        from polyloom.report.loops_view import document

        found = [document(scop, transformation) for scop, transformation in self.parts]
        return found[0] if len(found) == 1 else found


@limited("the loops of the program")
def explain_loops(source: Given, reading: Reading) -> LoopExplanation:
    """Say of each loop of a file of C what it is: parallel, a reduction or serial, and why.

    Errors: ``file-...``, ``c-...``. Source: md_poly, Sec. 3.2.
    """
    mode, strict = ReductionMode(reading.reductions), reading.fp == "strict"
    scops = load_scops(source, reading)
    found = (host_program(scop, mode, strict=strict, schedule=reading.schedule) for scop in scops)
    return LoopExplanation(tuple(zip(scops, found, strict=True)))
