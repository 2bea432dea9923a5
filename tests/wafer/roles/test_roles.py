"""Roles: a partition of the PEs with work into classes that do the same things."""

from __future__ import annotations

from pathlib import Path

import islpy as isl
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.mapping.grid import pes_of
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.roles.roles import find_roles
from polyloom.wafer.simd.decision import SimdOptions

EXAMPLES = Path(__file__).parents[3] / "examples"


def analysed(lair: str, mapping: str, sizes: dict[str, str]) -> LayerAnalysis:
    program = lower(parse(Source(lair, (EXAMPLES / lair).read_text())), None, sizes)
    placed = read_mapping(Source(mapping, (EXAMPLES / mapping).read_text()), program)
    return analyse_layer(program, placed, SimdOptions())


CASES = [
    ("ff.lair", "ff44.map", {"M": "32", "N": "16"}),
    ("ff.lair", "ff44.map", {"M": "30", "N": "13"}),
    ("conv1d.lair", "conv1d.map", {}),
    ("conv1x1.lair", "conv1x1.map", {}),
]


@pytest.mark.parametrize(("lair", "mapping", "sizes"), CASES)
def test_roles_are_disjoint_and_hold_every_pe_with_work(
    lair: str, mapping: str, sizes: dict[str, str]
) -> None:
    analysis = analysed(lair, mapping, sizes)
    roles = find_roles(analysis)
    together = isl.Set("{ PE[x, y] : false }")
    for role in roles:
        assert role.pes.is_disjoint(together)
        together = together.union(role.pes)
    placed = [relation.range() for relation in analysis.mapping.placement.values()]
    assert all(pes.is_subset(together) for pes in placed)
    assert len({role.name for role in roles}) == len(roles)


@pytest.mark.parametrize(("lair", "mapping", "sizes"), CASES)
def test_what_holds_on_one_pe_of_a_role_holds_on_all(lair: str, mapping: str, sizes: dict[str, str]) -> None:
    analysis = analysed(lair, mapping, sizes)
    features = [pes_of(task.instances) for task in analysis.graph.compute]
    features += [stream.receivers for stream in analysis.graph.streams]
    features += [chain.last for result in analysis.graph.results for chain in result.chains]
    for role in find_roles(analysis):
        for feature in features:
            assert role.pes.is_subset(feature) or role.pes.is_disjoint(feature)


def test_the_pes_of_a_set_with_parameters() -> None:
    points = isl.Set("[index, PE_Y, PE_X] -> { S[i] : i = PE_X + 2 and 0 <= PE_Y < 3 and PE_X = index }")
    assert pes_of(points).is_equal(isl.Set("{ PE[x, y] : 0 <= y < 3 }"))
