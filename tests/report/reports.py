"""Simulated layers of the examples for the tests of the report."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from polyloom import read_mapping, read_program, simulate
from polyloom.wafer.simulation.result import SimulationResult

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES: dict[str, dict[str, object]] = {
    "conv1d": {},
    "ff": {"M": 32, "N": 16},
    "training": {},
    "rowsum": {"M": 4, "N": 11},
}


@cache
def simulated(source: str, map_name: str, **more: Any) -> SimulationResult:
    program = read_program(EXAMPLES / f"{source}.lair", defines=SIZES[source])
    mapping = read_mapping(EXAMPLES / f"{map_name}.map", program)
    return simulate(program, mapping, check=True, watch=(), **more)
