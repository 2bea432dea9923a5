"""Histograms of open sizes as drop-ins: threads share those of many points, each chunk in bins of its own."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyloom import drop_in

HISTOGRAMS = """\
void counted(int n, const unsigned char x[n], int h[256]) {
  for (int i = 0; i < n; i++) h[x[i]]++;
}
void largest(int n, const unsigned char x[n], int h[256]) {
  for (int i = 2; i < n - 1; i++) if (h[x[i]] < x[i - 1]) h[x[i]] = x[i - 1];
}
void weights(int n, const unsigned char x[n], double h[256]) {
  for (int i = 0; i < n; i++) h[x[i]] += 1.0 / (i + 1);
}
void part(int n, int m, const unsigned char x[n][m], int h[16][16]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) if (i + j < m + 3) h[x[i][j] >> 4][x[i][j] & 15] += j;
}
void colours(int n, int m, const unsigned char x[n][m][3], int h[3][256]) {
  for (int c = 0; c < 3; c++)
    for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) h[c][x[i][j][c]]++;
}
"""
SHARED = ["counted", "largest", "weights", "part", "colours"]
WHOLE = """\
void many(int n, const unsigned short x[n], int h[65536]) {
  for (int i = 0; i < n; i++) h[x[i]]++;
}
"""
FLAGS = ("-O1", "-fopenmp", "-ffp-contract=off", "-shared", "-fPIC", "-Wno-psabi")
LENGTHS = (0, 1, 65535, 65536, 65537, 70001, 200003)
ROWS = ((0, 9), (70000, 1), (1, 70000), (15, 4400), (16, 4096), (17, 3997), (257, 260))
COLOURS = ((0, 1), (1, 24000), (147, 149), (24000, 1))


def library(folder: Path, *files: str) -> ctypes.CDLL:
    name = f"{files[0].partition('.')[0]}_{len(files)}.so"
    subprocess.run(["gcc", *FLAGS, *files, "-o", name, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / name))


def bins(function: str, given: ctypes.CDLL, shape: tuple[int, ...]) -> Any:
    """Return what a function makes of bins that hold something, and of bytes of which some are frequent."""
    size = int(np.prod(shape)) * (3 if function == "colours" else 1)
    x = (np.random.default_rng(size).integers(0, 300, size) % 256).astype(np.uint8)
    kind = np.float64 if function == "weights" else np.int32
    h = np.arange(768 if function == "colours" else 256).astype(kind)
    getattr(given, function)(*map(ctypes.c_int, shape), *(a.ctypes.data_as(ctypes.c_void_p) for a in (x, h)))
    return h


def shapes(function: str) -> list[tuple[int, ...]]:
    rows = {"part": ROWS, "colours": COLOURS}.get(function)
    return [(n,) for n in LENGTHS] if rows is None else list(rows)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.skipif(os.cpu_count() == 1, reason="for one thread nothing is shared")
def test_threads_share_histograms_of_many_points(tmp_path: Path) -> None:
    (tmp_path / "h.c").write_text(HISTOGRAMS)
    out = tmp_path / "out"
    drop_in(tmp_path / "h.c", target="c").write(out)
    text = (out / "polyloom_loops.c").read_text()
    assert re.findall(r"run\((\w+)_loops_of_many, &pace, 1, ", text) == SHARED
    assert text.count(" >= 65536") == len(SHARED)
    assert re.findall(r"run\((\w+)_loops, &pace, 0, ", text) == SHARED
    original, replaced = library(tmp_path, "h.c"), library(out, "h.c", "polyloom_loops.c")
    before = replaced.omp_get_max_threads()
    for threads, function in product((3, before), SHARED):
        replaced.omp_set_num_threads(threads)
        for shape in shapes(function):
            wanted, found = (bins(function, given, shape) for given in (original, replaced))
            if function == "weights":
                np.testing.assert_allclose(found, wanted, rtol=1e-13)
            else:
                np.testing.assert_array_equal(found, wanted, f"{function} {shape}")


def test_histograms_of_many_bins_are_one_threads(tmp_path: Path) -> None:
    (tmp_path / "h.c").write_text(WHOLE)
    drop_in(tmp_path / "h.c", target="c").write(tmp_path / "out")
    assert "of_many" not in (tmp_path / "out" / "polyloom_loops.c").read_text()
