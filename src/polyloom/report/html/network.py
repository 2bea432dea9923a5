"""A network on one wafer as an HTML page: its floor plan, tables of layers and streams, what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from polyloom.files import write_text
from polyloom.report.html.environment import rendered
from polyloom.wafer.network.floor_plan import Way
from polyloom.wafer.network.result import NetworkResult, Part

WIDEST = 1100
"""Pixels of the drawing."""
LETTERS = 12
"""Pixels of the height of letters in it."""


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
        letters=LETTERS * plan.width / WIDEST,
        stages=[_drawn(part, result, plan.width) for part in result.stages],
        exchanges=[_drawn(part, result, plan.width) for part in result.exchanges],
        ways=[(net.stream.tensor, _line(way)) for net in plan.nets for way in net.ways],
        streams=result.streams,
    )


SIDES = {"west": (0, 0.5), "east": (1, 0.5), "north": (0.5, 0), "south": (0.5, 1)}
"""Where on a PE a stream passes a side."""


def _line(way: Way) -> str:
    """Return the path of a stream through a box of PEs: along it, or on one PE from side to side."""
    (x0, x1), (y0, y1) = way.x, way.y
    if x0 < x1:
        return f"M{x0} {y0 + 0.5}H{x1 + 1}"
    if y0 < y1:
        return f"M{x0 + 0.5} {y0}V{y1 + 1}"
    ends = [SIDES[side] for side in (way.source, *way.targets) if side in SIDES]
    return "".join(f"M{x0 + 0.5} {y0 + 0.5}L{x0 + x} {y0 + y}" for x, y in ends)


def _drawn(part: Part, result: NetworkResult, width: int) -> dict[str, Any]:
    """Return a part with its size, how long it works, and whether its name has room in it."""
    letters = LETTERS * width / WIDEST
    across, down = part.x[1] - part.x[0] + 1, part.y[1] - part.y[0] + 1
    return {
        "label": across > 0.6 * letters * len(part.name) and down > letters,
        "part": part,
        "width": part.x[1] - part.x[0] + 1,
        "height": part.y[1] - part.y[0] + 1,
        "share": min(part.work / result.interval, 1.0),
    }
