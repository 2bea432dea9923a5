"""Small C units against csl.h for the simulator's tests, and fabrics of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator.csl_fabric import ColorRoute, CslFabric, CslFailure, Direction

CS2, CS3 = load_machine("cs2"), load_machine("cs3")
MACHINES = {"cs2": CS2, "cs3": CS3}
NONE: frozenset[Direction] = frozenset()


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
        name: f"""#include "csl.h"
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
    return np.frombuffer(simulation.read(x, y, address, 4 * count), np.float32).tolist()


def words(simulation: CslFabric, address: int, count: int, x: int = 0, y: int = 0) -> list[int]:
    return np.frombuffer(simulation.read(x, y, address, 4 * count), np.uint32).tolist()


def shorts(simulation: CslFabric, address: int, count: int, x: int = 0, y: int = 0) -> list[int]:
    return np.frombuffer(simulation.read(x, y, address, 2 * count), np.uint16).tolist()


def failure(simulation: CslFabric, *goals: Any) -> Any:
    with pytest.raises(CslFailure) as caught:
        simulation.run(goals)
    return caught.value.fault
