"""A network on one wafer as an HTML page: its floor plan, tables of layers and streams, what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyloom.files import write_text
from polyloom.report.html.environment import rendered
from polyloom.wafer.network.result import NetworkResult, Part

WIDEST = 1100
"""Pixels of the drawing."""


def write_network_report(path: Path, result: NetworkResult) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, network_page(result))


def network_page(result: NetworkResult) -> str:
    """Return the page. The same result gives the same text."""
    plan = result.program.plan
    longest, by = result.bottleneck
    return rendered(
        "network.html",
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
    )


def _drawn(part: Part, result: NetworkResult) -> dict[str, Any]:
    return {
        "part": part,
        "width": part.x[1] - part.x[0] + 1,
        "height": part.y[1] - part.y[0] + 1,
        "share": min(part.work / result.interval, 1.0),
    }
