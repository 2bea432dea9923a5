"""Layers of examples/ as CSL, compiled by our own `cslc` and run, beside their C on the simulated wafer.

    python benchmarks/csl_round_trip.py [--arch wse2|wse3] [--simd auto|off] [--every N] [LAYER..]

For each layer and map of examples/layers.txt: whether the results have the same bits, and the cycles of both
from the first task to the last. CSL's are those of the layer's slowest PE, from the launch to the end of what
it does; the PEs around the rectangle and copies between host and PEs are not counted. C's are those from the
start of all PEs to the last thing that happens.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from corpus import Layer, layers

from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError
from polyloom.folders import write_folder
from polyloom.ir import random_inputs
from polyloom.wafer.csl_output.limits import machine_for
from polyloom.wafer.csl_output.project import project_files
from polyloom.wafer.program.wafer_program import compile_program
from polyloom.wafer.simd.decision import SimdMode, SimdOptions
from polyloom.wafer.simulation.run import simulate_program

NEAR = 0.1
"""By how much cycles may differ that count as the same number."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", choices=("wse2", "wse3"), default="wse2")
    parser.add_argument("--simd", choices=("auto", "off"), default="auto")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="a sample: one of N")
    parser.add_argument("names", nargs="*", metavar="LAYER")
    given = parser.parse_args()
    print("| layer | bits | C | CSL | CSL / C |\n|---|---|---:|---:|---:|")
    chosen = [layer for layer in layers() if not given.names or layer.map in given.names]
    chosen = chosen[given.every // 2 :: given.every]
    rows = [row for layer in chosen for row in round_trip(layer, given.arch, given.simd)]
    equal = [float(row.split("|")[3]) for row in rows if row.startswith("equal")]
    refused = sum(row.startswith("refused") for row in rows)
    near = sum(abs(ratio - 1) <= NEAR + 1e-9 for ratio in equal)
    above = sum(ratio > 1 + NEAR + 1e-9 for ratio in equal)
    print(f"\n{len(rows)} layers and maps: {len(equal)} equal, {refused} refused", file=sys.stderr)
    if equal:
        said = f"CSL / C: median {median(equal):.2f}, {min(equal):.2f} to {max(equal):.2f}"
        print(f"{said}; {near} within {NEAR:.0%}, {above} above", file=sys.stderr)


def round_trip(layer: Layer, arch: str, simd: str) -> Iterator[str]:
    """Print one row; yield what became of it."""
    try:
        row = compared(layer, arch, simd)
    except PolyloomError as fault:
        row = f"refused: {fault.diagnostics[0].message} | | | "
    except AssertionError as fault:
        row = f"failed: {str(fault).partition(chr(10))[0]} | | | "
    print(f"| {layer.name} | {row} |", flush=True)
    yield row


def compared(layer: Layer, arch: str, simd: str) -> str:
    machine = machine_for(arch)
    analysis = layer.analyse(SimdOptions(SimdMode(simd), machine=machine))
    compiled = compile_program(analysis, machine)
    inputs = random_inputs(layer.program())
    with_c = simulate_program(compiled, inputs)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "csl"
        write_folder(project_files(compiled, arch), {}, folder)
        cycles, found = on_csl(folder, arch, inputs)
    same = all(np.array_equal(found[n], a, equal_nan=True) for n, a in with_c.outputs.items())
    return f"{'equal' if same else 'differs'} | {with_c.cycles} | {cycles} | {cycles / with_c.cycles:.2f}"


def on_csl(folder: Path, arch: str, inputs: dict[str, np.ndarray]) -> tuple[int, dict[str, np.ndarray]]:
    """Build and run a project by the commands `cslc` and `cs-python`; return cycles and results."""
    np.savez(folder / "inputs.npz", **inputs)
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said):
        layout = json.loads((folder / "layer.json").read_text())["csl"]
        dims = f"--fabric-dims={layout['width'] + 7},{layout['height'] + 2}"
        command = [
            "cslc",
            f"--arch={arch}",
            "layout.csl",
            dims,
            "--fabric-offsets=4,1",
            "-o",
            "out",
            "--memcpy",
        ]
        assert run(command) == 0, said.getvalue()
        script = [
            "run.py",
            "--name",
            "out",
            "--inputs",
            "inputs.npz",
            "--outputs",
            "outputs.npz",
            "--unchecked",
        ]
        assert run(["cs-python", *script]) == 0, said.getvalue()
    (cycles,) = [int(line.split()[1]) for line in said.getvalue().splitlines() if line.startswith("cycles")]
    return cycles, dict(np.load(folder / "outputs.npz"))


if __name__ == "__main__":
    main()
