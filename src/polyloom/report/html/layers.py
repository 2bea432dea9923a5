"""The layers of a program, simulated one by one, as an HTML page: what each takes, and why."""

from __future__ import annotations

from pathlib import Path

from polyloom.files import write_text
from polyloom.report.html.environment import rendered
from polyloom.wafer.explain.layers import ModelRun


def write_layers_report(path: Path, run: ModelRun) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, layers_page(run))


def layers_page(run: ModelRun) -> str:
    """Return the page. The same layers give the same text."""
    document = run.json()
    most = max((layer.result.cycles for layer in run.layers if layer.result is not None), default=1)
    return rendered("layers.html", run=run, total=document["total"], most=most)
