"""Small programs for the simulator's tests: C texts from files or from the test itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.wafer.machine.model import Machine, load_machine
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import SimulationError

PROGRAMS = Path(__file__).parent / "programs"
INSTRUCTIONS = (PROGRAMS / "instructions.inc").read_text()
CS2 = load_machine("cs2")

ONE_PE = """
#include "layout.h"
extern const struct role P;
void layout(int PE_X, int PE_Y) {
  program(&P);
  route(0, NORTH, RAMP);  /* in */
  route(1, WEST, RAMP);   /* in */
  route(2, RAMP, EAST);   /* out */
  route(3, RAMP, SOUTH);  /* out */
  bind_input(0, 0);  bind_input(1, 1);
  bind_output(0, 2);  bind_output(1, 3);
}
"""


def files_of(name: str, **headers: str) -> dict[str, str]:
    """The C files of a program in the folder ``programs``, and generated headers."""
    texts = {path.name: path.read_text() for path in (PROGRAMS / name).iterdir()}
    return texts | {f"{header}.h": text for header, text in headers.items()}


def role_text(memory: str, code: str, *, tasks: str = "", inputs: str = "", operands: int = 8) -> str:
    """A role P: members of its memory, whose arrays are used as M.name, and its functions with ``main``."""
    return f"""
#include "pe.h"
struct memory {{ {memory} }};
#define M (*(struct memory *)self->memory)
{code}
ROLE(P, .memory_bytes = sizeof(struct memory), .operands = {operands}, .main = main,
  .inputs = {{ {inputs} }}, .tasks = {{ {tasks} }})
"""


@cache
def _built(texts: tuple[tuple[str, str], ...]) -> Path:
    return build_program(dict(texts), INSTRUCTIONS)


def fabric(
    texts: Mapping[str, str], width: int = 1, height: int = 1, *, machine: Machine = CS2, **more: Any
) -> Fabric:
    return Fabric(_built(tuple(sorted(texts.items()))), machine, width, height, **more)


def one_pe(role: str, *, machine: Machine = CS2, layout: str = ONE_PE, **more: Any) -> Fabric:
    """A single PE: input 0 is color 0 (north), 1 is 1 (west); output 0 is color 2 (east), 1 is 3 (south)."""
    return fabric({"P.c": role, "layout.c": layout}, machine=machine, **more)


def error_of(simulation: Fabric) -> SimulationError:
    error = simulation.run().error
    assert error is not None
    return error


def changed(**values: Any) -> Machine:
    return dataclasses.replace(CS2, **values)


def dense(values: np.ndarray) -> np.ndarray:
    """The payloads of dense wavelets, 16-bit values in the low half."""
    width = np.uint16 if values.dtype.itemsize == 2 else np.uint32
    return values.view(width).astype(np.uint32)


def sparse(values: np.ndarray) -> np.ndarray:
    """The payloads of (index, value) wavelets, indices counted from 0."""
    return (np.arange(values.size, dtype=np.uint32) << 16) | dense(values)


def feed(simulation: Fabric, side: Any, position: int, color: int, *parts: np.ndarray, ends: int = 0) -> None:
    """A source of the payloads, each part followed by so many ends of chunk."""
    payload: list[int] = []
    control: list[bool] = []
    for part in parts:
        payload += [*part.tolist(), *[0] * ends]
        control += [*[False] * part.size, *[True] * ends]
    simulation.source(side, position, color, np.array(payload, np.uint32), np.array(control, np.bool_))


def halves(payload: np.ndarray) -> np.ndarray:
    return (payload & 0xFFFF).astype(np.uint16).view(np.float16)


def set_memory(simulation: Fabric, xs: Any, ys: Any, offset: int, values: np.ndarray) -> None:
    """``values`` [PE, element] as the initial memory at ``offset``."""
    data = np.ascontiguousarray(values)
    simulation.load(xs, ys, offset, data.view(np.uint8), np.ones(data.shape, np.bool_), data.dtype.itemsize)


def get_memory(simulation: Fabric, offset: int, count: int, dtype: Any, x: int = 0, y: int = 0) -> np.ndarray:
    size = np.dtype(dtype).itemsize
    return simulation.read([x], [y], offset, count * size)[0][0].view(dtype)
