"""Loops of which data decide how often they go, in drop-ins beside gcc's code for the same loops.

    python benchmarks/data_loops.py [--seconds 0.4] [--only sparse]

Prints microseconds of a call, the least of the given seconds, with arrays as at the start before each: the
program with its own loops, with and without `-ffast-math`, and drop-ins of one and of two threads. Results
are compared first. Needs gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import polyloom

SPARSE = """
void work(int n, const int *restrict row, const int *restrict col, const double *restrict a,
          const double *restrict x, double *restrict y)
{
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int k = row[i]; k < row[i + 1]; k++) s += a[k] * x[col[k]];
    y[i] = s;
  }
}
"""
SHORTEST = """
void work(int n, const int *restrict row, const int *restrict col, const float *restrict length,
          const float *restrict from, float *restrict to)
{
  for (int i = 0; i < n; i++) {
    to[i] = from[i];
    for (int k = row[i]; k < row[i + 1]; k++)
      if (from[col[k]] + length[k] < to[i]) to[i] = from[col[k]] + length[k];
  }
}
"""
TRIANGLES = """
void work(int n, const int *restrict row, const int *restrict col, int *restrict count)
{
  for (int v = 0; v < n; v++) {
    int found = 0;
    for (int e = row[v]; e < row[v + 1]; e++) {
      int a = row[v], b = row[col[e]], end = row[col[e] + 1];
      while (a < row[v + 1] && b < end) {
        if (col[a] < col[b]) a++;
        else if (col[a] > col[b]) b++;
        else { found++; a++; b++; }
      }
    }
    count[v] = found;
  }
}
"""
MANDELBROT = """
void work(int h, int w, int most, int out[restrict h][w])
{
  for (int i = 0; i < h; i++)
    for (int j = 0; j < w; j++) {
      double cr = 3.0 * j / w - 2, ci = 2.0 * i / h - 1, zr = 0, zi = 0;
      int k = 0;
      while (k < most && zr * zr + zi * zi < 4) {
        double t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        k++;
      }
      out[i][j] = k;
    }
}
"""
BISECTION = """
void work(int n, int m, const float *restrict a, const float *restrict q, int *restrict at)
{
  for (int i = 0; i < m; i++) {
    int low = 0, high = n;
    while (low < high) {
      int middle = low + (high - low) / 2;
      if (a[middle] < q[i]) low = middle + 1; else high = middle;
    }
    at[i] = low;
  }
}
"""
ROOTS = """
#include <math.h>
void work(int n, const double *restrict a, double *restrict r)
{
  for (int i = 0; i < n; i++) {
    double x = a[i], last;
    int times = 0;
    do { last = x; x = 0.5 * (x + a[i] / x); times++; } while (fabs(x - last) > 1e-12 * x && times < 50);
    r[i] = x;
  }
}
"""

Arguments = list[Any]


def _graph(rng: np.random.Generator, n: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of 0 to twice ``each`` columns, which grow."""
    counts = rng.integers(0, 2 * each + 1, n)
    columns = [np.sort(rng.choice(n, count, replace=False)) for count in counts]
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32), np.concatenate(columns).astype(np.int32)


def _sparse(n: int, each: int) -> Callable[[np.random.Generator], Arguments]:
    def made(rng: np.random.Generator) -> Arguments:
        row, col = _graph(rng, n, each)
        return [n, row, col, rng.random(len(col)), rng.random(n), np.zeros(n)]

    return made


def _shortest(rng: np.random.Generator) -> Arguments:
    row, col = _graph(rng, 20_000, 10)
    lengths, far = rng.random(len(col)).astype(np.float32), rng.random(20_000).astype(np.float32) * 3
    return [20_000, row, col, lengths, far, np.zeros(20_000, np.float32)]


def _triangles(rng: np.random.Generator) -> Arguments:
    return [3000, *_graph(rng, 3000, 10), np.zeros(3000, np.int32)]


def _bisection(rng: np.random.Generator) -> Arguments:
    a, q = np.sort(rng.random(100_000)).astype(np.float32), rng.random(50_000).astype(np.float32)
    return [100_000, 50_000, a, q, np.zeros(50_000, np.int32)]


