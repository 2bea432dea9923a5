"""Graphs over many invocations: samples stream in one after another, states go on, and samples overlap.

A PE begins its next invocation when its own part of the last one is done, not when all PEs are: N samples
take less than N times the cycles of one.
"""

from __future__ import annotations

from functools import cache

import pytest
from corpus import inputs_of, layers, together

from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdMode
from polyloom.wafer.simulation.check import check_outputs
from polyloom.wafer.simulation.run import Simulation, simulate_program
from samples import one_in

GRAPHS = {
    "training": 0.97,
    "conv1d_training K=2 N=16 Q=14 R=3 S=1 D=1": 0.95,
    "conv2d_training C=3 K=2 H=5 Q=3 R=3 S=1 D=1": 0.97,
    "mlp_training K=8 M=12 N=6": 0.97,
    "softmax M=4 N=8": 0.97,
    "layer_norm B=3 N=8": 0.97,
    "attention Q=6 T=6 D=4": 0.97,
    "gemv_bias_corners M=32 N=16 T=float32": 0.97,
}
"""What a sample may take, on average over several, as a part of what one alone takes."""

ROUNDED = {"mlp_training K=8 M=12 N=6"}
"""Weights of two layers get more digits with each step than float32 has."""

INVOCATIONS = 6


@cache
def compiled(name: str) -> WaferProgram:
    return next(layer for layer in layers() if layer.name == name).compile(SimdMode.AUTO)


def run(name: str, invocations: int) -> Simulation:
    """Simulate with made-up samples; what comes out is compared with the evaluator, states and all."""
    program = compiled(name)
    tensors, mapping = program.analysis.program, program.analysis.mapping
    runs = inputs_of(tensors, mapping, 1.0, invocations)
    inputs = together(mapping, runs)
    found = simulate_program(program, inputs, invocations=invocations)
    exactly = name not in ROUNDED
    check = check_outputs(tensors, mapping, inputs, found.outputs, invocations, exactly=exactly)
    assert check.passed, check.mismatches
    return found


@pytest.mark.parametrize("name", one_in(9, GRAPHS))
def test_samples_overlap(name: str) -> None:
    alone, together_ = run(name, 1).cycles, run(name, INVOCATIONS).cycles
    assert together_ < GRAPHS[name] * INVOCATIONS * alone


def test_weights_are_updated_over_many_samples() -> None:
    program = compiled("training")
    assert dict(program.analysis.mapping.state) == {"W": "W1"}
    run("training", 24)


@pytest.mark.slow
@pytest.mark.ci
def test_a_single_port_hands_out_the_next_sample_meanwhile() -> None:
    """The adapters of A4 are busy with one sample while the PEs compute another."""
    name = "gemv_bias_corners M=32 N=16 T=float32"
    first, second = run(name, 1).cycles, run(name, 2).cycles
    assert second - first < first
