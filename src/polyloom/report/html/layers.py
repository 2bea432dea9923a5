"""The layers of a program, simulated one by one, as an HTML page: a table of all, and the page of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyloom.files import write_text
from polyloom.report.html.document import document, packed_json
from polyloom.report.html.environment import as_json, rendered, scripts, shown
from polyloom.report.html.packing import pack_text
from polyloom.report.html.page import SCRIPTS, layer_values
from polyloom.report.html.timeline import MOST_EVENTS
from polyloom.wafer.explain.layers import LayerRun, ModelRun

FEWEST_EVENTS = 2000
"""In the time lines of a layer, however many layers there are."""


def write_layers_report(path: Path, run: ModelRun) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, layers_page(run))


def layers_page(run: ModelRun) -> str:
    """Return the page. The same layers give the same text."""
    cycles = [0 if layer.result is None else layer.result.cycles for layer in run.layers]
    most_events = max(MOST_EVENTS // max(len(run.results), 1), FEWEST_EVENTS)
    return rendered(
        "layers.html",
        run=run,
        total=run.json()["total"],
        most=max(*cycles, 1),
        longest=cycles.index(max(cycles)) if cycles else 0,
        scripts=scripts(*SCRIPTS, "layers.js"),
        data=as_json({"pages": [_page(layer, most_events) for layer in run.layers]}),
    )


def _page(layer: LayerRun, most_events: int) -> dict[str, Any] | None:
    """Return a layer's sections and what its drawings are made of, packed; None where it was refused."""
    if layer.result is None:
        return None
    candidates = () if layer.choice is None else layer.choice.candidates
    return {
        "name": layer.layer.name,
        "body": pack_text(rendered("layer.html", **layer_values(layer.result, candidates))),
        "data": packed_json(shown(document(layer.result, most_events))),
    }
