"""The layer zoo, compiled and simulated: every layer gives what the evaluator gives.

Bit for bit, but for functions that instructions approximate: those within their error bounds.
"""

from __future__ import annotations

import pytest
from corpus import mistakes
from test_zoo_shapes import PROGRAMS, case

from polyloom.ir import random_inputs
from polyloom.pipeline import analyse_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdOptions
from polyloom.wafer.simulation.run import simulate_program

LATER = [pytest.mark.slow, pytest.mark.ci]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=LATER if k % 5 else []) for k, n in enumerate(PROGRAMS)]
)
def test_simulated_as_evaluated(name: str) -> None:
    found = case(name)
    analysis = analyse_layer(found.program, found.mapping, SimdOptions())
    inputs = random_inputs(found.program, seed=1, density=0.7)
    program = compile_program(analysis, load_machine("cs2"))
    simulation = simulate_program(program, inputs)
    assert mistakes(program, found.mapping, [inputs], simulation.outputs) == []
