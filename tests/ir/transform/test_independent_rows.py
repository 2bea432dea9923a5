"""Programs cut into rows: parts give what the whole gives, and what has no independent rows is refused."""

from __future__ import annotations

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Unsupported
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Role
from polyloom.ir.transform.rows import independent_rows, part
from polyloom.ir.transform.specialise import specialise

GEMM = """
void f(int n, int m, int k, double C[n][m], double A[n][k], double B[k][m]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) {
      for (int l = 0; l < k; l++) C[i][j] += A[i][l] * B[l][j];
      C[i][j] = C[i][j] * 0.5;
    }
#pragma endscop
}"""
STENCIL = """
void f(int n, double y[n], double x[n]) {
#pragma scop
  for (int i = 0; i < n - 3; i++) y[i + 1] = x[i] + 2 * x[i + 1] - x[i + 3];
#pragma endscop
}"""
TWO_STEPS = """
void f(int n, int m, double y[n], double x[n][m]) {
#pragma scop
  for (int i = 0; i < n; i++) { y[i] = 0; for (int j = 0; j < m; j++) y[i] += x[i][j]; }
  for (int i = 0; i < n; i++) y[i] = y[i] * y[i] + x[i][0];
#pragma endscop
}"""
SIZES = {"n": 9, "m": 5, "k": 4}


def whole(text: str) -> HostProgram:
    program = polyloom.load(text).loaded.program
    return specialise(program, {p.name: SIZES[p.name] for p in program.parameters})


@pytest.mark.parametrize("text", [GEMM, STENCIL, TWO_STEPS], ids=["gemm", "stencil", "two-steps"])
@pytest.mark.parametrize("sizes", [(2, 1), (1, 4)])
def test_parts_give_what_the_whole_gives(text: str, sizes: tuple[int, ...]) -> None:
    program = whole(text)
    rows = independent_rows(program)
    rng = np.random.default_rng(1)
    given = {b.name: rng.integers(-9, 9, b.extents).astype(b.type.dtype) for b in program.given}
    want = evaluate_host(program, {}, {n: a.copy() for n, a in given.items()})
    have = {
        b.name: given.get(b.name, np.zeros(b.extents)).copy()
        for b in program.buffers
        if b.role is not Role.LOCAL
    }
    counts = [*sizes, rows.count - sum(sizes)]
    first = 0
    for count in counts:
        own = part(program, rows, count)
        taken = {n: a[rows.of(n, first, count)].copy() if n in rows.reach else a for n, a in have.items()}
        found = evaluate_host(own, {}, {n: taken[n] for n in given})
        for name, array in found.items():
            have[name][rows.of(name, first, count)] = array
        first += count
    assert first == rows.count and min(counts) > 0
    for name, array in want.items():
        assert np.array_equal(have[name], array), name


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for (int i = 0; i < n; i++) y[0] += x[i];", "no parallel dimension"),
        ("for (int i = 0; i < n; i++) y[i] = x[n - 1 - i];", "otherwise than by rows"),
        ("for (int i = 0; i < n; i++) y[i] = x[i] * i;", "number of the row"),
        ("for (int i = 0; i < n; i++) if (i < 3) y[i] = x[i];", ""),
        (
            "for (int i = 0; i < n; i++) t[i] = x[i] + 1; for (int i = 0; i < n; i++) y[i] = t[0] * t[i];",
            "all of",
        ),
        (
            "for (int i = 0; i < n; i++) t[i] = x[i] + 1;"
            "for (int i = 1; i < n - 1; i++) y[i] = t[i - 1] + t[i + 1];",
            "",
        ),
    ],
)
def test_what_has_no_independent_rows_is_refused(body: str, reason: str) -> None:
    text = (
        f"void f(int n, double y[n], double x[n]) {{ double t[n];\n#pragma scop\n{body}\n#pragma endscop\n}}"
    )
    try:
        rows = independent_rows(whole(text))
    except Unsupported as refused:
        assert refused.diagnostics[0].code == "split-rows"
        assert reason in refused.diagnostics[0].notes[0]
    else:
        assert not reason, rows
