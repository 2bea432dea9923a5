"""The cost model: what it says of compiled layers is close to what the simulator counts."""

from __future__ import annotations

import pytest
from corpus import Layer, inputs_of, layers, together

from polyloom import compile_wafer, read_mapping, read_program, simulate
from polyloom.polyhedra.loops.generate import Name, Number, Operation
from polyloom.wafer.placement.cost.code import evenly, stride_limit
from polyloom.wafer.placement.cost.integer_values import trips, value_of
from polyloom.wafer.placement.cost.model import estimate, estimated_cycles
from polyloom.wafer.simulation.run import simulate_program
from samples import one_in

SHOWN = (
    "bias N=16",
    "conv1d",
    "conv2d_channels",
    "conv_transposed",
    "fc_batched B=3 M=16 N=8",
    "ff44 M=30 N=13",
    "ff44 M=32 N=16 T=int16",
    "ff44_stored M=32 N=16",
    "gemv_bias M=32 N=16",
    "matmul_dense M=6 N=6 K=6",
    "maxpool",
    "mlp K=8 M=12 N=6",
    "residual M=6 N=4",
)


@pytest.mark.parametrize("layer", one_in(3, (x for x in layers() if x.name in SHOWN), name=lambda x: x.name))
def test_an_estimate_is_close_to_what_is_simulated(layer: Layer) -> None:
    program = layer.program()
    mapping = layer.mapping(program)
    compiled = compile_wafer(program, mapping).program
    simulated = simulate_program(compiled, together(mapping, inputs_of(program, mapping, 1.0, 1))).cycles
    assert 0.75 < estimated_cycles(compiled) / simulated < 1.33


@pytest.mark.parametrize("shape", ["chain", "two-phase", "tree"])
def test_reductions_of_every_shape(shape: str) -> None:
    program = read_program("lair dot(): float16 x[16][8], float16 W[16][8] -> float16 y[8] {\n"
                           "  all (i, j) in (16, 8) y[j] += x[i][j] * W[i][j]\n}\n")  # fmt: skip
    text = "size: { PE[16, 1] }\ncompute_map: { dot[i, j] -> PE[i, 0] }\n"
    text += "oport_map: { y[j = 0:7] -> [PE[16, 0] -> index[j]] }\n"
    mapping = read_mapping(text, program)
    compiled = compile_wafer(program, mapping, reduction=shape).program
    simulated = simulate(program, mapping, reduction=shape).simulation.cycles
    assert 0.8 < estimated_cycles(compiled) / simulated < 1.25


def test_an_estimate_says_where_cycles_go() -> None:
    layer = next(x for x in layers() if x.name == "ff44 M=32 N=16")
    program = layer.program()
    found = estimate(compile_wafer(program, layer.mapping(program)).program)
    assert min(found.setup, found.work, found.feed, found.waiting) > 0
    assert found.cycles == found.setup + max(found.work, found.feed) + found.waiting


def test_trips_of_a_loop() -> None:
    i, n = Name("i"), Name("n")
    assert trips(Operation("<", (i, Number(7))), "i", 0, 1, {}) == 7
    assert trips(Operation("<=", (i, Number(7))), "i", 1, 3, {}) == 3
    assert trips(Operation("<", (Operation("*", (Number(2), i)), n)), "i", 0, 1, {"n": 9}) == 5
    both = Operation("and", (Operation("<", (i, n)), Operation("<=", (i, Number(3)))))
    assert trips(both, "i", 0, 1, {"n": 10}) == 4
    assert trips(Operation("<", (i, n)), "i", 5, 1, {"n": 2}) == 0


def test_values_follow_c() -> None:
    seven, two = Number(-7), Number(2)
    assert value_of(Operation("floor", (seven, two)), {}) == -4
    assert value_of(Operation("/", (seven, two)), {}) == -3
    assert value_of(Operation("%", (seven, two)), {}) == -1
    assert value_of(Operation("?", (Operation(">", (Name("a"), two)), Number(1), Number(0))), {"a": 3}) == 1


def test_samples_are_spread_evenly() -> None:
    assert evenly(3, 5) == [0, 1, 2]
    assert evenly(100, 5) == [10, 30, 50, 70, 90]


def test_strides_limit_the_width() -> None:
    """In 16-bit words, as the simulator has it (docs/simulator.md)."""
    assert [stride_limit(s, 2) for s in (-1, 4, 8, 9)] == [2, 2, 1, 2]
    assert stride_limit(1, 2) > 100
    assert stride_limit(4, 4) == 1
