"""The layers of a program, simulated one by one, as an HTML page: what each takes, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from polyloom.diagnostics import visible
from polyloom.files import write_text
from polyloom.wafer.explain.layers import ModelRun


def write_layers_report(path: Path, run: ModelRun) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, layers_page(run))


def _shown(data: Any) -> Any:
    return visible(data) if isinstance(data, str) and not isinstance(data, Markup) else data


def layers_page(run: ModelRun) -> str:
    """Return the page. The same layers give the same text."""
    environment = Environment(
        loader=PackageLoader("polyloom.report", "html"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    assert environment.loader is not None
    style, _, _ = environment.loader.get_source(environment, "style.css")
    document = run.json()
    most = max((layer.result.cycles for layer in run.layers if layer.result is not None), default=1)
    return environment.get_template("layers.html").render(
        run=run, total=document["total"], most=most, style=Markup(style)
    )
