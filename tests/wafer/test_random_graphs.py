"""Random graphs on one rectangle: what is simulated is what the evaluator says, bit for bit, each time.

A failure prints the seed, the graph and its map. ``graph_layer(seed)`` makes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from corpus import differences, expected, inputs_of, together
from graph_layers import graph_layer

from polyloom.diagnostics import PolyloomError, Source
from polyloom.pipeline import analyse_layer
from polyloom.wafer.map_reader import read_mapping
from polyloom.wafer.program import compile_program
from polyloom.wafer.simd import SimdMode, SimdOptions
from polyloom.wafer.simulation import simulate_program
from polyloom.wafer.simulator import build
from polyloom.wafer.simulator.machine import load_machine

MODES = tuple(SimdMode)
REFUSED = ("map-adapter", "map-delivery", "map-trigger", "map-state", "wafer-colors", "wafer-queues")


@pytest.mark.parametrize("start", [0, 12])
def test_some_graphs(start: int) -> None:
    outcomes = Counter(outcome(seed, MODES[:1]) for seed in range(start, start + 12))
    assert outcomes["right"] >= 6, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes


@pytest.mark.parametrize("seed", [71, 93])
def test_graphs_that_were_wrong_once(seed: int) -> None:
    """71: a scalar operand of an instruction that C had promoted; 93: a crash of isl on unknown divisions."""
    assert outcome(seed, MODES[:1]) == "right"


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 2000, 50))
def test_many_graphs(start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "cache_folder", lambda: tmp_path)
    outcomes = Counter(outcome(seed, MODES[:2]) for seed in range(start, start + 50))
    assert outcomes["right"] >= 25, outcomes
    assert set(outcomes) <= {"right", *REFUSED}, outcomes


def outcome(seed: int, modes: Sequence[SimdMode]) -> str:
    """Compile and run a graph in some modes: ``right``, or the code of the diagnostic that refuses it."""
    layer = graph_layer(seed)
    mapping = read_mapping(Source("random.map", layer.map_text), layer.program)
    for mode in modes:
        try:
            analysis = analyse_layer(layer.program, mapping, SimdOptions(mode))
            program = compile_program(analysis, load_machine("cs2"))
        except PolyloomError as refused:
            return refused.diagnostics[0].code
        runs = inputs_of(layer.program, mapping, layer.density, layer.invocations)
        found = simulate_program(program, together(mapping, runs), invocations=layer.invocations)
        wrong = differences(found.outputs, expected(layer.program, mapping, runs))
        assert not wrong, f"{wrong} in mode {mode.value}, {layer}"
        assert 0 < found.limit.cycles <= found.cycles, f"{found.limit} > {found.cycles} in {layer}"
    return "right"
