"""How often two sources meet, over loops and rows, against a count of all of them."""

from __future__ import annotations

import pytest
from corpus import inputs_of, mistakes, together

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.pipeline import analyse_layer
from polyloom.wafer.array_layout.bank_distances import BANKS, spread, walk_of
from polyloom.wafer.array_layout.order import _layouts as layouts_of
from polyloom.wafer.array_layout.order import use_of
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.machine.options import ALL_EXTENSIONS, Extension
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

CONVOLUTION = """lair conv(): float16 x[14][14][2], float16 W[3][3][3][2] -> float16 y[12][12][3]
{ all (k, h, w, r, s, c) in (3, 12, 12, 3, 3, 2) y[h][w][k] += x[h + r][w + s][c] * W[k][r][s][c] }"""
ONE_PE = "size: { PE[1, 1] }\ncompute_map: { conv[k, h, w, r, s, c] -> PE[0, 0] }\n"
TRANSPOSED = """lair conv(): float16 y[2][17][17], float16 W[2][3][3] -> float16 x[35][35]
{ all (k, h, w, r, s, c) in (2, 17, 17, 3, 3, 1) x[2*h + r][2*w + s] += y[k][h][w] * W[k][r][s] }"""


def analysed(text: str, *without: Extension):  # type: ignore[no-untyped-def]
    program = lower(parse(Source("conv.lair", text)), None, {})
    mapping = read_mapping(Source("conv.map", ONE_PE), program)
    return analyse_layer(program, mapping, SimdOptions(extensions=ALL_EXTENSIONS - set(without)))


def cycles_if_right(text: str, *without: Extension) -> int:
    analysis = analysed(text, *without)
    compiled = compile_program(analysis, load_machine("cs2"))
    runs = inputs_of(analysis.program, analysis.mapping, 1.0, invocations=1)
    found = simulate_program(compiled, together(analysis.mapping, runs))
    assert mistakes(compiled, analysis.mapping, runs, found.outputs) == []
    return found.cycles


@pytest.mark.parametrize("step", range(-5, 6))
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 10])
def test_spreading_counts_what_each_value_gives(step: int, size: int) -> None:
    start = [0.5, 0.25, 0.25, 0.0]
    expected = [0.0] * BANKS
    for distance, part in enumerate(start):
        for k in range(size):
            expected[(distance + k * step) % BANKS] += part / size
    assert spread(start, size, step) == pytest.approx(expected)


def test_the_loops_around_a_convolution_move_its_image() -> None:
    analysis = analysed(CONVOLUTION)
    inner = analysis.simd[0].innermost
    walk = walk_of(inner)
    assert walk is not None and sorted(walk.counts) == [2, 3, 3, 3]
    x = next(o for o in inner.operands if o.array == "x_local")
    read = inner.task.statement.reads[x.position]
    assert read.buffer == "x"
    moves = {steps[x.position] for steps in walk.steps}
    assert moves == {(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)}


def test_sources_meet_less_often_with_banks_and_rows_chosen() -> None:
    assert cycles_if_right(CONVOLUTION) < cycles_if_right(CONVOLUTION, Extension.BANK_PADDING)


def test_arrays_are_transposed_for_a_multiply_add_over_rows() -> None:
    (task,) = analysed(CONVOLUTION).simd
    assert task.instructions == ("fmach",)
    plain = cycles_if_right(CONVOLUTION, Extension.TRANSPOSED_ARRAYS)
    assert cycles_if_right(CONVOLUTION) < plain


def test_a_sum_is_reordered_where_that_is_much_faster() -> None:
    (task,) = analysed(TRANSPOSED).simd
    assert task.uses(Extension.REORDERED_SUMS)
    (other,) = analysed(CONVOLUTION).simd
    assert not other.uses(Extension.REORDERED_SUMS)
    assert cycles_if_right(TRANSPOSED) < cycles_if_right(TRANSPOSED, Extension.REORDERED_SUMS)


STRIDED = """lair conv(): float16 x[53][53][2], float16 W[4][3][3][2] -> float16 y[26][26][4]
{ all (k, h, w, r, s, c) in (4, 26, 26, 3, 3, 2) y[h][w][k] += x[2*h + r][2*w + s][c] * W[k][r][s][c] }"""


@pytest.mark.slow
@pytest.mark.ci
def test_rows_of_both_arrays_are_padded_where_padding_one_saves_nothing() -> None:
    """No multiply-add waits: 72 of them over 26 rows of 26, four elements a cycle."""
    arrays = analysed(STRIDED).arrays
    assert [arrays[name].shape[-1] % BANKS for name in "xy"] == [0, 0]
    work = 72 * 26 * 7
    assert work < cycles_if_right(STRIDED) < 1.12 * work
    assert cycles_if_right(STRIDED, Extension.PADDED_ROWS) > 1.2 * work


SCORES = """lair conv(): float16 Q0[1][48][64], float16 K0[1][6][64] -> float32 S[1][48][6]
{ all (k, h, w, r, s, c) in (1, 1, 1, 48, 6, 64)
     S[k][r][s] += float32(Q0[k][r][c]) * float32(K0[k][s][c]) }"""


def test_an_array_gets_an_odd_bank_where_one_of_words_has_an_even_one() -> None:
    """S moves by two words from one key to the next, so that Q0 is never met only by an odd distance."""
    arrays = analysed(SCORES).arrays
    assert arrays["S"].bank is not None and arrays["Q0"].bank is not None
    assert (arrays["S"].bank - arrays["Q0"].bank) % 2 == 1
    work = 6 * 64 * 24
    assert work < cycles_if_right(SCORES) < 1.6 * work


@pytest.mark.parametrize("text", [CONVOLUTION, TRANSPOSED])
def test_no_layout_costs_less_than_what_is_said_before_layouts_are_tried(text: str) -> None:
    """Nor does a task that has been asked about other layouts answer otherwise than one that was not."""
    analysis = analysed(text)
    options, arrays = SimdOptions(), dict(analysis.arrays)
    inner = [task.innermost for task in analysis.simd]
    asked = [use for each in inner if (use := use_of(each, options)) is not None]
    assert asked
    tried = 0
    for name, array in arrays.items():
        group = frozenset({name})
        least = sum(use.least(group, arrays) for use in asked)
        for layout in layouts_of(array, arrays, options):
            changed = {**arrays, name: layout.of(array)}
            anew = [use for each in inner if (use := use_of(each, options)) is not None]
            cost = sum(use.cycles(changed) for use in asked)
            assert cost == sum(use.cycles(changed) for use in anew)
            assert least <= cost
            tried += 1
    assert tried > 20
