"""Events a second of the simulator: a wide multicast down the columns and a chain along the rows.

Large fabrics use all cores. Every PE of the rectangle takes 8 sparse elements an invocation from the north,
runs a SIMD instruction of 16 elements for each, and adds its 16 results to those from the west. An event is a
wavelet leaving a router port, or the start of a task.

Usage: python benchmarks/simulator_events.py [WIDTH HEIGHT INVOCATIONS]
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

from polyloom.wafer.machine.instructions import table_text
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.simulator.build import build_program
from polyloom.wafer.simulator.fabric import Fabric
from polyloom.wafer.simulator.result import Result

PROGRAM = Path(__file__).parents[1] / "tests" / "wafer" / "simulator" / "programs" / "chain"
SIZES = ((8, 8, 1000), (32, 32, 100), (100, 100, 10))


def build(width: int, height: int) -> Path:
    texts = {path.name: path.read_text() for path in PROGRAM.iterdir()}
    size = f"enum {{ WIDTH = {width}, HEIGHT = {height} }};\n"
    return build_program(texts | {"size.h": size}, table_text())


def set_up(width: int, height: int, invocations: int) -> Fabric:
    fabric = Fabric(build(width, height), load_machine("cs2"), width, height, invocations)
    rng = np.random.default_rng(0)
    ys, xs = (a.ravel() for a in np.indices((height, width)))
    weights = rng.integers(-2, 3, (xs.size, 128)).astype(np.float16)
    fabric.load(xs, ys, 32, weights.view(np.uint8), np.ones(weights.shape, np.bool_), 2)
    for column in range(width):
        x = rng.integers(-2, 3, (invocations, 8)).astype(np.float16).view(np.uint16).astype(np.uint32)
        payload = np.hstack(
            [x | (np.arange(8, dtype=np.uint32) << 16), np.zeros((invocations, 1), np.uint32)]
        )
        control = np.tile(np.arange(9) == 8, invocations)
        fabric.source("north", column, 0, payload.ravel(), control)
    for row in range(height):
        fabric.sink("east", row, 1 + (width - 1) % 2, 17 * invocations)
    return fabric


def measure(width: int, height: int, invocations: int) -> tuple[Result, float]:
    with set_up(width, height, invocations) as fabric:
        start = time.perf_counter()
        result = fabric.run()
        return result, time.perf_counter() - start


def main(arguments: list[str]) -> None:
    sizes = [tuple(map(int, arguments))] if arguments else SIZES
    print(f"{'PEs':>10} {'cycles':>9} {'events':>11} {'seconds':>8} {'events/s':>10}")
    for width, height, invocations in sizes:
        result, seconds = measure(width, height, invocations)
        assert result.error is None, result.error
        rate = f"{result.events / seconds / 1e6:>8.1f} M"
        print(f"{width:>4} x {height:<4}{result.cycles:>9} {result.events:>11} {seconds:>8.2f} {rate}")
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main(sys.argv[1:])
