"""What each pair of a sparse stream costs: addresses of a chunk are set at its end, rows are long."""

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
from polyloom.wafer.program.wafer_program import WaferProgram, compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

CS2 = load_machine("cs2")
CONVOLUTION = """lair conv(): float16 x[{rows}][{columns}][4], float16 W[8][3][3][4] -> float16 y[{n}][{n}][8]
{{ all (k, h, w, r, s, c) in (8, {n}, {n}, 3, 3, 4)
     y[h][w][k] += x[{by}*h + r][{by}*w + s][c] * W[k][r][s][c] }}"""
CHANNELS = """size: {{ PE[2, 2] }}
compute_map: {{ conv[k, h, w, r, s, c] -> PE[c//2, k//4] }}
iport_map: {{ x[h, w, c] -> [PE[c//2, -1] -> index[{index}]] }}
oport_map: {{ y[h, w, k] -> [PE[2, k//4] -> index[h, w, k mod 4]] }}
sparse: x
"""
BY_CHANNEL, BY_ROW = "c mod 2, h, w", "h, w, c mod 2"


def convolution(by: int, index: str, *without: Extension, n: int = 5) -> WaferProgram:
    extent = by * (n - 1) + 3
    program = lower(
        parse(Source("a.lair", CONVOLUTION.format(rows=extent, columns=extent, n=n, by=by))), None, {}
    )
    mapping = read_mapping(Source("a.map", CHANNELS.format(index=index)), program)
    options = SimdOptions(machine=CS2, extensions=ALL_EXTENSIONS - set(without))
    return compile_program(analyse_layer(program, mapping, options), CS2)


def cycles_if_right(compiled: WaferProgram, density: float = 1.0, invocations: int = 1) -> int:
    program, mapping = compiled.analysis.program, compiled.analysis.mapping
    runs = inputs_of(program, mapping, density, invocations=invocations)
    found = simulate_program(compiled, together(mapping, runs), invocations=invocations)
    assert mistakes(compiled, mapping, runs, found.outputs) == []
    return found.cycles


def task(compiled: WaferProgram, name: str) -> str:
    """The text of a task of the first role that has it."""
    text = next(t for file, t in compiled.files.items() if file.endswith(".c") and f"void {name}(" in t)
    return text.split(f"static void {name}(")[-1].split("\n}")[0]


def test_the_filters_channel_is_chosen_when_the_channel_before_it_ends() -> None:
    compiled = convolution(1, BY_CHANNEL)
    assert "set_base_address(conv_W" not in task(compiled, "handle_x")
    assert "set_base_address(conv_W" in task(compiled, "end_x")


def test_what_depends_on_the_pair_stays_and_short_chunks_are_left_alone() -> None:
    assert "set_base_address(conv_y" in task(convolution(1, BY_CHANNEL), "handle_x")
    assert "set_base_address(conv_y" in task(convolution(1, BY_ROW), "handle_x")  # two pairs in a chunk


@pytest.mark.parametrize("by", [1, 2])
@pytest.mark.parametrize("index", [BY_CHANNEL, BY_ROW, "w, c mod 2, h", "h, c mod 2, w"])
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_results_are_right_in_every_order_and_again(by: int, index: str, density: float) -> None:
    cycles_if_right(convolution(by, index), density, invocations=2)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("by", [1, 2])
def test_rows_of_output_channels_are_faster_than_rows_of_the_filter(by: int) -> None:
    ours = convolution(by, BY_CHANNEL)
    assert any(a.order for a in ours.analysis.simd)
    filters_rows = convolution(by, BY_CHANNEL, Extension.OUTER_LOOPS)
    assert not any(a.order for a in filters_rows.analysis.simd)
    assert cycles_if_right(ours) < 0.97 * cycles_if_right(filters_rows)
