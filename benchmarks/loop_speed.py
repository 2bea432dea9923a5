"""The thirty loop programs beside the C compiler: whole calls, arrays restored before each.

usage: loop_speed.py [PROGRAM]... [--size mini|small|medium|large] [--type double|float] [--rounds N]
                     [--device DEVICE]

The C compiler builds the same file with -O3 -march=native -ffast-math, sequential. Contenders take turns; the
least time of each is printed, and how far the results of both are apart.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import loop_programs as loops
import numpy as np

import polyloom

FLAGS = ("-O3", "-march=native", "-ffast-math")
TYPES = {"double": np.float64, "float": np.float32}


def main() -> None:
    options = _parsed()
    print(
        "| program | Polyloom, ms | C compiler, ms | ratio | largest difference |\n|---|---:|---:|---:|---:|"
    )
    ratios = []
    for name in options.programs or loops.SIZES:
        ours, theirs, difference = measured(name, options)
        ratios.append(theirs / ours)
        print(
            f"| {name} | {ours * 1e3:.3f} | {theirs * 1e3:.3f} | {theirs / ours:.2f} | {difference:.1e} |",
            flush=True,
        )
    print(f"| geometric mean | | | {np.exp(np.mean(np.log(ratios))):.2f} | |")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", choices=[*loops.SIZES, []], metavar="PROGRAM")
    parser.add_argument("--size", default="large", choices=loops.CLASSES)
    parser.add_argument("--type", default="double", choices=list(TYPES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="native")
    return parser.parse_args()


def measured(name: str, options: argparse.Namespace) -> tuple[float, float, float]:
    """Return the seconds of Polyloom and of the C compiler, and how far results differ.

    The difference is in units of the largest element of each array.
    """
    size, real = options.size, options.type
    program = polyloom.compile(str(loops.source(name)), defines={"REAL": real}, device=options.device)
    given = loops.values(name, loops.SIZES[name][size], TYPES[real])
    with tempfile.TemporaryDirectory() as folder:
        library = loops.built(name, real, Path(folder), FLAGS)
        ours, theirs = _copies(given), _copies(given)
        runs: tuple[tuple[loops.Values, Callable[[], object]], ...] = (
            (ours, lambda: program(**ours)),
            (theirs, lambda: loops.call(library, name, theirs, TYPES[real])),
        )
        least = [np.inf, np.inf]
        for _ in range(options.rounds + 1):
            for k, (arrays, run) in enumerate(runs):
                _restore(arrays, given)
                least[k] = min(least[k], _seconds(run))
    return least[0], least[1], _difference(ours, theirs)


def _copies(given: loops.Values) -> loops.Values:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}


def _restore(arrays: loops.Values, given: loops.Values) -> None:
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            arrays[name][...] = value


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _difference(ours: loops.Values, theirs: loops.Values) -> float:
    worst = 0.0
    for name, wanted in theirs.items():
        if isinstance(wanted, np.ndarray):
            distance = np.abs(ours[name].astype(np.float64) - wanted.astype(np.float64)).max()
            worst = max(worst, float(distance) / max(1e-30, float(np.abs(wanted).max())))
    return worst


if __name__ == "__main__":
    main()
