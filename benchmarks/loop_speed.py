"""The thirty loop programs beside the C compiler: whole calls, arrays restored before each.

usage: loop_speed.py [PROGRAM]... [--size timed|mini|small|medium|large] [--type double|float|both]
                     [--rounds N] [--device DEVICE] [--threads N] [--clock wall|cpu]

The C compiler builds the same file with -O3 -march=native -ffast-math, sequential. Contenders take
turns; the least time of each is printed, how far the results of both are apart, and what the first call took:
transforming and building, with no choices kept from before. ``--clock cpu``: the time that this thread gets
of the processor, which other programs change less; it is meant for ``--threads 1``.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import loop_programs as loops
import numpy as np

import polyloom

FLAGS = ("-O3", "-march=native", "-ffast-math")
TYPES = {"double": np.float64, "float": np.float32}
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}


@dataclass(frozen=True)
class Measured:
    """Seconds of Polyloom, of the C compiler, of the first call; ``difference``: of the largest element."""

    ours: float
    theirs: float
    first: float
    difference: float


def main() -> None:
    """Print a row for each program and type."""
    options = _parsed()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        _table(options)


def _table(options: argparse.Namespace) -> None:
    types = list(TYPES) if options.type == "both" else [options.type]
    print("| program | type | Polyloom, ms | C compiler, ms | ratio | first call, s | largest difference |")
    print("|---|---|---:|---:|---:|---:|---:|")
    ratios = []
    for name in options.programs or loops.SIZES:
        for real in types:
            found = measured(name, real, options)
            ratios.append(found.theirs / found.ours)
            print(
                f"| {name} | {real} | {found.ours * 1e3:.3f} | {found.theirs * 1e3:.3f} | {ratios[-1]:.2f} | "
                f"{found.first:.1f} | {found.difference:.1e} |",
                flush=True,
            )
    print(f"| geometric mean | | | | {np.exp(np.mean(np.log(ratios))):.2f} | | |")


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("programs", nargs="*", choices=[*loops.SIZES, []], metavar="PROGRAM")
    parser.add_argument("--size", default="timed", choices=["timed", *loops.CLASSES])
    parser.add_argument("--type", default="double", choices=[*TYPES, "both"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="native")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--clock", default="wall", choices=list(CLOCKS))
    return parser.parse_args()


def measured(name: str, real: str, options: argparse.Namespace) -> Measured:
    """Time one program in one type."""
    clock = CLOCKS[options.clock]
    given = loops.values(name, loops.sizes(name, options.size), TYPES[real])
    ours, theirs = _copies(given), _copies(given)
    with tempfile.TemporaryDirectory() as folder:
        begin = _spent(options.clock)
        chosen = {"device": options.device, "threads": options.threads}
        program = polyloom.compile(str(loops.source(name)), defines={"REAL": real}, **chosen)
        program(**ours)
        first = _spent(options.clock) - begin
        library = loops.built(name, real, Path(folder), FLAGS)
        runs: tuple[tuple[loops.Values, Callable[[], object]], ...] = (
            (ours, lambda: program(**ours)),
            (theirs, lambda: loops.call(library, name, theirs, TYPES[real])),
        )
        least = [np.inf, np.inf]
        for _ in range(options.rounds + 1):
            for k, (arrays, run) in enumerate(runs):
                _restore(arrays, given)
                begin = clock()
                run()
                least[k] = min(least[k], clock() - begin)
    return Measured(least[0], least[1], first, _difference(ours, theirs))


def _spent(clock: str) -> float:
    """Return a time, on the processor that of this process and of those that it started."""
    return time.perf_counter() if clock == "wall" else sum(os.times()[:4])


def _copies(given: loops.Values) -> loops.Values:
    return {n: v.copy() if isinstance(v, np.ndarray) else v for n, v in given.items()}


def _restore(arrays: loops.Values, given: loops.Values) -> None:
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            arrays[name][...] = value


def _difference(ours: loops.Values, theirs: loops.Values) -> float:
    worst = 0.0
    for name, wanted in theirs.items():
        if isinstance(wanted, np.ndarray):
            distance = np.abs(ours[name].astype(np.float64) - wanted.astype(np.float64)).max()
            worst = max(worst, float(distance) / max(1e-30, float(np.abs(wanted).max())))
    return worst


if __name__ == "__main__":
    main()
