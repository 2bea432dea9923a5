"""Host loops in blocks: which programs have them, and what they compute, element for element as C does.

Integers without signs make every order of a sum exact, so a wrong instance, or one too many, is seen.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from forms import transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.report.forms_view import form
from polyloom.scop import transform
from polyloom.scop.schedule.blocks.blocking import blocked

RIGHT_LOOKING = """
void kernel(int n, unsigned A[n][n]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] *= A[k][k] + 3;
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
  }
}"""

ROW_BY_ROW = """
void kernel(int n, unsigned A[n][n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++) A[i][j] -= A[i][k] * A[k][j];
      A[i][j] *= A[j][j] + 3;
    }
    for (int j = i; j < n; j++)
      for (int k = 0; k < i; k++) A[i][j] -= A[i][k] * A[k][j];
  }
}"""

SYMMETRIC = """
void kernel(int n, unsigned A[n][n]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      for (int k = 0; k < j; k++) A[i][j] -= A[i][k] * A[j][k];
      A[i][j] *= A[j][j];
    }
    for (int k = 0; k < i; k++) A[i][i] -= A[i][k] * A[i][k];
    A[i][i] += 7;
  }
}"""

THROUGH_A_SCALAR = """
void kernel(int n, unsigned A[n][n]) {
  unsigned w;
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      w = A[i][j];
      for (int k = 0; k < j; k++) w -= A[i][k] * A[k][j];
      A[i][j] = w * (A[j][j] + 3);
    }
    for (int j = i; j < n; j++) {
      w = A[i][j];
      for (int k = 0; k < i; k++) w -= A[i][k] * A[k][j];
      A[i][j] = w;
    }
  }
}"""

LEFT_LOOKING = """
void kernel(int n, unsigned A[n][n]) {
  for (int j = 0; j < n; j++) {
    for (int k = 0; k < j; k++)
      for (int i = j; i < n; i++) A[i][j] -= A[i][k] * A[j][k];
    for (int i = j + 1; i < n; i++) A[i][j] *= A[j][j];
  }
}"""

SOLVES = """
void kernel(int n, unsigned A[n][n], unsigned B[n][n]) {
  for (int k = 0; k < n; k++) {
    for (int c = 0; c < n; c++) B[k][c] *= A[k][k];
    for (int i = k + 1; i < n; i++)
      for (int c = 0; c < n; c++) B[i][c] -= A[i][k] * B[k][c];
  }
}"""

UPWARDS = """
void kernel(int n, unsigned A[n][n], unsigned B[n][n]) {
  for (int k = n - 1; k >= 0; k--) {
    for (int c = 0; c < n; c++) B[k][c] *= A[k][k];
    for (int i = 0; i < k; i++)
      for (int c = 0; c < n; c++) B[i][c] -= A[i][k] * B[k][c];
  }
}"""

BATCHED = """
void kernel(int n, unsigned A[3][n][n]) {
  for (int b = 0; b < 3; b++)
    for (int k = 0; k < n; k++) {
      for (int i = k + 1; i < n; i++) A[b][i][k] *= A[b][k][k] + 3;
      for (int i = k + 1; i < n; i++)
        for (int j = k + 1; j < n; j++) A[b][i][j] -= A[b][i][k] * A[b][k][j];
    }
}"""

PATHS = """
void kernel(int n, unsigned A[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        A[i][j] = A[i][k] + A[k][j] < A[i][j] ? A[i][k] + A[k][j] : A[i][j];
}"""

STENCIL = """
void kernel(int n, unsigned A[n][n], unsigned B[n][n]) {
  for (int t = 0; t < n; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 0; j < n; j++) A[i][j] += B[i - 1][j] + B[i + 1][j];
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) B[i][j] -= A[i][j];
  }
}"""

KEPT_COLUMN = """
void kernel(int n, unsigned A[n][n], unsigned w[n]) {
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) w[i] = A[i][k];
    for (int i = k + 1; i < n; i++) A[i][k] *= A[k][k] + 3;
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j <= i; j++) A[i][j] -= A[i][k] * w[j];
  }
}"""

KEPT_UPWARDS = """
void kernel(int n, unsigned A[3][n][n], unsigned w[n + 1]) {
  for (int b = 0; b < 3; b++)
    for (int k = n - 1; k > 0; k--) {
      for (int j = 0; j < k; j++) w[j + 1] = A[b][k][j] * (k + 5);
      for (int i = 0; i < k; i++)
        for (int j = 0; j < k; j++) A[b][i][j] -= A[b][i][k] * w[j + 1];
    }
}"""

REACHED = """
void kernel(int n, unsigned A[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) A[i][j] |= A[i][k] & A[k][j];
}"""

MANY_VERSIONS = """
void kernel(int n, unsigned A[n][n], unsigned L[n][n], unsigned w[n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < n; j++) A[i][j] += L[i][k] * w[j];
      for (int j = 0; j < n; j++) w[j] = w[j] * 3 + L[j][i];
    }
}"""

ONE_SIDE = """
void kernel(int n, unsigned A[n][n], unsigned x[n], unsigned b[n]) {
  for (int i = 0; i < n; i++) {
    x[i] = b[i];
    for (int j = 0; j < i; j++) x[i] -= A[i][j] * x[j];
    x[i] *= A[i][i];
  }
}"""

ONE_SIDE_BY_COLUMNS = """
void kernel(int n, unsigned A[n][n], unsigned x[n]) {
  for (int k = n - 1; k >= 0; k--) {
    x[k] *= A[k][k] + 3;
    for (int i = 0; i < k; i++) x[i] -= A[i][k] * x[k];
  }
}"""

ONE_SIDE_UPWARDS = """
void kernel(int n, unsigned A[n][n], unsigned x[n]) {
  for (int i = n - 1; i >= 0; i--) {
    unsigned w = x[i] + 5;
    for (int j = i + 1; j < n; j++) w -= A[j][i] * x[j];
    x[i] = w * A[i][i];
  }
}"""

WIDE_BAND = """
void kernel(int n, unsigned A[n][n], unsigned x[n]) {
  for (int i = 0; i < n; i++)
    for (int j = i / 2; j < i; j++) x[i] += A[i][j] * x[j];
}"""

LONGEST = """
void kernel(int n, unsigned A[n][n], unsigned x[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) x[i] = x[j] + A[i][j] > x[i] ? x[j] + A[i][j] : x[i];
}"""

NARROW_BAND = """
void kernel(int n, unsigned A[n][n], unsigned x[n]) {
  for (int i = 4; i < n; i++)
    for (int j = i - 4; j < i; j++) x[i] += A[i][j] * x[j];
}"""

EACH_READ_ONCE = """
void kernel(int n, unsigned a[n], unsigned p[n][n], unsigned x[n][n]) {
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) x[i][j] += a[k] * p[i][j];
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) p[i][j] = p[j][i] * 5 + a[k];
  }
}"""

FACTORISATIONS = {
    "right-looking": RIGHT_LOOKING,
    "row by row": ROW_BY_ROW,
    "symmetric": SYMMETRIC,
    "through a scalar": THROUGH_A_SCALAR,
    "left-looking": LEFT_LOOKING,
    "solves": SOLVES,
    "upwards": UPWARDS,
    "one side": ONE_SIDE,
    "one side by columns": ONE_SIDE_BY_COLUMNS,
    "one side upwards": ONE_SIDE_UPWARDS,
    "wide band": WIDE_BAND,
    "longest": LONGEST,
    "batched": BATCHED,
    "kept column": KEPT_COLUMN,
    "kept upwards": KEPT_UPWARDS,
    "paths": PATHS,
    "reached": REACHED,
}


def program(text: str) -> HostProgram:
    return transformed(text.replace(") {", ") {\n#pragma scop", 1).rstrip("}") + "#pragma endscop\n}")


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_updates_wait_for_the_end_of_a_block(name: str) -> None:
    assert "for block" in form(program(FACTORISATIONS[name]))


@pytest.mark.parametrize(
    "text",
    [STENCIL, MANY_VERSIONS, NARROW_BAND, EACH_READ_ONCE],
    ids=["stencil", "many versions", "narrow band", "each read once"],
)
def test_where_the_next_step_needs_all_or_little_is_left_nothing_waits(text: str) -> None:
    assert "block" not in form(program(text))


@pytest.mark.parametrize("n", [0, 1, 5, 6, 7, 13])
@pytest.mark.parametrize("name", [*FACTORISATIONS, "many versions"])
def test_blocks_of_all_sizes_compute_what_c_does(name: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = FACTORISATIONS.get(name, MANY_VERSIONS)
    monkeypatch.setattr(transform, "blocked", partial(blocked, sizes=(6, 2)))
    host = program(text)
    verify(host)
    special = specialise(host, {"n": n})
    random = np.random.default_rng(n)
    shapes = {b.name: b.extents for b in special.buffers if b.role is not Role.LOCAL}
    named = sorted(shapes, key=lambda name: text.index(f" {name}["))
    arrays = {a: random.integers(0, 2**32, shapes[a], np.uint32) for a in named}
    expected = call(text, "kernel", {"n": n, **arrays})
    given = {b.name for b in special.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    found = evaluate_host(special, {}, {a: v for a, v in arrays.items() if a in given})
    for array, values in {**arrays, **found}.items():
        assert np.array_equal(values, expected[array]), array
