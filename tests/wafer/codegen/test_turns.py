"""Results that leave in turn by switches, and streams of which filters bring each PE its own."""

from __future__ import annotations

import pytest
from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program

BOTH = frozenset({Extension.TAKING_TURNS, Extension.FILTERS})
RELU = "lair relu(M, N): T x[M][N] -> T y[M][N] { all (i, j) in (M, N) y[i][j] = max(x[i][j], 0) }"
DOWN = """size: {{ PE[1, 4] }}
compute_map: {{ relu[i, j] -> PE[0, i//{m}] }}
iport_map: {{ x[i, j] -> [PE[0, -1] -> index[i, j]] }}
oport_map: {{ y[i, j] -> [PE[0, {port}] -> index[i, j]] }}
trigger: relu = none
"""
ALONG = """size: {{ PE[4, 2] }}
compute_map: {{ relu[i, j] -> PE[j//{n}, i//{m}] }}
iport_map: {{ x[i, j] -> [PE[-1, i//{m}] -> index[i, j]] }}
oport_map: {{ y[i, j] -> [PE[4, i//{m}] -> index[i, j]] }}
trigger: relu = none
"""


def relu(  # type: ignore[no-untyped-def]
    text: str,
    m: int,
    n: int,
    *,
    element: str = "float16",
    machine: str = "cs2",
    without=frozenset(),
    invocations=1,
):
    """The layout and the cycles of a layer whose results are the evaluator's; ``m``, ``n``: all of x."""
    program = lower(
        parse(Source("a.lair", RELU.replace("T ", f"{element} "))), None, {"M": str(m), "N": str(n)}
    )
    mapping = read_mapping(Source("a.map", text), program)
    options = SimdOptions(extensions=ALL_EXTENSIONS - without, machine=load_machine(machine))
    compiled = compile_program(analyse_layer(program, mapping, options), load_machine(machine))
    runs = inputs_of(program, mapping, 1.0, invocations=invocations)
    found = simulate_program(compiled, together(mapping, runs), invocations=invocations)
    assert mistakes(compiled, mapping, runs, found.outputs) == []
    return compiled.files["layout.c"], found.cycles


@pytest.mark.parametrize("element", ["float16", "float32"])
@pytest.mark.parametrize("invocations", [1, 3])
def test_parts_that_come_late_leave_late(element: str, invocations: int) -> None:
    text = DOWN.format(m=8, port=4)
    layout, cycles = relu(text, 32, 30, element=element, invocations=invocations)
    assert "route_in_turn(" in layout and "filter" in layout
    plain, more = relu(text, 32, 30, element=element, invocations=invocations, without=BOTH)
    assert "route_in_turn(" not in plain and "filter" not in plain
    assert cycles < 0.9 * more


@pytest.mark.slow
@pytest.mark.ci
def test_a_turn_for_each_row() -> None:
    text = ALONG.format(m=3, n=6)
    layout, cycles = relu(text, 6, 24, invocations=2)
    assert "route_in_turn(" in layout and "filter_pairs(0, 6 * PE_X, 6, 24);" in layout
    assert cycles < relu(text, 6, 24, invocations=2, without=BOTH)[1]


@pytest.mark.parametrize("rows", [29, 31])
def test_a_last_part_that_is_smaller(rows: int) -> None:
    layout, _ = relu(DOWN.format(m=8, port=4), rows, 5, invocations=2)
    assert "route_in_turn(" in layout and "filter(" in layout


def test_filters_and_turns_each_alone() -> None:
    text = DOWN.format(m=8, port=4)
    for extension in BOTH:
        layout, _ = relu(text, 32, 30, without=frozenset({extension}), invocations=2)
        assert ("filter" in layout, "route_in_turn" in layout) == (
            extension is Extension.TAKING_TURNS,
            extension is Extension.FILTERS,
        )


def test_what_is_nearest_to_the_port_may_not_be_first() -> None:
    """To the north the first rows are on the last PE of a line: the others cannot wait for its wavelet."""
    layout, _ = relu(DOWN.format(m=8, port=-1), 32, 30)
    assert "route_in_turn(" not in layout


def test_many_short_turns_do_not_pay() -> None:
    text = ALONG.replace("PE[4,", "PE[16,").format(m=3, n=2)
    layout, _ = relu(text, 6, 32)
    assert "route_in_turn(" not in layout


def test_without_instructions_elements_are_passed_on() -> None:
    program = lower(parse(Source("a.lair", RELU.replace("T ", "float16 "))), None, {"M": "32", "N": "8"})
    mapping = read_mapping(Source("a.map", DOWN.format(m=8, port=4)), program)
    options = SimdOptions(SimdMode.OFF)
    layout = compile_program(analyse_layer(program, mapping, options), load_machine("cs2")).files["layout.c"]
    assert "route_in_turn(" not in layout and "filter" not in layout
