"""The estimate by which layouts are ranked before any is compiled: boxes, drivers, moves, choices."""

from __future__ import annotations

from dataclasses import replace

import pytest
from corpus import Layer, layers

from polyloom import read_mapping, read_program, simulate
from polyloom.diagnostics import Source
from polyloom.ir.host import Index
from polyloom.ir.program import Program
from polyloom.pipeline import analyse_layer, complete_mapping
from polyloom.wafer.dataflow.tasks import possible_drivers
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.placement.boxes import LocalBox, Movement, elements, local_box, used_elements
from polyloom.wafer.placement.candidates import QUICK, SearchOptions
from polyloom.wafer.placement.choose import Choice
from polyloom.wafer.placement.coordinates import Coordinate, Place, Tile
from polyloom.wafer.placement.cost.boxes import BoxCosts
from polyloom.wafer.placement.cost.estimate import LayoutEstimator
from polyloom.wafer.placement.cost.model import estimated_cycles
from polyloom.wafer.placement.fixed import place_of
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from samples import LATER

CS2 = load_machine("cs2")
CONV = read_program("lair conv(): float16 x[2][18], float16 W[3][2][3] -> float16 y[3][16]\n"
                    "{ all (k, w, c, r) in (3, 16, 2, 3) y[k][w] += x[c][w + r] * W[k][c][r] }")  # fmt: skip
SHOWN = ("conv1d", "conv2d_channels", "gemv_bias M=32 N=16", "matmul_dense M=6 N=6 K=6", "ff44 M=30 N=13")


def tiled(rank: int, k: int, extent: int, size: int) -> Coordinate:
    return Coordinate((Tile(Index.unit(k, rank), 0, extent - 1, size),))


@pytest.mark.parametrize("layer", [x for x in layers() if x.name in SHOWN], ids=lambda x: x.name)
def test_the_first_estimate_is_of_the_size_of_the_price(layer: Layer) -> None:
    program = layer.program()
    mapping = layer.mapping(program)
    movement = Movement(tuple(mapping.inputs), tuple(mapping.outputs), mapping.sparse)
    places = [place_of(s, mapping.placement[s.name]) for s in program.statements]
    drivers = {s.name: possible_drivers(program, mapping, s)[0] for s in program.statements}
    driven = replace(mapping, trigger=drivers)
    compiled = compile_program(analyse_layer(program, driven, SimdOptions(machine=CS2)), CS2)
    estimate = LayoutEstimator(program, movement, CS2, may_wait=False).estimate(places)
    assert 0.4 < estimate.cycles / estimated_cycles(compiled) < 1.3


def box(*counts: int) -> LocalBox:
    return LocalBox(counts, (1,) * len(counts))


def test_a_box_is_loops_around_the_longest_instructions() -> None:
    costs = BoxCosts(CS2)
    conv = CONV.statements[0]
    one_output = costs.together(conv, box(1, 16, 1, 3))
    assert one_output < costs.together(conv, box(1, 16, 2, 3)) < 2.2 * one_output
    assert costs.together(conv, box(1, 16, 2, 3)) < 16 * 2 * 3 * CS2.loop_iteration


def test_one_element_of_a_window_meets_a_diagonal() -> None:
    costs = BoxCosts(CS2)
    conv = CONV.statements[0]
    assert costs.one_arrival(conv, 0, box(1, 16, 2, 3)) == costs.one_arrival(conv, 0, box(1, 3, 2, 3))
    assert costs.one_arrival(conv, 0, box(1, 1, 2, 1)) < costs.one_arrival(conv, 0, box(3, 1, 2, 1))


PRODUCT = """lair f(): float16 x{}, float16 W[4][2] -> float16 y{}
{{ all (h, w, k, c) in (32, 32, 4, 2) {} }}"""


def test_arrays_are_transposed_for_long_instructions() -> None:
    """Seen with a 1 x 1 convolution, whose best layout was estimated to take three times its cycles."""
    across = PRODUCT.format("[32][32][2]", "[32][32][4]", "y[h][w][k] += x[h][w][c] * W[k][c]")
    along = PRODUCT.format("[2][32][32]", "[4][32][32]", "y[k][h][w] += x[c][h][w] * W[k][c]")
    programs = (read_program(text).statements[0] for text in (across, along))
    found = [BoxCosts(CS2).together(statement, box(32, 32, 4, 2)) for statement in programs]
    assert found[0] == found[1] < 1.25 * 32 * 32 * 4 * 2 / 4


