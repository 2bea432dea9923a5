"""Stencils over time: with tiles across time, without, by gcc alone, and what memory allows without tiles.

    python benchmarks/stencils.py                        all of them, large and small
    python benchmarks/stencils.py heat-2d --rounds 5     one of them
    python benchmarks/stencils.py heat-3d --behind 56    arrays that begin so many bytes behind a line

The bound is what untiled code can reach: each array that a sweep reads or stores goes through memory once, at
the bandwidth of STREAM's copy, measured in the same rounds by as many threads. Times are the least of the
rounds, in which all contenders take turns.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import polyloom
from polyloom.mdh.lowering.time_tiles.choose import Tiled
from polyloom.mdh.native import execution

Array = npt.NDArray[Any]
FLAGS = ("-O3", "-march=native", "-ffast-math", "-shared", "-fPIC")


@dataclass(frozen=True)
class Stencil:
    """A function of ``T`` steps over arrays of ``n`` to some power.

    ``arrays``: how many, with how many axes. ``streams``: arrays that the sweeps of a step read or store.
    """

    name: str
    text: str
    arrays: int
    axes: int
    streams: int
    sizes: tuple[tuple[int, int], ...]
    first: tuple[int, ...] = ()
    """Extents in front of the n, as of ``u[3][n][n]``."""


def _twice(axes: int, value: str, far: int = 1) -> str:
    """Return two sweeps, from A to B and back; ``value`` is over ``X`` and its neighbours."""
    names = "ijk"[:axes]
    heads = "".join(f"for (int {i} = {far}; {i} < n - {far}; {i}++) " for i in names)
    here = "".join(f"[{i}]" for i in names)
    both = "\n    ".join(f"{heads}{b}{here} = {value.replace('X', a)};" for a, b in ("AB", "BA"))
    shape = "[n]" * axes
    return _function(f"double A{shape}, double B{shape}", both)


def _function(given: str, body: str) -> str:
    return f"""void stencil(int T, int n, {given}) {{
#pragma scop
  for (int t = 0; t < T; t++) {{
    {body}
  }}
#pragma endscop
}}
"""


LINE = "0.25 * X[i-1] + 0.5 * X[i] + 0.25 * X[i+1]"
PLANE = "0.2 * (X[i][j] + X[i][j-1] + X[i][j+1] + X[i+1][j] + X[i-1][j])"
FAR = (
    "0.1 * (X[i][j] + X[i][j-2] + X[i][j-1] + X[i][j+1] + X[i][j+2]"
    " + X[i-2][j] + X[i-1][j] + X[i+1][j] + X[i+2][j])"
)
SPACE = (
    "0.4 * X[i][j][k] + 0.1 * (X[i-1][j][k] + X[i+1][j][k] + X[i][j-1][k] + X[i][j+1][k]"
    " + X[i][j][k-1] + X[i][j][k+1])"
)
WAVE = """for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++)
      u[(t+2)%3][i][j] = 1.6 * u[(t+1)%3][i][j] - u[t%3][i][j] + 0.1 * (u[(t+1)%3][i+1][j]
        + u[(t+1)%3][i-1][j] + u[(t+1)%3][i][j+1] + u[(t+1)%3][i][j-1]);"""
FDTD = """for (int i = 1; i < n; i++) for (int j = 0; j < n; j++) ey[i][j] -= 0.5 * (hz[i][j] - hz[i-1][j]);
    for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) ex[i][j] -= 0.5 * (hz[i][j] - hz[i][j-1]);
    for (int i = 0; i < n - 1; i++) for (int j = 0; j < n - 1; j++)
      hz[i][j] -= 0.7 * (ex[i][j+1] - ex[i][j] + ey[i+1][j] - ey[i][j]);"""
FIELDS = "double ex[n][n], double ey[n][n], double hz[n][n]"

STENCILS = (
    Stencil("heat-1d", _twice(1, LINE), 2, 1, 4, ((100, 16_000_000), (2000, 20_000))),
    Stencil("heat-2d", _twice(2, PLANE), 2, 2, 4, ((50, 4000), (500, 300))),
    Stencil("heat-2d, radius 2", _twice(2, FAR, 2), 2, 2, 4, ((50, 4000), (500, 300))),
    Stencil("heat-3d", _twice(3, SPACE), 2, 3, 4, ((20, 320), (200, 48))),
    Stencil("wave-2d", _function("double u[3][n][n]", WAVE), 1, 2, 3, ((50, 4000), (500, 300)), (3,)),
    Stencil("fdtd-2d", _function(FIELDS, FDTD), 3, 2, 10, ((50, 3000), (500, 250))),
)
"""``sizes``: steps and n, out of the caches, then in them."""

COPY = """#include <stdint.h>
void copy(int64_t n, const double *restrict a, double *restrict b) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; i++) b[i] = a[i];
}
"""


def _library(text: str, folder: Path, *flags: str) -> ctypes.CDLL:
    compiler = shutil.which("gcc") or "cc"
    source = folder / f"{abs(hash(text))}.c"
    source.write_text(text)
    library = source.with_suffix(".so")
    subprocess.run([compiler, *FLAGS, *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def _pointers(arrays: list[Any]) -> list[Any]:
    return [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]


def bandwidth(folder: Path) -> Callable[[], float]:
    """Return what measures the bytes of STREAM's copy in a second, once.

    Its threads sleep when they are done: spinning, as is usual, they would take a core from what runs next.
    """
    os.environ["OMP_WAIT_POLICY"] = "passive"
    library = _library(COPY, folder, "-fopenmp")
    a, b = np.ones(1 << 24), np.zeros(1 << 24)

    def run() -> float:
        start = time.perf_counter()
        library.copy(ctypes.c_int64(a.size), *_pointers([a, b]))
        return 2 * a.nbytes / (time.perf_counter() - start)

    run()
    return run


def untiled(program: Any, *more: Any) -> Tiled:
    """Leave every loop as it is."""
    return Tiled(program, {})


def ours(path: Path, threads: int, *, tiles: bool) -> Any:
    """Return our program; which form it has is decided at its first call."""
    found, chosen = polyloom.compile(str(path), device="native", threads=threads), execution.with_time_tiles

    def call(*arguments: Any) -> None:
        execution.with_time_tiles = chosen if tiles else untiled  # type: ignore[assignment]
        found(*arguments)
        execution.with_time_tiles = chosen

    return call


def copied(array: Array, behind: int | None) -> Array:
    """Return a copy that begins so many bytes behind a line of 64; None: where it may be."""
    if behind is None:
        return array.copy()
    room = np.empty(array.nbytes + 128, np.uint8)
    first = (behind - room.ctypes.data) % 64
    made = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def measure(
    stencil: Stencil, steps: int, n: int, rounds: int, threads: int, folder: Path, behind: int | None = None
) -> str:
    """Return a row of the table."""
    path = folder / "stencil.c"
    path.write_text(stencil.text)
    gcc = _library(stencil.text, folder).stencil
    stream = bandwidth(folder)
    shape = (*stencil.first, *(n for _ in range(stencil.axes)))
    start = [np.random.default_rng(k).random(shape) for k in range(stencil.arrays)]
    runs: dict[str, Callable[..., Any]] = {
        "tiled": ours(path, threads, tiles=True),
        "untiled": ours(path, threads, tiles=False),
        "gcc": lambda t, m, *arrays: gcc(t, m, *_pointers(list(arrays))),
    }
    least, left, bytes_per_second = dict.fromkeys(runs, float("inf")), {}, 0.0
    for number in range(rounds + 1):
        bytes_per_second = max(bytes_per_second, stream())
        for name, run in runs.items():
            arrays = [copied(array, behind) for array in start]
            begin = time.perf_counter()
            run(steps, n, *arrays)
            if number:
                least[name] = min(least[name], time.perf_counter() - begin)
            left[name] = arrays
    for name, arrays in left.items():
        for mine, theirs in zip(arrays, left["gcc"], strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12, err_msg=name)
    bound = steps * stencil.streams * 8.0 * n**stencil.axes / bytes_per_second
    times = "".join(f" {1e3 * least[name]:.1f} |" for name in runs)
    return (
        f"| {stencil.name} | {n} | {steps} |{times} {bytes_per_second / 1e9:.1f} | {1e3 * bound:.1f} |"
        f" {bound / least['tiled']:.2f} | {least['untiled'] / least['tiled']:.2f} |"
        f" {least['gcc'] / least['tiled']:.2f} |"
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="stencils, by the start of their name; none: all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--behind", type=int, metavar="BYTES", help="where arrays begin in a line of 64 bytes"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--large",
        action="store_const",
        dest="sizes",
        const=(0,),
        default=(0, 1),
        help="only what caches do not hold",
    )
    which.add_argument(
        "--small", action="store_const", dest="sizes", const=(1,), help="only what caches hold"
    )
    options = parser.parse_args()
    print(
        "| stencil | n | steps | tiled, ms | untiled, ms | gcc -O3, ms | STREAM, GB/s | bound, ms |", end=""
    )
    print(" tiled: bound over it | untiled over it | gcc over it |")
    print("|---|" + "---:|" * 10)
    for stencil in STENCILS:
        if options.names and not any(stencil.name.startswith(name) for name in options.names):
            continue
        for steps, n in (stencil.sizes[k] for k in options.sizes):
            with tempfile.TemporaryDirectory() as folder:
                row = measure(
                    stencil, steps, n, options.rounds, options.threads, Path(folder), options.behind
                )
            print(row, flush=True)


if __name__ == "__main__":
    main()
