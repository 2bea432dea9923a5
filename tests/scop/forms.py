"""C texts to host programs, and what both leave in the arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from c_host_programs import host_programs_of
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.scop.model import Scop
from polyloom.scop.transform import ReductionMode

KERNELS = Path(__file__).parent / "kernels"


def read(text: str, name: str = "kernel.c") -> Scop:
    """Return the one static control part of a text."""
    (scop,) = read_c(Source(name, text))
    return scop


def transformed(text: str, mode: ReductionMode = ReductionMode.DETECT) -> HostProgram:
    (program,) = host_programs_of(text, mode)
    return program


def run(program: HostProgram, values: dict[str, Any]) -> dict[str, Any]:
    """Evaluate with integers for parameters and arrays for buffers, by name."""
    parameters = {p.name: int(values[p.name]) for p in program.parameters}
    needed = [b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)]
    return evaluate_host(program, parameters, {name: np.asarray(values[name]) for name in needed})


def made_up(program: HostProgram, sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Return sizes, and small integers for every array that the caller has; square ones are regular."""
    generator = np.random.default_rng(seed)
    values: dict[str, Any] = dict(sizes)
    for buffer in program.buffers:
        if buffer.role is Role.LOCAL:
            continue
        shape = shape_of(buffer, sizes)
        data = generator.integers(1, 5, shape).astype(buffer.type.dtype)
        if len(shape) == 2 and shape[0] == shape[1]:
            data = data + (30 * np.eye(shape[0])).astype(data.dtype)
        values[buffer.name] = data
    return values