STRIDED = """lair conv(): float16 x[21], float16 W[4] -> float16 y[8]
{ all (w, r) in (8, 4) y[w] += x[2*w + r] * W[r] }"""


def test_cyclic_tiles_need_fewer_elements() -> None:
    """Of one parity of ``r``, ``x[2*w + r]`` is every other element; of a block of ``r`` it is each."""
    conv = read_program(STRIDED).statements[0]
    blocks = local_box(conv, Coordinate((Tile(Index.unit(1, 2), 0, 3, 2),)))
    cyclic = local_box(conv, Coordinate((Tile(Index.unit(1, 2), 0, 3, 2, cycle=2),)))
    assert (blocks.counts, blocks.steps) == ((8, 2), (1, 1))
    assert (cyclic.counts, cyclic.steps) == ((8, 2), (1, 2))
    assert [used_elements(conv.reads[0], b) for b in (blocks, cyclic)] == [16, 9]
    assert [elements(conv.reads[0], b) for b in (blocks, cyclic)] == [16, 17]


@pytest.mark.slow
@pytest.mark.ci
def test_a_strided_window_is_distributed_cyclically() -> None:
    program = next(x for x in layers() if x.name == "conv1d_strided_dilated").program()
    given = "size: { PE[1, 2] }\niport_map: auto x\nsparse: x\n"
    choice = chosen(program, given)
    assert "rw mod 2" in choice.text
    result = simulate(program, choice.mapping, check=True)
    assert result.check is not None and result.check.passed
    blocks = choice.text.replace("rw mod 2", "rw//2").split("iport_map")[0] + given.split("\n", 1)[1]
    in_blocks = chosen(program, blocks)
    assert result.cycles < 0.92 * simulate(program, in_blocks.mapping).cycles


@pytest.mark.slow
@pytest.mark.ci
def test_a_direction_asks_for_blocks() -> None:
    source = Source(
        "m", "size: { PE[1, 2] }\ncompute_map: { conv[w, r] -> [0, r] }\niport_map: auto x\nsparse: x"
    )
    assert "mod 2, 0]" not in complete_mapping(source, read_program(STRIDED), CS2).text.split("iport_map")[0]
    assert "r//2" in complete_mapping(source, read_program(STRIDED), CS2).text


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("name", "gain"), [("maxpool", 5), pytest.param("matmul_dense M=6 N=6 K=6", 1.5, marks=LATER)]
)
def test_dense_streams_are_stored_where_that_is_less_work(name: str, gain: float) -> None:
    """One instruction takes what a PE keeps, another what goes by; then the statement runs as a whole."""
    layer = next(x for x in layers() if x.name == name)
    program = layer.program()
    hand = layer.mapping(program)
    given = f"size: {{ PE[{hand.grid.width}, {hand.grid.height}] }}\niport_map: auto {', '.join(hand.inputs)}"
    choice = chosen(program, given)
    assert f"trigger: {program.statements[0].name} = none" in choice.text
    result = simulate(program, choice.mapping, check=True)
    assert result.check is not None and result.check.passed
    driven = choice.text.replace("= none", f"= {list(choice.mapping.inputs)[-1]}")
    assert gain * result.cycles < simulate(program, read_mapping(driven, program)).cycles


def test_a_trigger_that_the_map_gives_stays() -> None:
    layer = next(x for x in layers() if x.name == "maxpool")
    given = "size: { PE[2, 2] }\niport_map: auto x\ntrigger: pool = x"
    choice = chosen(layer.program(), given)
    assert "trigger: pool = x" in choice.text and "none" not in choice.text


def test_a_stream_does_not_drive_what_waits_for_its_end() -> None:
    program = read_program("lair late(): float16 x[8] -> float16 s[8], float16 y[8] {\n"
                           "  all (i) in (8) s[i] = x[i] * 2\n"
                           "  all (i) in (8) y[i] += s[i] * x[i]\n}\n")  # fmt: skip
    place = Place(Coordinate(), Coordinate())
    estimator = LayoutEstimator(program, Movement(("x",), ("y",), ()), CS2)
    stored = LayoutEstimator(program, Movement((), ("y",), ()), CS2)
    assert estimator.estimate([place, place]).cycles > stored.estimate([place, place]).cycles


