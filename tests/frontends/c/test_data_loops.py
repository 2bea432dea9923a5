"""Loops of which data decide how often they go: what they leave, refusals; random ones beside gcc."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.ir.expressions import Procedure, has_procedure
from polyloom.oracle.interpreter import run_in_order
from random_data_loops import data_loops

SPARSE = """
void spmv(int n, int nnz, const int row[n + 1], const int col[nnz], const double a[nnz], const double x[n],
          double y[n]) {
  for (int i = 0; i < n; i++) {
    double s = 0;
    for (int k = row[i]; k < row[i + 1]; k++) s += a[k] * x[col[k]];
    y[i] = s;
  }
}
"""
ELEMENT = SPARSE.replace("double s = 0;", "y[i] = 0;").replace("s +=", "y[i] +=").replace("y[i] = s;", "")
MANDELBROT = """
void mandelbrot(int h, int w, int most, int out[h][w]) {
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
PROGRAMS: dict[str, tuple[str, dict[str, int]]] = {
    "sparse": (SPARSE, {"n": 50, "nnz": 200}),
    "an element": (ELEMENT, {"n": 50, "nnz": 200}),
    "Mandelbrot": (MANDELBROT, {"h": 7, "w": 9, "most": 50}),
    "search": (
        """void f(int n, int m, int a[n][m], int key[n], int at[n]) {
          for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++)
              if (a[i][j] == key[i]) { at[i] = j; break; } }""",
        {"n": 9, "m": 4},
    ),
    "bisection": (
        """void f(int n, int m, float a[n], float q[m], int at[m]) {
          for (int i = 0; i < m; i++) {
            int low = 0, high = n;
            while (low < high) {
              int middle = low + (high - low) / 2;
              if (a[middle] < q[i]) low = middle + 1; else high = middle;
            }
            at[i] = low;
          } }""",
        {"n": 30, "m": 20},
    ),
    "roots": (
        """#include <math.h>
        void f(int n, double a[n], double r[n]) {
          for (int i = 0; i < n; i++) {
            double x = fabs(a[i]) + 1, last;
            int times = 0;
            do { last = x; x = 0.5 * (x + (fabs(a[i]) + 1) / x); times++; }
            while (fabs(x - last) > 1e-12 * x && times < 50);
            r[i] = x;
          } }""",
        {"n": 30},
    ),
    "a function": (
        """static int gcd(int a, int b) { while (b) { int t = a % b; a = b; b = t; } return a; }
        void f(int n, int g[n][n]) {
          for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) g[i][j] = gcd(i, j); }""",
        {"n": 12},
    ),
    "a function that returns inside of a loop": (
        """static int prime(int n) {
          if (n < 2) return 0;
          for (int d = 2; d * d <= n; d++) if (n % d == 0) return 0;
          return 1; }
        static int at(const int *a, int n, int x) {
          for (int j = 0; j < n; j++) if (a[j] == x) return j;
          return -1; }
        void f(int n, int m, int a[n], int k[m], int r[m], int p[m]) {
          for (int i = 0; i < m; i++) { r[i] = at(a, n, k[i]); p[i] = prime(i); } }""",
        {"n": 5, "m": 40},
    ),
    "a function with loops in loops": (
        """static int both(int a, int b) {
          for (int i = 1; i < 9; i++) {
            for (int j = 1; j < 9; j++) { if (i * a == j * b) return i * 10 + j; }
            if (i == a) return -i;
          }
          return 0; }
        void f(int n, int r[n]) { for (int i = 0; i < n; i++) r[i] = both(i % 7, i / 7); }""",
        {"n": 60},
    ),
    "several results": (
        """void f(int n, int a[n], int s[n], int t[n]) {
          for (int i = 0; i < n; i++) {
            int v = a[i] + 30, steps = 0, most = v;
            while (v != 1 && steps < 200) {
              v = v % 2 ? 3 * v + 1 : v / 2;
              if (v > most) most = v;
              steps++;
            }
            s[i] = steps; t[i] = most;
          } }""",
        {"n": 30},
    ),
    "the first of all": (
        "int f(int n, int a[n]) { int i = 0; while (i < n && a[i] != 2) i++; return i; }",
        {"n": 9},
    ),
}


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_the_program(name: str) -> None:
    text, sizes = PROGRAMS[name]
    found = polyloom.load(text).run(**sizes, check=True)
    assert found.passed and found.check is not None
    assert "the C program" in found.check.by


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("reductions", ["ignore", "detect"])
def test_they_are_nests_in_every_mode(reductions: str) -> None:
    found = polyloom.load(MANDELBROT, reductions=reductions).run(h=5, w=6, most=9, check=True)
    assert found.passed


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed: int) -> None:
    assert polyloom.load(data_loops(seed)).run(n=20, check=True).passed


@pytest.mark.parametrize("name", ["sparse", "search", "several results"])
def test_without_a_compiler_the_steps_are_carried_out(name: str) -> None:
    """The interpreter, beside loops of Python."""
    text, _ = PROGRAMS[name]
    (scop,) = read_c(Source("f.c", text))
    rng = np.random.default_rng(0)
    arrays: dict[str, Any]
    if name == "sparse":
        row = np.array([0, 2, 2, 5], np.int32)
        arrays = {"row": row, "col": rng.integers(0, 3, 5).astype(np.int32), "a": rng.random(5)}
        arrays |= {"x": rng.random(3), "y": np.zeros(3)}
        wanted = [
            sum(arrays["a"][k] * arrays["x"][arrays["col"][k]] for k in range(row[i], row[i + 1]))
            for i in range(3)
        ]
        result, sizes = "y", {"n": 3, "nnz": 5}
    elif name == "search":
        arrays = {
            "a": rng.integers(0, 4, (5, 3)).astype(np.int32),
            "key": np.array([0, 1, 2, 3, 9], np.int32),
        }
        arrays["at"] = np.full(5, -1, np.int32)
        found = [np.flatnonzero(arrays["a"][i] == arrays["key"][i]) for i in range(5)]
        wanted = [int(f[0]) if f.size else -1 for f in found]
        result, sizes = "at", {"n": 5, "m": 3}
    else:
        arrays = {"a": np.arange(4, dtype=np.int32), "s": np.zeros(4, np.int32), "t": np.zeros(4, np.int32)}
        wanted, result, sizes = [18, 106, 5, 26], "s", {"n": 4}
    for array in scop.arrays:
        if not array.shape:
            arrays.setdefault(array.name, np.zeros((), array.type.dtype))
    run_in_order(scop, sizes, arrays)
    np.testing.assert_allclose(arrays[result], wanted)


def test_a_loop_is_one_statement() -> None:
    (scop,) = read_c(Source("f.c", SPARSE))
    (loop,) = (s for s in scop.statements if has_procedure(s.value))
    assert isinstance(loop.value, Procedure)
    assert {read.array for read in loop.reads} >= {"row", "col", "a", "x"}


def test_a_condition_that_no_iteration_changes_is_none_of_these() -> None:
    """The loop stays a sum, which threads and vectors share."""
    text = "float f(int n, int on[n], float a[n]) { float s = 0; LOOP s += a[i]; return s; }"
    (scop,) = read_c(Source("f.c", text.replace("LOOP", "for (int i = 0; i < n && on[0]; i++)")))
    assert not any(has_procedure(s.value) for s in scop.statements)
    assert any(s.iterators for s in scop.statements)


def test_an_element_that_is_not_stored_stays(tmp_path: Path) -> None:
    """Where no iteration stores to it, nothing does: it may not exist, or be another thread's."""
    (tmp_path / "f.c").write_text(PROGRAMS["search"][0])
    polyloom.drop_in(tmp_path / "f.c", target="c").write(tmp_path / "out")
    text = (tmp_path / "out" / "polyloom_loops.c").read_text()
    part = text[text.index("static void f_loops_1") : text.index("static void f_loops(")]
    asked, stored = part.index("if (at_is_stored != 0)"), re.search(r"\bat_?\[i\]", part)
    assert stored is not None and asked < stored.start()


REFUSED = {
    "an array": "int v = a[i]; while (v < n) { b[v] = 1; v += a[v]; }",
    "two elements": "for (int k = a[i]; k < n; k++) { b[0] = k; b[1] = k; }",
    "one that it reads otherwise": "for (int k = a[i]; k < n; k++) b[0] += b[k];",
    "an unknown function": "for (int k = a[i]; k < n; k++) b[0] += rand();",
    "a jump out of it": "for (int k = a[i]; k < n; k++) { if (k == n) return; b[0] += k; }",
    "memory of its own": "for (int k = a[i]; k < n; k++) { int t[4] = {k}; b[0] += t[k & 3]; }",
}
BODY = "int rand(void);\nvoid f(int n, int a[n], int b[n]) { for (int i = 0; i < n; i++) { LOOP } }"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(PolyloomError) as caught:
        read_c(Source("f.c", BODY.replace("LOOP", REFUSED[name])))
    assert all(d.span is not None for d in caught.value.diagnostics)


def test_endless_arrays_of_drop_ins(tmp_path: Path) -> None:
    """Nobody says how long ``a`` is: C says that it is alone (``restrict``), or there is no function."""
    text = "void f(int n, const int *R row, const double *R a, double *R y) { LOOP }".replace(
        "LOOP", "for (int i = 0; i < n; i++) for (int k = row[i]; k < row[i + 1]; k++) y[i] += a[k];"
    )
    (tmp_path / "f.c").write_text(text.replace("R", "restrict"))
    made = polyloom.drop_in(tmp_path / "f.c", target="c")
    assert "polyloom_f(" in made.files["f.c"] and not made.remarks
    (tmp_path / "g.c").write_text(text.replace("R", ""))
    with pytest.raises(PolyloomError, match="how many elements `a` has"):
        polyloom.drop_in(tmp_path / "g.c", target="c")
