"""A network on one wafer as an HTML page: its floor plan, tables of layers and streams, what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from polyloom.files import write_text
from polyloom.wafer.network.result import NetworkResult, Part

WIDEST = 1100
"""Pixels of the drawing."""


def write_network_report(path: Path, result: NetworkResult) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, network_page(result))


def network_page(result: NetworkResult) -> str:
    """Return the page. The same result gives the same text."""
    environment = Environment(
        loader=PackageLoader("polyloom.report", "html"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    assert environment.loader is not None
    style, _, _ = environment.loader.get_source(environment, "style.css")
    plan = result.program.plan
    longest, by = result.bottleneck
    return environment.get_template("network.html").render(
        result=result,
        name=plan.network.program.name,
        machine=result.program.machine,
        plan=plan,
        longest=longest,
        by=by,
        unit=WIDEST / max(plan.width, 1),
        stages=[_drawn(part, result) for part in result.stages],
        exchanges=[_drawn(part, result) for part in result.exchanges],
        ways=[(net.stream.tensor, way) for net in plan.nets for way in net.ways],
        streams=result.streams,
        style=Markup(style),
    )


def _drawn(part: Part, result: NetworkResult) -> dict[str, Any]:
    return {
        "part": part,
        "width": part.x[1] - part.x[0] + 1,
        "height": part.y[1] - part.y[0] + 1,
        "share": min(part.work / result.interval, 1.0),
    }
