"""The page: a template filled with tables, the drawn task graph, the scripts, and their data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from polyloom.diagnostics import visible
from polyloom.files import write_text
from polyloom.report.html.document import document
from polyloom.report.html.graph_layout import HEIGHT, WIDTH, draw
from polyloom.report.html.tables import cards, decisions, map_text, program_text, remarks, role_table, verdict
from polyloom.wafer.explain.task_links import task_links
from polyloom.wafer.placement.candidates import Candidate
from polyloom.wafer.placement.choose import SHOWN
from polyloom.wafer.simulation.result import SimulationResult

SCRIPTS = ("unpack.js", "grid.js", "timeline.js", "instances.js", "page.js")


def write_report(path: Path, result: SimulationResult, candidates: Sequence[Candidate] = ()) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``.

    ``candidates``: the mappings that the map was chosen among, the best first.
    """
    write_text(path, page_text(result, candidates))


def page_text(result: SimulationResult, candidates: Sequence[Candidate] = ()) -> str:
    """Return the page. The same result gives the same text."""
    environment = Environment(
        loader=PackageLoader("polyloom.report", "html"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    compared = sum(candidate.variants for candidate in candidates)
    return environment.get_template("template.html").render(
        _values(environment, result), candidates=candidates[:SHOWN], compared=compared
    )


def _values(environment: Environment, result: SimulationResult) -> dict[str, Any]:
    return {
        "result": result,
        "s": result.simulation,
        "machine": result.program.machine,
        "name": result.program.analysis.program.name,
        "grid": result.program.analysis.border.given.grid,
        "verdict": verdict(result),
        "cards": cards(result),
        "decisions": decisions(result),
        "roles": role_table(result),
        "colors": result.program.routing.colors,
        "remarks": tuple(remarks(result)),
        "graph": draw(task_links(result.program.analysis)),
        "node": {"width": WIDTH, "height": HEIGHT},
        "program": program_text(result),
        "map": map_text(result),
        "style": _verbatim(environment, "style.css"),
        "scripts": [_verbatim(environment, name) for name in SCRIPTS],
        "data": _json(document(result)),
    }


def _verbatim(environment: Environment, name: str) -> Markup:
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, name)
    return Markup(source)


def _shown(data: Any) -> Any:
    """Return data whose texts can be shown: control characters and marks of direction as escapes."""
    if isinstance(data, dict):
        return {_shown(key): _shown(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_shown(value) for value in data]
    return visible(data) if isinstance(data, str) and not isinstance(data, Markup) else data


def _json(data: dict[str, Any]) -> Markup:
    """Return JSON that no text inside can end: ``<`` is escaped."""
    text = json.dumps(_shown(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(text)
