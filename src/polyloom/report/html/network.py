"""A network on one wafer as an HTML page: its floor, time lines, code with cycles, tables of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.files import write_text
from polyloom.report.html.cycles import Budget, budget_of, busiest, data_tasks
from polyloom.report.html.document import (
    VERSION,
    Document,
    activity,
    heat_maps,
    links,
    named_map,
    packed_json,
    packed_timelines,
    routes,
)
from polyloom.report.html.environment import as_json, rendered, scripts
from polyloom.report.html.listing import Listing, Program, cycles_of_functions, listings_of
from polyloom.report.html.page import SCRIPTS
from polyloom.report.html.tables import checked, count_cards
from polyloom.wafer.explain.grids import NO_ROLE
from polyloom.wafer.explain.network_floor import MeshRole, mesh_roles, mesh_routes, numbered
from polyloom.wafer.explain.network_limit import limit_of_network, limit_of_place
from polyloom.wafer.network.result import NetworkResult, Part
from polyloom.wafer.simulation.lower_bound import Limit

MOST_CARRIED = 6
"""Of what a color carries, so many are named."""


@dataclass(frozen=True)
class Row:
    """A layer or a line of exchanges; ``share``: of the interval, how long its busiest PE works.

    ``budget``: of its busiest PE that has a time line; ``limit``: of a layer alone under its map.
    """

    part: Part
    width: int
    height: int
    share: float
    budget: Budget | None
    limit: Limit | None = None


def write_network_report(path: Path, result: NetworkResult) -> None:
    """Write the page, whole or not at all. Raises PolyloomError ``file-unwritable``."""
    write_text(path, network_page(result))


def network_page(result: NetworkResult) -> str:
    """Return the page. The same result gives the same text."""
    plan, roles = result.program.plan, mesh_roles(result.program)
    limit = limit_of_network(result.program, result.samples)
    longest, by = result.bottleneck
    most = max((role.bytes for role in roles), default=0)
    machine = result.program.machine
    verdict = checked(result.check)
    cards = count_cards(result.simulation, result.pes, (most, machine.memory_bytes), machine)
    found = tuple(_listings(result, roles))
    rows = tuple(_rows(result, roles))
    drawn = {
        "summary": _summary(result, limit, verdict, [[c.label, c.value, c.note] for c in cards], rows, found),
        **_drawn(result, roles, found),
    }
    return rendered(
        "network.html",
        result=result,
        name=plan.network.program.name,
        machine=machine,
        plan=plan,
        verdict=verdict,
        cards=cards,
        limit=limit,
        longest=longest,
        by=by,
        rows=rows,
        streams=result.streams,
        maps=[(p.block.placed.stage.name, p.block.placed.choice.text) for p in plan.places],
        scripts=scripts(*SCRIPTS, "one.js"),
        data=as_json(drawn),
    )


def _rows(result: NetworkResult, roles: tuple[MeshRole, ...]) -> Iterator[Row]:
    places = {place.block.placed.stage.name: place for place in result.program.plan.places}
    for part in (*result.stages, *result.exchanges):
        place = places.get(part.name) if part.kind == "layer" else None
        yield Row(
            part,
            part.x[1] - part.x[0] + 1,
            part.y[1] - part.y[0] + 1,
            min(part.work / result.interval, 1.0),
            _budget(result, [role for role in roles if role.part == part.name]),
            None if place is None else limit_of_place(place, result.samples),
        )


def _budget(result: NetworkResult, roles: list[MeshRole]) -> Budget | None:
    """Return what the busiest PE of a part did, of those that have time lines; None without any."""
    trace = result.simulation.trace
    if trace is None or not roles:
        return None
    recorded = np.unique(trace.events["pe"])
    here = recorded[np.logical_or.reduce([role.on.ravel()[recorded] for role in roles])]
    if not len(here):
        return None
    pe = busiest(result.simulation, here)
    codes = (role.code for role in roles if role.on.ravel()[pe])
    return budget_of(trace, pe, result.program.machine, data_tasks(codes), result.cycles)


def _listings(result: NetworkResult, roles: tuple[MeshRole, ...]) -> tuple[Listing, ...]:
    files = result.program.files
    programs = (Program(r.code, files[f"{r.code.name}.c"], int(r.on.sum()), r.simd) for r in roles)
    return listings_of(result.simulation.trace, programs)


def _summary(
    result: NetworkResult,
    limit: Limit,
    verdict: tuple[str, str],
    figures: list[list[str]],
    rows: tuple[Row, ...],
    found: tuple[Listing, ...],
) -> Document:
    """Return what a page for two runs needs of one of them."""
    plan = result.program.plan
    slowest = max(rows, key=lambda row: row.part.work, default=None)
    spent = None if slowest is None else slowest.budget
    return {
        "version": VERSION,
        "name": plan.network.program.name,
        "machine": result.program.machine.name,
        "simd": "",
        "unit": "cycles",
        "check": verdict,
        "cycles": result.cycles,
        "limit": limit.cycles,
        "limit_by": limit.by,
        "figures": figures,
        "pe": None if spent is None else spent.pe,
        "parts": [] if spent is None else [part.json() for part in spent.parts],
        "functions": cycles_of_functions(found),
        "program": "",
        "map": "\n".join(f"# {p.block.placed.stage.name}\n{p.block.placed.choice.text}" for p in plan.places),
    }


def _drawn(result: NetworkResult, roles: tuple[MeshRole, ...], found: tuple[Listing, ...]) -> Document:
    """Return what the scripts draw, as of layers (``document.document``), without instance sets."""
    plan, trace = result.program.plan, result.simulation.trace
    numbers = numbered(roles, plan)
    sizes = np.array([*(role.bytes for role in roles), 0], np.int64)
    parts = list(dict.fromkeys(role.part for role in roles))
    part_of = np.array([*(parts.index(role.part) for role in roles), NO_ROLE], np.int64)
    return {
        "cycles": result.cycles,
        "grid": {"width": plan.width, "height": plan.height},
        "boxes": [{"name": part.name, "x": part.x, "y": part.y} for part in result.stages],
        "layers": [
            *heat_maps(result.simulation, sizes[numbers], numbers),
            named_map("part", "layer", "parts", part_of[numbers]),
        ],
        "links": links(result.simulation),
        "roles": [role.code.name for role in roles],
        "parts": parts,
        "colors": list(_colors(result)),
        "routes": routes(mesh_routes(result.program)),
        "timelines": packed_timelines(trace),
        "samples": None,
        "listings": packed_json([each.json() for each in found]) if found else None,
        "activity": activity(trace, plan.width, plan.height),
    }


def _colors(result: NetworkResult) -> Iterator[dict[str, Any]]:
    """Yield what each color carries: streams between layers, and inside of which layers what."""
    colors = result.program.colors
    carried: dict[int, list[str]] = {}
    for tensor, color in colors.streams.items():
        carried.setdefault(color, []).append(tensor)
    for line, color in colors.chains.items():
        carried.setdefault(color, []).append(f"in {line}")
    for place in result.program.plan.places:
        name, program = place.block.placed.stage.name, place.block.placed.program
        for own, what in program.routing.colors:
            carried.setdefault(colors.stages[name][own], []).append(f"{what} in {name}")
    for color, names in sorted(carried.items()):
        more = f" and {len(names) - MOST_CARRIED} more" if len(names) > MOST_CARRIED else ""
        yield {"color": color, "carries": ", ".join(names[:MOST_CARRIED]) + more}