CASES: dict[str, tuple[str, Callable[[np.random.Generator], Arguments]]] = {
    "sparse, 1,000 rows of 60": (SPARSE, _sparse(1000, 60)),
    "sparse, 100,000 rows of 12": (SPARSE, _sparse(100_000, 12)),
    "shortest ways, one round": (SHORTEST, _shortest),
    "triangles of a graph": (TRIANGLES, _triangles),
    "Mandelbrot, 300 x 400": (MANDELBROT, lambda _: [300, 400, 200, np.zeros((300, 400), np.int32)]),
    "bisection": (BISECTION, _bisection),
    "roots by Newton's method": (ROOTS, lambda rng: [50_000, rng.random(50_000) + 0.1, np.zeros(50_000)]),
}
OWN = ["gcc", "-O3", "-march=native", "-shared", "-fPIC"]


def _build(text: str, folder: Path) -> None:
    source = folder / "work.c"
    source.write_text(text)
    polyloom.drop_in(source, target="c").write(folder / "out")
    subprocess.run([*OWN, "work.c", "-o", "own.so", "-lm"], cwd=folder, check=True)
    # Linked by itself: -ffast-math at the link makes a whole process flush small numbers to zero
    subprocess.run(
        [*OWN[:-2], "-fPIC", "-ffast-math", "-c", "work.c", "-o", "fast.o"], cwd=folder, check=True
    )
    subprocess.run(["gcc", "-shared", "fast.o", "-o", "fast.so", "-lm"], cwd=folder, check=True)
    ours = ["gcc", "-O2", "-fopenmp", "-Wno-psabi", "-shared", "-fPIC", "work.c", "polyloom_loops.c"]
    subprocess.run([*ours, "-o", "../ours.so", "-lm"], cwd=folder / "out", check=True)


def _called(library: Path, arguments: Arguments) -> tuple[Callable[[], None], list[np.ndarray]]:
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    given = [a.ctypes.data_as(ctypes.c_void_p) if isinstance(a, np.ndarray) else a for a in arrays]
    function = ctypes.CDLL(str(library)).work
    function.restype = None
    return lambda: function(*given), [a for a in arrays if isinstance(a, np.ndarray)]


def _least(library: Path, arguments: Arguments, seconds: float) -> tuple[float, np.ndarray]:
    """Return the least microseconds of a call, and the last array as it leaves it."""
    call, arrays = _called(library, arguments)
    call()
    found, best, end = arrays[-1].copy(), np.inf, time.monotonic() + seconds
    while time.monotonic() < end:
        arrays[-1][...] = 0
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e6, found


def _timed(name: str, folder: Path, seconds: float) -> Iterator[str]:
    arguments = CASES[name][1](np.random.default_rng(1))
    own, wanted = _least(folder / "own.so", arguments, seconds)
    ours, found = _least(folder / "ours.so", arguments, seconds)
    if not np.allclose(found, wanted, rtol=1e-6):
        raise SystemExit(f"{name}: other results than the program's own")
    fast, _ = _least(folder / "fast.so", arguments, seconds)
    yield from (f"{t:,.1f}" for t in (own, fast, ours))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        name, folder = options.inside
        print("|".join(_timed(name, Path(folder), options.seconds)))
        return
    print("| | its loops, `-O3 -march=native` | and `-ffast-math` | drop-in, one thread | two threads |")
    print("|---|---:|---:|---:|---:|")
    for name in (n for n in CASES if options.only in n):
        with tempfile.TemporaryDirectory() as folder:
            _build(CASES[name][0], Path(folder))
            command = [sys.executable, __file__, "--inside", name, folder, "--seconds", str(options.seconds)]
            runs = []
            for threads in "12":
                environment = {**os.environ, "OMP_NUM_THREADS": threads}
                run = subprocess.run(command, env=environment, capture_output=True, text=True)
                if run.returncode:
                    raise SystemExit(run.stderr)
                runs.append(run.stdout.strip().split("|"))
            print(f"| {name} | {' | '.join([*runs[0], runs[1][-1]])} |", flush=True)


if __name__ == "__main__":
    main()
