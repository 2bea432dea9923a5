"""What C functions return, where no pragma marks a part: by Polyloom, in a drop-in, and by C itself."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from compiled_c import build
from polyloom.cli.main import run as main

FUNCTIONS = """
#include <math.h>
double norm(int n, int m, double a[n]) {
  if (n <= 0) return -1;
  double largest = 0, s = 0;
  for (int i = 0; i < n; i++) if (fabs(a[i]) > largest) largest = fabs(a[i]);
  for (int i = 0; i < n; i++) s += a[i] / largest * a[i];
  return sqrt(s * largest);
}
int longest(int n, int m, double a[n]) {
  int best = 0, run = 0;
  for (int i = 0; i < n; i++) {
    run = a[i] > 0 ? run + 1 : 0;
    if (run > best) best = run;
  }
  return best;
}
int several(int n, int m, double a[n]) {
  if (n < m) { if (n > 0) a[0] = 1; return 7; }
  for (int i = 0; i < n; i++) a[i] *= 2;
  if (m == 3) return m;
  return n + m;
}
signed char wraps(int n, int m, double a[n]) {
  int s = 100;
  for (int i = 0; i < n; i++) s += (int)a[i];
  return s;
}
long of_sizes(int n, int m, double a[n]) { return 2L * n - m; }
"""
ORIGINAL = re.compile(r"if \(!polyloom_.*(?=return polyloom_returned)", re.DOTALL)
TYPES: dict[str, Any] = {
    "norm": ctypes.c_double,
    "longest": ctypes.c_int,
    "several": ctypes.c_int,
    "wraps": ctypes.c_byte,
    "of_sizes": ctypes.c_long,
}


def by_c(library: Path, name: str, n: int, m: int, a: np.ndarray[Any, Any]) -> Any:
    function = getattr(ctypes.CDLL(str(library)), name)
    function.restype = TYPES[name]
    return function(n, m, a.ctypes.data_as(ctypes.c_void_p))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(FUNCTIONS, tmp_path_factory.mktemp("c"))


@pytest.mark.parametrize("name", TYPES)
def test_a_call_returns_what_c_does(library: Path, name: str, tmp_path: Path) -> None:
    source = tmp_path / "functions.c"
    source.write_text(FUNCTIONS)
    function = polyloom.load(source, function=name)
    for n, m in ((0, 1), (1, 3), (9, 3), (40, 2)):
        a = np.random.default_rng(n).integers(-9, 9, n).astype(np.float64) + 0.5
        mine, theirs = a.copy(), a.copy()
        found = function(n, m, mine)
        returned = found[-1] if isinstance(found, tuple) else found
        assert np.isscalar(returned)
        assert returned == pytest.approx(by_c(library, name, n, m, theirs), rel=1e-14)
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", [n for n in TYPES if n != "of_sizes"])
def test_a_drop_in_returns_what_c_does(library: Path, name: str, tmp_path: Path) -> None:
    """It is the call that returns: the loops behind it are made to return something else."""
    source, folder = tmp_path / "functions.c", tmp_path / "out"
    source.write_text(FUNCTIONS)
    assert main(["compile", str(source), "--function", name, "--target", "c", "-o", str(folder)]) == 0
    text = (folder / "functions.c").read_text()
    (folder / "functions.c").write_text(ORIGINAL.sub(lambda m: m[0].replace("return ", "return 77 + "), text))
    sources = [folder / "functions.c", folder / "polyloom_loops.c"]
    drop_in = folder / "drop_in.so"
    options = ["-O2", "-Wall", "-Werror", "-Wno-psabi", "-shared", "-fPIC"]
    command = ["gcc", *options, *sources, "-o", drop_in, "-lm"]
    subprocess.run(command, check=True)
    for n, m in ((1, 3), (9, 3), (40, 2)):
        a = np.random.default_rng(n).integers(-9, 9, n).astype(np.float64) + 0.5
        mine, theirs = a.copy(), a.copy()
        assert by_c(drop_in, name, n, m, mine) == pytest.approx(by_c(library, name, n, m, theirs), rel=1e-14)
        np.testing.assert_array_equal(mine, theirs)
