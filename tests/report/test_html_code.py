"""Lines with their cycles, where cycles went, what PEs do: against the emitted C, the trace, brute force."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from reports import simulated
from test_html_packing import unpacked

from polyloom.report.html.activity import activity_document
from polyloom.report.html.cycles import budget
from polyloom.report.html.document import document
from polyloom.report.html.listing import cycles_of_functions, listings
from polyloom.wafer.simulation.result import SimulationResult
from polyloom.wafer.simulator.profile import Activity
from polyloom.wafer.simulator.result import TraceKind

LAYERS = [("conv1d", "conv1d"), ("ff", "ff55_one_port"), ("training", "training")]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(("name", "map_name"), LAYERS)
def test_lines_add_up_to_what_pes_were_busy(name: str, map_name: str) -> None:
    result = simulated(name, map_name)
    found = listings(result)
    role_of = {listing.name: listing for listing in found}
    for role in result.program.roles:
        listing = role_of[role.code.name]
        assert listing.text == result.program.files[f"{role.code.name}.c"]
        assert all(1 <= use[0] <= len(listing.text.splitlines()) for use in listing.uses)
    assert sum(listing.cycles for listing in found) == result.simulation.busy.sum()
    assert sum(cycles_of_functions(found).values()) == result.simulation.busy.sum()
    assert list(cycles_of_functions(found).values()) == sorted(cycles_of_functions(found).values())[::-1]


def test_a_task_is_counted_at_the_head_of_its_function() -> None:
    """Dispatch: 16 cycles for each of 16 elements on both PEs of conv1d, at the line that begins handle_x."""
    result = simulated("conv1d", "conv1d")
    (listing,) = listings(result)
    head = 1 + listing.text.splitlines().index("static void handle_x(uint16_t index, half data) {")
    dispatch = result.program.machine.data_task_dispatch
    assert (head, 32, 32 * dispatch, 0, 0) in listing.uses
    end = 1 + listing.text.splitlines().index("static void end_x(void) {")
    assert listing.names["handle_x"] == head and listing.names["end of handle_x"] == end


@pytest.mark.slow
@pytest.mark.ci
def test_lines_know_their_tasks() -> None:
    """training: handle_dy computes fg and fd, each by its own instruction; update is a task of its own."""
    for listing in listings(simulated("training", "training")):
        lines = listing.text.splitlines()
        for number, line in enumerate(lines, 1):
            for task in ("ff", "fg", "fd", "update"):
                if f", {task}_" in line and "invoke_simd" in line:
                    assert listing.tasks[number] == task
        assert "" not in listing.tasks.values()


@pytest.mark.parametrize(("name", "map_name"), LAYERS)
def test_where_cycles_went_is_what_each_cycle_was(name: str, map_name: str) -> None:
    """Brute force: what is known of every single cycle of the busiest PE."""
    result = simulated(name, map_name)
    spent = budget(result)
    assert spent is not None and result.trace is not None
    assert sum(part.cycles for part in spent.parts) == result.cycles
    x, y = spent.pe
    busy = result.simulation.busy
    assert busy[y, x] == busy.max()
    state = np.full(result.cycles, "idle", dtype=object)
    order = (TraceKind.TASK, TraceKind.SIMD, TraceKind.WAIT)
    for kind in order:
        for e in result.trace.events:
            if e["pe"] == y * result.trace.width + x and e["kind"] == kind:
                state[int(e["start"]) : int(e["start"]) + int(e["duration"])] = kind.name
    counts = Counter(state)
    by = {part.kind: part.cycles for part in spent.parts}
    assert by["simd"] + by["launch"] == counts["SIMD"] and by["wait"] == counts["WAIT"]
    assert by["dispatch"] + by["task"] == counts["TASK"]
    assert by["before"] + by["between"] + by["after"] == counts["idle"]
    trailing = len(state) - 1 - max(k for k, what in enumerate(state) if what != "idle")
    assert by["after"] == trailing


def test_shares_of_time_are_of_the_pes_that_a_cell_has() -> None:
    """A 3 x 1 rectangle in cells of 2 x 2: the second cell has one PE."""
    cycles = np.zeros((2, 4, 1, 2), np.int64)
    cycles[0, 0] = [[8, 4]]
    cycles[1, 1] = [[4, 1]]
    packed = activity_document(Activity(2, 4, cycles), 3, 1)
    values = unpacked(packed["values"]).reshape(2, 4, 1, 2)
    assert values[0, 0].tolist() == [[255, 255]] and values[1, 1].tolist() == [[128, 64]]
    assert (packed["side"], packed["length"], packed["frames"], packed["columns"]) == (2, 4, 2, 2)


def test_the_documents_listings_are_those() -> None:
    result = simulated("ff", "ff55_one_port")
    data: dict[str, Any] = document(result)
    text = zlib.decompress(base64.b64decode(data["listings"]["data"])).decode()
    found = json.loads(text)
    assert [each["name"] for each in found] == data["roles"]
    assert sum(each["pes"] for each in found) == result.simulation.pe_count


def test_without_a_trace_nothing_is_made_up() -> None:
    result: SimulationResult = simulated("conv1d", "conv1d")
    bare = replace(result, simulation=replace(result.simulation, trace=None))
    data = document(bare)
    assert data["listings"] is None and data["activity"] is None and data["summary"]["parts"] == []