def test_what_is_moved_costs_more_than_what_stays() -> None:
    program = read_program("lair two(): float16 x[8][8] -> float16 h[8][8], float16 y[8][8] {\n"
                           "  all (i, j) in (8, 8) h[i][j] = x[i][j] * 2\n"
                           "  all (i, j) in (8, 8) y[i][j] = h[i][j] + 1\n}\n")  # fmt: skip
    rows = Place(Coordinate(), tiled(2, 0, 8, 2))
    columns = Place(Coordinate(), tiled(2, 1, 8, 2))
    estimator = LayoutEstimator(program, Movement(("x",), ("y",), ()), CS2)
    assert estimator.estimate([rows, columns]).cycles > 1.5 * estimator.estimate([rows, rows]).cycles


# What follows for the choice.


def chosen(program: Program, text: str) -> Choice:
    options = SearchOptions(layouts=4, refined=1, compiled=12)
    return complete_mapping(Source("part.map", text), program, CS2, None, options)


WINDOWS = {
    "apart": ("x[4][10][10]", "y[4][5][5]", "(4, 5, 5, 2, 2) y[k][h][w] max= x[k][2*h + a][2*w + b]", (2, 1)),
    "dilated": ("x[8][7]", "y[8][3]", "(8, 1, 3, 1, 2) y[k][w] max= x[k][2*w + 2*b]", (4, 2)),
    "passing": ("x[7][7][5]", "y[3][3][5]", "(5, 3, 3, 3, 3) y[h][w][k] max= x[2*h + a][2*w + b][k]", (4, 4)),
    "whole": ("x[12]", "y[12]", "(1, 1, 12, 1, 1) y[w] max= x[w]", (2, 1)),
}


@pytest.mark.parametrize(("x", "y", "body", "size"), WINDOWS.values(), ids=WINDOWS)
def test_the_quick_estimate_of_windows_is_what_is_simulated(
    x: str, y: str, body: str, size: tuple[int, int]
) -> None:
    """No instruction works on a stream where instances do not follow its elements, or some pass by."""
    program = read_program(f"lair f(): float16 {x} -> float16 {y}\n{{ all (k, h, w, a, b) in {body} }}\n")
    choice = complete_mapping(Source("m", "iport_map: auto x\n"), program, CS2, size, QUICK)
    simulated = simulate(program, choice.mapping).cycles
    assert 0.8 < choice.candidates[0].cycles / simulated < 1.25


SPREAD = (
    ("y[2*h] += x[h]", 16, "PE[i//4, "),
    ("y[2*h + 1] += x[h]", 16, "PE[max(0, (i - 1)//4), "),
    ("y[h + 2] += x[h]", 12, "PE[min(3, max(0, (i - 2)//2)), "),
    ("y[7 - h] += x[h]", 8, "PE[(-i + 7)//2, "),
)


@pytest.mark.parametrize(("body", "extent", "port"), SPREAD)
def test_unwritten_elements_leave_beside_the_written_ones(body: str, extent: int, port: str) -> None:
    program = read_program(f"lair up(): float16 x[8] -> float16 y[{extent}]\n{{ all (h) in (8) {body} }}\n")
    text = "size: { PE[4, 1] }\ncompute_map: { up[h] -> [h, 0] }\noport_map: auto y\n"
    choice = chosen(program, text)
    assert port in choice.text
    result = simulate(program, choice.mapping, check=True)
    assert result.check is not None
    assert result.check.passed


def test_a_candidate_for_each_placement() -> None:
    choice = chosen(CONV, "size: { PE[2, 2] }\niport_map: auto x\noport_map: auto y\n")
    placements = [candidate.placement for candidate in choice.candidates]
    assert len(placements) == len(set(placements)) > 1
    assert choice.candidates[0].text == choice.text
    assert choice.candidates[0].variants > 1
    assert all(candidate.placement in candidate.text for candidate in choice.candidates)
    assert [c.cycles for c in choice.candidates] == sorted(c.cycles for c in choice.candidates)


def test_single_indices_come_first() -> None:
    """An innermost index with one value makes every element a chunk."""
    program = read_program("lair sums(): float16 x[6][6][4] -> float16 y[6][4] {\n"
                           "  all (h, c, w) in (6, 4, 6) y[h][c] += x[h][w][c]\n}\n")  # fmt: skip
    text = "size: { PE[4, 1] }\ncompute_map: { sums[h, c, w] -> [c, 0] }\niport_map: auto x\n"
    choice = chosen(program, text)
    assert "index[0, " in choice.text
