"""Maps of open sizes as drop-ins: results that no cache holds are stored past the caches."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from polyloom import drop_in
from polyloom.mdh.lowering.nests import past_caches

MAPS = """\
void added(int n, const float *a, const float *b, float *c) {
  for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}
void two(int n, const float *a, float *b, float *c) {
  for (int i = 0; i < n; i++) { b[i] = a[i] - 1; c[i] = a[i] + 1; }
}
void gray(int n, const unsigned char x[n][3], unsigned char y[n]) {
  for (int i = 0; i < n; i++) y[i] = (77 * x[i][0] + 150 * x[i][1] + 29 * x[i][2]) >> 8;
}
void rows(int n, int m, double a[n][m], double b[n][m]) {
  for (int i = 1; i < n; i++) for (int j = 1; j < m - 1; j++) b[i][j] = a[i][j + 1] - a[i - 1][j];
}
"""
OTHERS = """\
void filled(int n, float *a) {
  for (int i = 0; i < n; i++) a[i] = 3;
}
void in_place(int n, float s, float *a) {
  for (int i = 0; i < n; i++) a[i] = s * a[i];
}
void two_rows(int n, int m, float a[n][m], float b[n][m], float c[n][m]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) { b[i][j] = a[i][j]; c[i][j] = a[i][j] + 1; }
}
void sums(int n, int m, float a[n][m], float y[n]) {
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) y[i] += a[i][j];
}
"""
FLAGS = ("-O1", "-fopenmp", "-ffp-contract=off", "-shared", "-fPIC", "-Wno-psabi")
SIZES = (5000, 20000, 65543)
ROWS = ((3, 2049), (9, 2050), (7, 2051), (40, 300))


def library(folder: Path, *files: str) -> ctypes.CDLL:
    name = f"maps_{len(files)}.so"
    subprocess.run(["gcc", *FLAGS, *files, "-o", name, "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / name))


def left(given: ctypes.CDLL, function: str, sizes: tuple[int, ...], offset: int) -> bytes:
    """Return memory after a call. ``offset``: of the first array in it, elements."""
    kind = {"gray": np.uint8, "rows": np.float64}.get(function, np.float32)
    count = int(np.prod(sizes)) * (3 if function == "gray" else 1)
    block = np.random.default_rng(count).integers(0, 200, 3 * count + offset + 16).astype(kind)
    starts = [block[offset + k * (count + 3) :] for k in range(2 if function in ("gray", "rows") else 3)]
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in starts]
    getattr(given, function)(*map(ctypes.c_int, sizes), *pointers)
    return block.tobytes()


@pytest.mark.slow
@pytest.mark.ci
def test_large_results_go_past_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_caches, "PART_OF_CACHE", 1 << 12)
    (tmp_path / "maps.c").write_text(MAPS)
    out = tmp_path / "out"
    drop_in(tmp_path / "maps.c", target="c").write(out)
    text = (out / "polyloom_loops.c").read_text()
    functions = ["added", "two", "gray", "rows"]
    assert re.findall(r"run\((\w+)_loops_of_large, ", text) == ["added", "two", "gray", "rows"]
    assert len(re.findall(r"^    streamed_is_there\(\);$", text, re.MULTILINE)) == len(functions)
    original, replaced = library(tmp_path, "maps.c"), library(out, "maps.c", "polyloom_loops.c")
    for function in functions:
        for sizes in ROWS if function == "rows" else [(n,) for n in SIZES]:
            for offset in (0, 1, 5):
                found, wanted = (left(given, function, sizes, offset) for given in (replaced, original))
                assert found == wanted, (function, sizes, offset)


def test_what_would_gain_nothing_stays_in_caches(tmp_path: Path) -> None:
    (tmp_path / "maps.c").write_text(OTHERS)
    drop_in(tmp_path / "maps.c", target="c").write(tmp_path / "out")
    assert "_of_large" not in (tmp_path / "out" / "polyloom_loops.c").read_text()
