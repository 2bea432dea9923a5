"""The form that each PolyBench/C kernel takes, as a table: `python benchmarks/polybench_forms.py CHECKOUT`.

Nothing of PolyBench is part of Polyloom: CHECKOUT is the folder of PolyBench/C 4.2.1.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from polyloom.diagnostics import PolyloomError
from polyloom.files import read_source
from polyloom.frontends.c import read_c
from polyloom.report.forms_view import form
from polyloom.scop.schedule.loop_verdicts import Verdict
from polyloom.scop.transform import ReductionMode, Transformation, host_program

MACROS = {"POLYBENCH_USE_C99_PROTO": "1", "MINI_DATASET": "1"}


@dataclass(frozen=True)
class Row:
    kernel: str
    form: str
    parallel: int
    loops: int
    seconds: float


def kernels(checkout: Path) -> list[Path]:
    """Return the files that `utilities/benchmark_list` names."""
    listed = (checkout / "utilities" / "benchmark_list").read_text().split()
    return [checkout / name for name in listed]


def row(path: Path, checkout: Path, mode: ReductionMode) -> Row:
    """Return the form of one kernel. Errors: ``PolyloomError`` where it is refused."""
    start = time.perf_counter()
    (scop,) = read_c(read_source(path), None, MACROS, [checkout / "utilities", path.parent])
    found = host_program(scop, mode)
    seconds = time.perf_counter() - start
    return Row(path.stem, form(found.program), _parallel(found), len(found.loops), seconds)


def _parallel(found: Transformation) -> int:
    """Return how many loops of the source are parallel or reductions, or run as such."""
    return sum(loop.verdict is not Verdict.SERIAL or loop.runs_parallel for loop in found.loops)


def main() -> int:
    """Print the table; the exit status says whether a kernel was refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--reductions", default="detect", choices=[m.value for m in ReductionMode])
    arguments = parser.parse_args()
    print("| kernel | parallel loops | seconds | form |\n| --- | --- | --- | --- |")
    refused = 0
    for path in kernels(arguments.checkout):
        try:
            found = row(path, arguments.checkout, ReductionMode(arguments.reductions))
        except PolyloomError as caught:
            refused += 1
            print(f"| {path.stem} | | | refused: {caught.diagnostics[0].message} |")
            continue
        loops = f"{found.parallel}/{found.loops}"
        print(f"| {found.kernel} | {loops} | {found.seconds:.2f} | `{found.form}` |")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
