"""CSL programs of one PE, compiled and run on the simulated wafer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from csl_text import program

from polyloom.csl.compile import local_routes
from polyloom.csl.lowering.program import PeProgram, lower_program
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator.csl_fabric import CommandsDone, CslFabric

HEAD = """
const sys = @import_module("<memcpy/memcpy>", .{});
"""
MACHINES = {"wse2": "cs2", "wse3": "cs3"}


def lowered(text: str, arch: str = "wse2") -> PeProgram:
    """Return the C of a PE program whose text is given."""
    return lower_program(program(text, arch=arch), "unit_0", poison=True)


class Run:
    """A program on one PE; ``call`` runs a function to its ``unblock_cmd_stream()``."""

    def __init__(self, text: str, arch: str = "wse2", folder: Path | None = None) -> None:
        elaborated = program(text, folder=folder, arch=arch)
        self.unit = lower_program(elaborated, "unit_0", poison=True)
        self.fabric = CslFabric(
            {"unit_0": self.unit.c}, load_machine(MACHINES[arch]), 1, 1, max_cycles=1_000_000
        )
        self.fabric.place(0, 0, "unit_0", self.unit.image, self.unit.initialised)
        for route in local_routes(elaborated):
            self.fabric.route(0, 0, route)
        self.symbols = {symbol.name: symbol for symbol in self.unit.symbols}

    def call(self, name: str, *words: int) -> None:
        """Launch a function and wait for it."""
        self.fabric.call(0, 0, name, words)
        self.fabric.run([CommandsDone(0, 0)])

    def array(self, name: str, kind: Any, count: int) -> npt.NDArray[Any]:
        """Return elements of what an exported pointer points at."""
        symbol = self.symbols[name]
        address = symbol.address
        if symbol.is_pointer:
            address = int.from_bytes(self.fabric.read(0, 0, address, 2), "little")
        size = np.dtype(kind).itemsize * count
        return np.frombuffer(self.fabric.read(0, 0, address, size), kind)


def results(text: str, kind: Any, count: int, arch: str = "wse2", folder: Path | None = None) -> list[Any]:
    """Run ``main`` of a program that leaves its results in the exported array ``out``."""
    run = Run(text, arch, folder)
    run.call("main")
    return run.array("out", kind, count).tolist()
