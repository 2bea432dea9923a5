"""Everything that the page's scripts draw, as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from polyloom.report.html.activity import activity_document
from polyloom.report.html.cycles import budget
from polyloom.report.html.listing import Listing, cycles_of_functions, listings
from polyloom.report.html.packing import pack_numbers, pack_text, pack_truths
from polyloom.report.html.tables import cards, map_text, program_text, verdict
from polyloom.report.html.timeline import MOST_EVENTS, timelines
from polyloom.wafer.explain.grids import Integers, RouteGrid, memory_grid, role_grid, route_grids
from polyloom.wafer.explain.instances import Arrival, InstanceSample, instance_samples
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.held import LINKS
from polyloom.wafer.simulator.result import Counts, Trace

Document = dict[str, Any]

VERSION = 1
"""Of the summary, which other pages read."""

MOST_PES_WITH_LINKS = 4096
"""On larger rectangles the page says of links only how much the busiest one of a PE was used."""


def document(result: SimulationResult, most_events: int = MOST_EVENTS) -> Document:
    """Return what the scripts need: grid, heat maps, routes, time lines, samples of instance sets.

    ``most_events``: in the time lines of all PEs together.
    """
    program = result.program
    grid = program.analysis.border.given.grid
    found = listings(result)
    return {
        "summary": summary(result, found),
        "cycles": result.cycles,
        "grid": {"width": grid.width, "height": grid.height},
        "layers": heat_maps(result.simulation, memory_grid(program), role_grid(program)),
        "links": links(result.simulation),
        "roles": [role.code.name for role in program.roles],
        "colors": [{"color": color, "carries": what} for color, what in program.routing.colors],
        "routes": routes(route_grids(program)),
        "timelines": packed_timelines(result.trace, most_events),
        "samples": packed_json(_samples(result)),
        "listings": packed_json([each.json() for each in found]) if found else None,
        "activity": activity(result.trace, grid.width, grid.height),
    }


def summary(result: SimulationResult, found: tuple[Listing, ...]) -> Document:
    """Return what a page for two runs needs of one of them."""
    spent = budget(result)
    return {
        "version": VERSION,
        "name": result.program.analysis.program.name,
        "machine": result.machine,
        "simd": result.simd,
        "unit": "cycles",
        "check": verdict(result),
        "cycles": result.cycles,
        "limit": result.simulation.limit.cycles,
        "limit_by": result.simulation.limit.by,
        "figures": [[card.label, card.value, card.note] for card in cards(result)],
        "pe": None if spent is None else spent.pe,
        "parts": [] if spent is None else [part.json() for part in spent.parts],
        "functions": cycles_of_functions(found),
        "program": program_text(result),
        "map": map_text(result),
    }


def packed_json(value: Any) -> Document:
    """Return a document as a packed text of JSON."""
    return pack_text(json.dumps(value, separators=(",", ":")))


def packed_timelines(trace: Trace | None, most_events: int = MOST_EVENTS) -> Document:
    """Return the time lines as a packed text; no PE has one where nothing was recorded."""
    return packed_json({"names": [], "pes": []} if trace is None else timelines(trace, most_events))


def activity(trace: Trace | None, width: int, height: int) -> Document | None:
    """Return what PEs do as time goes on, if that was recorded."""
    profile = None if trace is None else trace.profile
    if profile is None or profile.activity is None:
        return None
    return activity_document(profile.activity, width, height)


def heat_maps(counts: Counts, memory: Integers, roles: Integers, role: str = "role") -> list[Document]:
    """Return what colours of the floor can show, int[height * width] each.

    ``memory``: bytes of each PE; ``roles``: its number among ``data.roles``, each called a ``role``.
    """
    use = counts.link_use
    amounts = (
        ("busy", "busy", "cycles", counts.busy),
        ("memory", "memory", "bytes", memory),
        ("wavelets", "wavelets through the router", "wavelets", use.sum(axis=2)),
        ("link", "busiest link", "wavelets", use.max(axis=2)),
    )
    return [
        {
            "name": name,
            "label": label,
            "unit": unit,
            "minimum": int(values.min()),
            "maximum": int(values.max()),
            "values": pack_numbers(values),
        }
        for name, label, unit, values in amounts
    ] + [named_map("role", role, "roles", roles)]


def named_map(name: str, label: str, names: str, values: Integers) -> Document:
    """Return what a colour stands for by its number in a list of names; ``names``: that field of the page."""
    ends = {"minimum": int(values.min()), "maximum": int(values.max())}
    return {"name": name, "label": label, "unit": "", "names": names, **ends, "values": pack_numbers(values)}


def links(counts: Counts) -> list[Document]:
    """Return how much each way out of each router was used; nothing on large rectangles."""
    use = counts.link_use
    if use.shape[0] * use.shape[1] > MOST_PES_WITH_LINKS:
        return []
    return [{"side": side, "values": pack_numbers(use[:, :, k])} for k, side in enumerate(LINKS)]


def routes(grids: Iterable[RouteGrid]) -> list[Document]:
    """Return routes with the PEs that have them."""
    return [
        {"color": r.color, "source": r.source, "targets": list(r.targets), "on": pack_truths(r.on)}
        for r in grids
        if r.on.any()
    ]


def _samples(result: SimulationResult) -> list[Document]:
    x, y = result.program.analysis.border.origin
    return [_sample(sample, (x, y)) for sample in instance_samples(result.program.analysis)]


def _sample(sample: InstanceSample, origin: tuple[int, int]) -> Document:
    """``placed`` and the like are flat lists of coordinates."""
    simd, task = sample.analysis, sample.analysis.task
    rank = int(sample.arrivals[0].points.shape[1]) if sample.arrivals else 0
    return {
        "task": task.name,
        "pe": [sample.pe[0] + origin[0], sample.pe[1] + origin[1]],
        "strategy": simd.strategy.value,
        "whole": simd.whole is not None,
        "index": list(task.index_names),
        "iterators": list(task.statement.iterators),
        "rank": rank,
        "placed": _flat(sample.placed),
        "arrivals": [_arrival(arrival) for arrival in sample.arrivals],
        "complete": sample.complete,
    }


def _arrival(arrival: Arrival) -> Document:
    return {
        "index": list(arrival.index),
        "points": _flat(arrival.points),
        "instances": _flat(arrival.instances),
        "extraPoints": _flat(arrival.extra_points),
        "extraInstances": _flat(arrival.extra_instances),
        "box": None if arrival.box is None else {"low": arrival.box[0], "size": arrival.box[1]},
    }


def _flat(points: np.ndarray[Any, np.dtype[np.int64]]) -> list[int]:
    found: list[int] = points.ravel().tolist()
    return found
