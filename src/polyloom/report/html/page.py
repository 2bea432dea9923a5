"""The page: a template filled with tables, the drawn task graph, the scripts, and their data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyloom.files import write_text
from polyloom.report.html.cycles import budget
from polyloom.report.html.document import document
from polyloom.report.html.environment import as_json, rendered, scripts
from polyloom.report.html.graph_layout import HEIGHT, WIDTH, draw
from polyloom.report.html.tables import cards, decisions, map_text, program_text, remarks, role_table, verdict
from polyloom.wafer.explain.task_links import task_links
from polyloom.wafer.placement.candidates import Candidate
from polyloom.wafer.placement.choose import SHOWN
from polyloom.wafer.simulation.result import SimulationResult

SCRIPTS = (
    "unpack.js",
    "export.js",
    "grid.js",
    "timeline.js",
    "instances.js",
    "code.js",
    "wave.js",
    "page.js",
)
"""That draw; ``one.js`` begins."""


def write_report(path: Path, result: SimulationResult, candidates: Sequence[Candidate] = ()) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``.

    ``candidates``: the mappings that the map was chosen among, the best first.
    """
    write_text(path, page_text(result, candidates))


def page_text(result: SimulationResult, candidates: Sequence[Candidate] = ()) -> str:
    """Return the page. The same result gives the same text."""
    data = as_json(document(result))
    drawn = scripts(*SCRIPTS, "one.js")
    return rendered("template.html", **layer_values(result, candidates), scripts=drawn, data=data)


def layer_values(result: SimulationResult, candidates: Sequence[Candidate]) -> dict[str, Any]:
    """Return what the template of a layer's sections needs."""
    return {
        "result": result,
        "candidates": candidates[:SHOWN],
        "compared": sum(candidate.variants for candidate in candidates),
        "s": result.simulation,
        "machine": result.program.machine,
        "name": result.program.analysis.program.name,
        "grid": result.program.analysis.border.given.grid,
        "verdict": verdict(result),
        "cards": cards(result),
        "budget": budget(result),
        "decisions": decisions(result),
        "roles": role_table(result),
        "colors": result.program.routing.colors,
        "remarks": tuple(remarks(result)),
        "graph": draw(task_links(result.program.analysis)),
        "node": {"width": WIDTH, "height": HEIGHT},
        "program": program_text(result),
        "map": map_text(result),
    }
