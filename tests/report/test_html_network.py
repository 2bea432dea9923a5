"""Pages of networks and of layers: what they say is what was counted, and routes lead on."""

from __future__ import annotations

import numpy as np
import pytest
from test_html_packing import unpacked, unpacked_json
from test_html_page import Page, data_of

from polyloom.api.network import simulate_one_wafer
from polyloom.api.simulation import simulate_layers
from polyloom.report.html.layers import layers_page
from polyloom.report.html.network import network_page
from polyloom.wafer.explain.grids import NO_ROLE
from polyloom.wafer.explain.layers import ModelRun
from polyloom.wafer.explain.network_floor import mesh_roles, mesh_routes, numbered
from polyloom.wafer.explain.network_limit import limit_of_network
from polyloom.wafer.network.result import NetworkResult
from wafer.network.networks import MAPS, MLP

STEP = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}
"""As the simulator counts them."""
BACK = {"north": "south", "south": "north", "east": "west", "west": "east"}


@pytest.fixture(scope="module")
def mlp() -> NetworkResult:
    return simulate_one_wafer(MLP, samples=3, maps=MAPS, watch=())


@pytest.fixture(scope="module")
def layers() -> ModelRun:
    return simulate_layers(MLP, maps=MAPS, watch=())


@pytest.mark.slow
@pytest.mark.ci
def test_every_busy_cycle_of_a_network_is_of_a_program_and_of_a_line(mlp: NetworkResult) -> None:
    roles, busy = mesh_roles(mlp.program), mlp.simulation.busy
    numbers = numbered(roles, mlp.program.plan)
    assert {role.part for role in roles} == {part.name for part in (*mlp.stages, *mlp.exchanges)}
    assert sum(int(role.on.sum()) for role in roles) == (numbers != NO_ROLE).sum() == mlp.pes
    assert busy[numbers == NO_ROLE].sum() == 0
    listings = unpacked_json(data_of(network_page(mlp))["listings"])
    for number, listing in enumerate(listings):
        assert listing["cycles"] == busy[numbers == number].sum()
        assert listing["text"] == mlp.program.files[f"{listing['name']}.c"]


def test_routes_of_a_network_lead_on_and_are_those_that_were_used(mlp: NetworkResult) -> None:
    """What leaves a PE to a side is taken there; wavelets went exactly where some route goes."""
    plan = mlp.program.plan
    taken, sent = set(), set()
    leads = np.zeros((plan.height, plan.width, len(STEP)), np.bool_)
    for route in mesh_routes(mlp.program):
        for y, x in np.argwhere(route.on).tolist():
            assert (route.color, x, y, route.source) not in taken, "two routes of a color from one side"
            taken.add((route.color, x, y, route.source))
            for way, (side, (dx, dy)) in enumerate(STEP.items()):
                if side in route.targets:
                    leads[y, x, way] = True
                    sent.add((route.color, x + dx, y + dy, BACK[side]))
    assert {s for s in sent if 0 <= s[1] < plan.width and 0 <= s[2] < plan.height} <= taken
    assert not (mlp.simulation.link_use[:, :, :4][~leads]).any()
    assert (mlp.simulation.link_use[:, :, :4][leads] > 0).all()


def test_parts_of_a_bar_are_all_cycles(mlp: NetworkResult) -> None:
    text = network_page(mlp)
    page, data = Page(text), data_of(text)
    assert page.loads == [] and "default-src 'none'" in text
    assert text.count('class="budget"') == len(mlp.stages) + len(mlp.exchanges)
    assert sum(part["cycles"] for part in data["summary"]["parts"]) == mlp.cycles
    assert min(part["cycles"] for part in data["summary"]["parts"]) >= 0
    assert all(part.name in page.text["parts-table"] for part in (*mlp.stages, *mlp.exchanges))


def test_a_limit_is_below_what_was_measured(mlp: NetworkResult) -> None:
    one, three = (limit_of_network(mlp.program, samples).cycles for samples in (1, 3))
    assert 0 < one < three < mlp.cycles


def test_time_lines_of_a_network_are_on_its_own_pes(mlp: NetworkResult) -> None:
    data = data_of(network_page(mlp))
    pes = unpacked_json(data["timelines"])["pes"]
    roles = unpacked(next(each for each in data["layers"] if each["name"] == "role")["values"])
    at = {int(pe["y"] * data["grid"]["width"] + pe["x"]) for pe in pes if pe["total"]}
    assert {k for k in range(roles.size) if roles[k] >= 0} <= at
    assert {box["name"] for box in data["boxes"]} == {"s", "y"}


@pytest.mark.slow
@pytest.mark.ci
def test_each_layer_that_was_not_refused_has_a_page_of_its_own(layers: ModelRun) -> None:
    text = layers_page(layers)
    page = Page(text)
    assert page.loads == []
    for each, run in zip(data_of(text)["pages"], layers.layers, strict=True):
        result = run.result
        if result is None:
            assert each is None and "refused" in page.text["layers-table"]
            continue
        assert each["name"] == run.layer.name
        data = unpacked_json(each["data"])
        assert data["cycles"] == result.cycles
        listings = unpacked_json(data["listings"])
        assert sum(listing["cycles"] for listing in listings) == result.simulation.busy.sum()
        assert f"{result.cycles:,}" in page.text["layers-table"]
