"""A fully connected layer over the whole wafer: time, memory and events a second from 4 x 4 PEs on.

Every PE holds an 8 x 8 block of W of its own; samples without zeros stream in one after another. All results
are compared with an exact product: the data are small integers, so every order of summation gives the same
bits in half precision. An event is a wavelet leaving a router port, or the start of a task.

Usage: python benchmarks/scale.py [--size 600x595]... [--samples 64] [--threads N] [--compare-threads]
Each size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import Source
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program
from polyloom.pipeline import analyse_layer, compile_layer
from polyloom.wafer.machine.model import load_machine
from polyloom.wafer.mapping.reader import read_mapping
from polyloom.wafer.program.wafer_program import WaferProgram
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program

LAYER = Path(__file__).parents[1] / "examples" / "ff.lair"
TILE = 8
SIZES = ("4x4", "16x16", "64x64", "150x150", "300x300", "600x595")
MACHINE = "cs1"
LARGEST_EXACT = 2048
"""Integers up to here are exact in half precision."""


@dataclass(frozen=True)
class Row:
    """One size. Times in seconds; ``run_cpu``: of all threads; ``memory``: peak of the process, in MiB."""

    width: int
    height: int
    samples: int
    compile: float
    simulate: float
    run_cpu: float
    cycles: int
    limit: int
    events: int
    memory: float
    exact: bool
    fingerprint: str
    """Of the outputs' bits."""


def map_text(width: int, height: int) -> str:
    """Return the map: W in tiles, x from the north, y to the east."""
    columns, rows = TILE * width, TILE * height
    lines = [
        f"size: {{ PE[{width}, {height}] }}",
        f"compute_map: {{ ff[i, j] -> PE[j//{TILE}, i//{TILE}] }}",
        f"iport_map: {{ x[j=0:{columns - 1}] -> [PE[j//{TILE}, -1] -> index[j mod {TILE}]] }}",
        f"oport_map: {{ y[i=0:{rows - 1}] -> [PE[{width}, i//{TILE}] -> index[i mod {TILE}]] }}",
        "sparse: x",
    ]
    return "\n".join(lines) + "\n"


def compiled(width: int, height: int) -> WaferProgram:
    """Compile the layer for so many PEs."""
    defines = {"M": str(TILE * height), "N": str(TILE * width)}
    program: Program = lower(parse(Source(LAYER.name, LAYER.read_text())), None, defines)
    mapping = read_mapping(Source("scale.map", map_text(width, height)), program)
    return compile_layer(analyse_layer(program, mapping, SimdOptions(SimdMode.AUTO)), load_machine(MACHINE))


def made_up(width: int, height: int, samples: int) -> dict[str, npt.NDArray[Any]]:
    """Return W and the samples: small integers, those of the samples not 0."""
    rng = np.random.default_rng(0)
    w = rng.integers(-2, 3, (TILE * height, TILE * width), dtype=np.int8)
    x = rng.integers(1, 3, (samples, TILE * width), dtype=np.int8)
    x *= rng.choice(np.array([-1, 1], np.int8), x.shape)
    return {"W": w.astype(np.float16), "x": x.astype(np.float16)}


def is_exact(inputs: dict[str, npt.NDArray[Any]], outputs: dict[str, npt.NDArray[Any]]) -> bool:
    """Compare with a product in single precision, which is exact for integers of this size."""
    wanted = inputs["x"].astype(np.float32) @ inputs["W"].astype(np.float32).T
    assert np.abs(wanted).max() <= LARGEST_EXACT, "the data are too large to be exact in half precision"
    found = outputs["y"].reshape(wanted.shape)
    return found.dtype == np.float16 and bool(np.array_equal(found.astype(np.float32), wanted))


def measure(width: int, height: int, samples: int, threads: int | None) -> Row:
    """Compile, simulate and compare one size."""
    start = time.perf_counter()
    program = compiled(width, height)
    seconds_to_compile = time.perf_counter() - start
    inputs = made_up(width, height, samples)
    given = inputs if samples > 1 else {**inputs, "x": inputs["x"][0]}
    start, cpu = time.perf_counter(), time.process_time()
    found = simulate_program(program, given, invocations=samples, threads=threads)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Row(
        width, height, samples, seconds_to_compile, seconds, cpu_seconds, found.cycles, found.limit.cycles,
        found.events, peak, is_exact(inputs, found.outputs), fingerprint(found.outputs["y"]),
    )  # fmt: skip


def fingerprint(array: npt.NDArray[Any]) -> str:
    """Return a digest of an array's bits."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def measure_apart(size: str, samples: int, threads: int | None) -> Row:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--row", "--size", size, "--samples", str(samples)]
    command += [] if threads is None else ["--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Row(**json.loads(done.stdout))


def print_heading() -> None:
    print(
        f"{'PEs':>11} {'samples':>7} {'threads':>7} {'compile s':>9} {'simulate s':>10} {'CPU s':>7} "
        f"{'cycles':>7} {'limit':>7} {'events':>13} {'events/s':>9} {'MiB':>6}  result"
    )


def print_row(row: Row, threads: int | None) -> None:
    size, shown = f"{row.width} x {row.height}", "auto" if threads is None else threads
    times = f"{row.compile:>9.2f} {row.simulate:>10.2f} {row.run_cpu:>7.1f}"
    rate = f"{row.events / row.simulate / 1e6:>7.1f} M"
    counts = f"{row.cycles:>7} {row.limit:>7} {row.events:>13,} {rate} {row.memory:>6.0f}"
    verdict = "exact" if row.exact else "WRONG"
    print(f"{size:>11} {row.samples:>7} {shown:>7} {times} {counts}  {verdict}", flush=True)


def extent(size: str) -> tuple[int, int]:
    """Read ``WIDTHxHEIGHT``."""
    width, _, height = size.partition("x")
    return int(width), int(height)


@click.command()
@click.option("--size", "sizes", multiple=True, default=SIZES, show_default=True, help="WIDTHxHEIGHT in PEs")
@click.option("--samples", default=64, show_default=True)
@click.option("--threads", type=int, default=None, help="of the simulator; default: its own choice")
@click.option("--compare-threads", is_flag=True, help="run each size with 1 and with 2 threads")
@click.option("--row", is_flag=True, hidden=True)
def main(sizes: tuple[str, ...], samples: int, threads: int | None, compare_threads: bool, row: bool) -> None:
    """Print a line for each size; end with 1 if a result is wrong or differs between threads."""
    if row:
        print(json.dumps(asdict(measure(*extent(sizes[0]), samples, threads))))
        return
    print_heading()
    right = True
    for size in sizes:
        rows = {t: measure_apart(size, samples, t) for t in ((1, 2) if compare_threads else (threads,))}
        for used, measured in rows.items():
            print_row(measured, used)
        same = {(r.cycles, r.events, r.fingerprint) for r in rows.values()}
        right &= all(r.exact for r in rows.values()) and len(same) == 1
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
