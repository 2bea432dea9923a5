"""Small C units against csl.h for the simulator's tests, and fabrics of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator.csl_fabric import ColorRoute, CslFabric, CslFailure

CS2, CS3 = load_machine("cs2"), load_machine("cs3")
MACHINES = {"cs2": CS2, "cs3": CS3}
PRELUDE = """#include "csl.h"
#define SYNC ((csl_options){0})
#define ASYNC(...) ((csl_options){.async = 1, __VA_ARGS__})
#define MEM(address, n) csl_of_dsd(csl_mem1d(address, 4, n, 1, 0))
#define MEM16(address, n) csl_of_dsd(csl_mem1d(address, 2, n, 1, 0))
#define IN(queue, n) csl_of_dsd(csl_fabin(queue, n))
#define OUT(queue, color, n) csl_of_dsd(csl_fabout(queue, color, n))
#define TASK(name) static void name(uint32_t w)
#define CALL(name) static void name(const uint32_t *a)
"""


def unit(
    code: str,
    *,
    name: str = "p",
    memory: int = 256,
    tasks: str = "",
    queues: str = "",
    functions: str = "",
    more: str = "",
) -> dict[str, str]:
    """A unit: its functions, and its tables as lists of initialisers."""
    return {
        name: f"""{PRELUDE}
{code}
static const struct csl_task tasks[] = {{ {tasks} {{0}} }};
static const struct csl_queue queues[] = {{ {queues} {{0}} }};
static const struct csl_function functions[] = {{ {functions} {{0}} }};
CSL_PROGRAM({name}, .memory_bytes = {memory}, .tasks = tasks, .queues = queues, .functions = functions,
            {more})
"""
    }


def fabric(
    units: Mapping[str, str], width: int = 1, height: int = 1, machine: str = "cs2", **more: Any
) -> CslFabric:
    return CslFabric(units, MACHINES[machine], width, height, **more)


def one_pe(units: Mapping[str, str], image: bytes = b"", **more: Any) -> CslFabric:
    """The single unit on a single PE, its memory initialised with ``image``."""
    made = fabric(units, **more)
    made.place(0, 0, next(iter(units)), image)
    return made


def route(color: int, rx: str, tx: str, *positions: tuple[str, str], **more: Any) -> ColorRoute:
    """``rx`` and ``tx`` as words: ``route(3, "west", "ramp east")``."""
    all_positions = tuple((frozenset(a.split()), frozenset(b.split())) for a, b in ((rx, tx), *positions))
    return ColorRoute(color, all_positions, **more)  # type: ignore[arg-type]


def floats(simulation: CslFabric, address: int, count: int, x: int = 0, y: int = 0) -> list[float]:
    return [float(v) for v in np.frombuffer(simulation.read(x, y, address, 4 * count), np.float32)]


def words(simulation: CslFabric, address: int, count: int, x: int = 0, y: int = 0) -> list[int]:
    return [int(v) for v in np.frombuffer(simulation.read(x, y, address, 4 * count), np.uint32)]


def shorts(simulation: CslFabric, address: int, count: int, x: int = 0, y: int = 0) -> list[int]:
    return [int(v) for v in np.frombuffer(simulation.read(x, y, address, 2 * count), np.uint16)]


def failure(simulation: CslFabric, *goals: Any) -> Any:
    with pytest.raises(CslFailure) as caught:
        simulation.run(goals)
    return caught.value.fault
