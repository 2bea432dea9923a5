"""Border adapters: the paper's equations (5), (6) and (10), and random ports, bit for bit.

A failure prints the seed, the layer and its map. ``border_layer(seed)`` makes it again.
Source: dtg_codegen, Sec. 4.1.2 and 4.2.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import islpy as isl
import pytest
from border_layers import border_layer
from corpus import layers
from outcomes import MODES, REFUSED, outcome

from polyloom.pipeline import analyse_layer
from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import kinds_of
from polyloom.wafer.border.peeling import peel_border
from polyloom.wafer.explain.document import explanation
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulator import build


@cache
def listing_2() -> dict[str, Any]:
    """What ``explain`` says of the map of Sec. 4.1.2 with the placement of Listing 2."""
    layer = next(layer for layer in layers() if layer.map == "ff45")
    program = layer.program()
    analysis = analyse_layer(program, layer.mapping(program), SimdOptions())
    return dict(json.loads(json.dumps(explanation(analysis))))


def test_the_compute_rectangle_loses_its_top_row() -> None:
    size = listing_2()["size"]
    assert isl.Set(size["given"]).is_equal(isl.Set("{ PE[0:3, 0:4] }"))
    assert isl.Set(size["compute"]).is_equal(isl.Set("{ PE[0:3, 0:3] }"))


@pytest.mark.parametrize(
    ("equation", "part", "name", "printed"),
    [
        (5, "ports", "x", "{ x[i = 0:15] -> [PE[i//4, -1] -> index[i mod 4]] }"),
        (6, "ports", "y", "{ y[i = 0:31] -> [PE[4, i//8] -> index[i mod 8]] }"),
        (10, "placement", "ff", "{ ff[i = 0:31, j = 0:15] -> PE[j//4, i//8] }"),
    ],
)
def test_the_compute_pes_see_the_papers_map(equation: int, part: str, name: str, printed: str) -> None:
    assert isl.Map(listing_2()[part][name]).is_equal(isl.Map(printed)), f"eq. ({equation})"


def test_the_adapters_are_a_task_of_explain() -> None:
    (adapter,) = [task for task in listing_2()["tasks"] if task["kind"] == "adapt"]
    assert (adapter["tensor"], adapter["border"], adapter["inward"]) == ("x", "north", True)
    given = isl.Map("{ x[i = 0:15] -> [PE[0, -1] -> index[i]] }")
    assert isl.Map(adapter["ports"]).is_equal(given)


@cache
def adapters() -> tuple[Adapter, ...]:
    """Those of all layers of the examples."""
    borders = (peel_border(program := layer.program(), layer.mapping(program)) for layer in layers())
    return tuple(adapter for border in borders for adapter in border.adapters)


@pytest.mark.slow
@pytest.mark.ci
def test_the_examples_have_adapters_on_all_kinds_of_lines() -> None:
    found = Counter[tuple[str, bool, bool]]()
    for adapter in adapters():
        found[adapter.side.value, adapter.inward, adapter.spread] += 1
    assert {side for side, _, _ in found} == {"north", "south", "east", "west"}
    assert {(inward, spread) for _, inward, spread in found} == {(True, True), (True, False), (False, False)}


@pytest.mark.slow
@pytest.mark.ci
def test_every_element_goes_one_way() -> None:
    """On each PE an element is of one kind; it enters the line once and ends where it is needed."""
    for adapter in adapters():
        kinds = kinds_of(adapter)
        for k, kind in enumerate(kinds):
            assert all(kind.items.is_disjoint(other.items) for other in kinds[:k])
        wanted = adapter.element_to_port.domain_factor_range().set_tuple_name(isl.dim_type.in_, "pos")
        ends = [kind.items for kind in kinds if any(way.is_line for way in (kind.origin, *kind.targets))]
        together = ends[0]
        for items in ends[1:]:
            together = together.union(items)
        assert together.is_equal(wanted)


@pytest.mark.slow
@pytest.mark.ci
def test_a_few_layers_with_ports_anywhere() -> None:
    outcomes = Counter(outcome(border_layer(seed), (MODES[seed % 2],)) for seed in range(100, 104))
    assert outcomes["right"] >= 2 and set(outcomes) <= {"right", *REFUSED}, outcomes


@pytest.mark.slow
@pytest.mark.ci
def test_a_layer_whose_indices_have_remainders_of_several_iterators() -> None:
    """isl's ``lexmin`` fails for the set of these indices."""
    assert outcome(border_layer(23), (MODES[0],)) == "right"


@pytest.mark.slow
@pytest.mark.parametrize("start", [pytest.param(0, marks=pytest.mark.ci), 12, 24])
def test_some_layers_with_ports_anywhere(start: int) -> None:
    outcomes = Counter(
        outcome(border_layer(seed), (MODES[0], MODES[1 + seed % 4])) for seed in range(start, start + 12)
    )
    assert outcomes["right"] >= 6, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_many_layers_with_ports_anywhere(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path)
    outcomes = Counter(outcome(border_layer(seed), MODES) for seed in range(start, start + 50))
    assert outcomes["right"] >= 25, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes
