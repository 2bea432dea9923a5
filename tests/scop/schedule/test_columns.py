"""Columns behind a block that wait for its end: which programs have them, and what they compute.

Integers without signs make every order of a sum exact, so a wrong instance, or one too many, is seen.
"""

from __future__ import annotations

import numpy as np
import pytest
from forms import transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.report.forms_view import form
from polyloom.scop.schedule.blocks import columns

ORTHOGONAL = """
void kernel(int n, int m, unsigned A[m][n], unsigned Q[m][n], unsigned R[n][n]) {
#pragma scop
  for (int c = 0; c < n; c++) {
    unsigned s = 3;
    for (int r = 0; r < m; r++) s += A[r][c] * A[r][c];
    R[c][c] = s;
    for (int r = 0; r < m; r++) Q[r][c] = A[r][c] * R[c][c];
    for (int b = c + 1; b < n; b++) {
      R[c][b] = 0;
      for (int r = 0; r < m; r++) R[c][b] += Q[r][c] * A[r][b];
      for (int r = 0; r < m; r++) A[r][b] -= Q[r][c] * R[c][b];
    }
  }
#pragma endscop
}"""

BY_ROWS = """
void kernel(int n, int m, unsigned A[n][m], unsigned Q[n][m], unsigned R[n][n]) {
#pragma scop
  for (int c = 0; c < n; c++) {
    for (int r = 0; r < m; r++) Q[c][r] = A[c][r] * 3;
    for (int b = c + 1; b < n; b++) {
      R[c][b] = 1;
      for (int r = 0; r < m; r++) R[c][b] += Q[c][r] * A[b][r];
      for (int r = 0; r < m; r++) A[b][r] -= Q[c][r] * R[c][b];
    }
  }
#pragma endscop
}"""

TIMES = """
void kernel(int n, int m, unsigned A[m][n], unsigned Q[m][n], unsigned R[n][n]) {
#pragma scop
  for (int t = 0; t < 3; t++)
    for (int c = 0; c < n; c++) {
      for (int r = 0; r < m; r++) Q[r][c] = A[r][c] + Q[r][c];
      for (int b = c + 1; b < n; b++) {
        R[c][b] = 2;
        for (int r = 0; r < m; r++) R[c][b] += Q[r][c] * A[r][b];
        for (int r = 0; r < m; r++) A[r][b] -= Q[r][c] * R[c][b];
      }
    }
#pragma endscop
}"""

FROM_THE_NEXT_COLUMN = ORTHOGONAL.replace("Q[r][c] * A[r][b];", "Q[r][c] * A[r][b + 1];").replace(
    "b < n", "b < n - 1"
)
FROM_THE_LAST_COLUMN = ORTHOGONAL.replace("A[r][c] * R[c][c]", "A[r][n - 1] * R[c][c]")
OVERWRITTEN = ORTHOGONAL.replace("Q[r][c]", "Q[r][0]")
SMALL = ORTHOGONAL.replace("int n, int m, ", "").replace("[n]", "[80]").replace("[m]", "[60]")
SMALL = SMALL.replace("< n", "< 80").replace("< m", "< 60")

WITH_COLUMNS = {"orthogonal": ORTHOGONAL, "by rows": BY_ROWS, "several times": TIMES}
WITHOUT = {
    "next column": FROM_THE_NEXT_COLUMN,
    "last column": FROM_THE_LAST_COLUMN,
    "overwritten": OVERWRITTEN,
    "small": SMALL,
}


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_columns_behind_a_block_go_in_tiles_side_by_side(name: str) -> None:
    assert "for tile" in form(transformed(WITH_COLUMNS[name]))


@pytest.mark.parametrize("name", WITHOUT)
def test_columns_that_need_each_other_or_fit_into_a_cache_do_not(name: str) -> None:
    assert "tile" not in form(transformed(WITHOUT[name]))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9, 13])
@pytest.mark.parametrize("name", [*WITH_COLUMNS, "next column", "last column", "overwritten"])
def test_blocks_and_tiles_of_all_sizes_compute_what_c_does(
    name: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {**WITH_COLUMNS, **WITHOUT}[name]
    monkeypatch.setattr(columns, "STEPS", 3)
    monkeypatch.setattr(columns, "SIZE", 4)
    host = transformed(text)
    verify(host)
    special = specialise(host, {"n": n, "m": 5})
    random = np.random.default_rng(n)
    shapes = {"A": (n, 5) if name == "by rows" else (5, n), "R": (n, n)}
    shapes["Q"] = shapes["A"]
    arrays = {a: random.integers(0, 2**32, shapes[a], np.uint32) for a in ("A", "Q", "R")}
    expected = call(text, "kernel", {"n": n, "m": 5, **arrays})
    given = {b.name for b in special.buffers if b.name in arrays and b.role.name in ("INPUT", "UPDATED")}
    found = evaluate_host(special, {}, {a: v for a, v in arrays.items() if a in given})
    for array, values in {**arrays, **found}.items():
        if array in arrays:
            assert np.array_equal(values, expected[array]), array
