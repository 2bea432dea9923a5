"""Reductions along lines: each shape gives the sums, the model ranks them, roles grow with the levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import evaluate, random_inputs
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.collectives import ReductionShape, balanced
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program
from samples import LATER

LAIR = "lair red(): {T} x[{P}][{B}] -> {T} y[{B}]\n{{ all (p, i) in ({P}, {B}) y[i] {op}= x[p][i] }}\n"
SIDES = {"east": "PE[p, 0]", "west": "PE[{P} - 1 - p, 0]", "south": "PE[0, p]", "north": "PE[0, {P} - 1 - p]"}
PORTS = {"east": "PE[{P}, 0]", "west": "PE[-1, 0]", "south": "PE[0, {P}]", "north": "PE[0, -1]"}


def analysed(
    pes: int,
    elements: int,
    shape: ReductionShape,
    side: str = "",
    mode: SimdMode = SimdMode.AUTO,
    element: str = "float32",
    operator: str = "+",
) -> LayerAnalysis:
    """Reduce a row or column of PEs, to a port on a side or, without one, into the last PE's memory."""
    program = lower(
        parse(Source("red.lair", LAIR.format(P=pes, B=elements, T=element, op=operator))), None, {}
    )
    line = SIDES[side or "east"].format(P=pes)
    size = f"PE[{pes}, 1]" if side in ("", "east", "west") else f"PE[1, {pes}]"
    text = f"size: {{ {size} }}\ncompute_map: {{ red[p, i] -> {line} }}\n"
    if side:
        port = PORTS[side].format(P=pes)
        text += f"oport_map: {{ y[i = 0:{elements - 1}] -> [{port} -> index[i]] }}\n"
    mapping = read_mapping(Source("red.map", text), program)
    return analyse_layer(program, mapping, SimdOptions(mode), shape)


def simulated(analysis: LayerAnalysis) -> int:
    """Run a layer, compare with the evaluator, and return the cycles."""
    inputs = random_inputs(analysis.program, 3, 1.0)
    found = simulate_program(compile_layer(analysis, load_machine("cs2")), inputs)
    for name, values in evaluate(analysis.program, inputs).items():
        np.testing.assert_array_equal(found.outputs[name], values, strict=True)
    return found.cycles


@given(st.integers(2, 700), st.integers(1, 10))
def test_groups_reduce_the_whole_line_and_none_could_be_smaller(pes: int, levels: int) -> None:
    groups = balanced(pes, min(levels, math.ceil(math.log2(pes))))
    assert math.prod(groups) >= pes
    assert min(groups) >= 2
    assert max(groups) - min(groups) <= 1
    for k, size in enumerate(groups):
        assert math.prod(groups) // size * (size - 1) < pes, (groups, k)


LINES = (
    (7, 5, "east", "float32", "+"),
    (6, 1, "west", "float16", "+"),
    (9, 3, "south", "int16", "max"),
    (5, 4, "north", "float32", "+"),
    (11, 2, "", "float16", "max"),
)
SHAPES = (ReductionShape.CHAIN, ReductionShape.TWO_PHASE, ReductionShape.TREE)


@pytest.mark.parametrize(
    ("shape", "pes", "elements", "side", "element", "operator"),
    [
        pytest.param(shape, *line, marks=() if i == k % len(SHAPES) else LATER)
        for k, line in enumerate(LINES)
        for i, shape in enumerate(SHAPES)
    ],
)
def test_every_shape_reduces_to_every_side(
    shape: ReductionShape, pes: int, elements: int, side: str, element: str, operator: str
) -> None:
    analysis = analysed(pes, elements, shape, side, SimdMode.AUTO, element, operator)
    levels = {
        ReductionShape.CHAIN: 1,
        ReductionShape.TWO_PHASE: 2,
        ReductionShape.TREE: math.ceil(math.log2(pes)),
    }
    (reduction,) = analysis.reductions
    assert len(reduction.chosen.groups) == levels[shape]
    simulated(analysis)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("pes", "elements"), [(16, 1), pytest.param(64, 1, marks=LATER), pytest.param(64, 32, marks=LATER)]
)
def test_the_model_says_what_the_simulator_counts(pes: int, elements: int) -> None:
    """Differences between shapes: what comes before and after the reduction is the same for all of them."""
    cycles: dict[ReductionShape, int] = {}
    model: dict[ReductionShape, int] = {}
    for shape in ReductionShape:
        analysis = analysed(pes, elements, shape)
        cycles[shape], model[shape] = simulated(analysis), analysis.reductions[0].chosen.cycles
    assert cycles[ReductionShape.AUTO] <= 1.05 * min(cycles.values())
    for shape in ReductionShape:
        difference = cycles[shape] - cycles[ReductionShape.CHAIN]
        said = model[shape] - model[ReductionShape.CHAIN]
        assert abs(difference - said) <= 0.12 * max(cycles.values())


def test_roles_grow_with_the_levels_only() -> None:
    small, large = (
        compile_layer(analysed(pes, 8, ReductionShape.TREE), load_machine("cs2")) for pes in (32, 128)
    )
    assert len(large.roles) <= len(small.roles) + 4
    assert max(len(text) for text in large.files.values()) < 1.6 * max(map(len, small.files.values()))


def test_a_tree_takes_the_levels_for_which_there_are_queues() -> None:
    (reduction,) = analysed(512, 1, ReductionShape.TREE).reductions
    assert len(reduction.chosen.groups) == 8
    assert reduction.reason == "queues and colors are left for 8 of the 9 levels of a binary tree"


def test_pes_with_different_elements_stay_a_chain() -> None:
    program = lower(
        parse(
            Source(
                "s.lair",
                "lair s(): float32 x[9] -> float32 y[10]\n{ all (i, k) in (9, 2) y[i + k] += x[i] }\n",
            )
        ),
        None,
        {},
    )
    text = "size: { PE[3, 1] }\ncompute_map: { s[i, k] -> PE[i//3, 0] }\n"
    analysis = analyse_layer(program, read_mapping(Source("s.map", text), program), SimdOptions())
    assert analysis.reductions == ()
    simulated(analysis)
