"""Drop-ins in C have a version of their own for steps of 1, and the same results with all steps."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from polyloom import drop_in

GCC = shutil.which("gcc") or "cc"

STEPS = """\
#include <stdio.h>
#include <stdlib.h>
void axpy(int n, float s, int incx, int incy, float *x, float *y) {
#pragma scop
  for (int i = 0; i < n; i++) y[i * incy] += s * x[i * incx];
#pragma endscop
}
float dot(int n, int incx, int incy, float *x, float *y) {
  float s = 0;
#pragma scop
  for (int i = 0; i < n; i++) s += x[i * incx] * y[i * incy];
#pragma endscop
  return s;
}
void scale(int n, int m, float s, float A[n][m]) {
#pragma scop
  for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) A[i][j] *= s;
#pragma endscop
}
int main(void) {
  float *x = malloc(4 * 70000), *y = malloc(4 * 70000);
  for (int n = 1; n <= 20000; n = n * 7 + 4)
    for (int incx = 1; incx <= 3; incx++)
      for (int incy = 1; incy <= 3; incy += 2) {
        for (int i = 0; i < 70000; i++) x[i] = i % 7 - 3, y[i] = i % 5;
        axpy(n, 2, incx, incy, x, y);
        axpy(n, 1, incx, 1, y + 1, y); /* they overlap: the original loops */
        scale(n, incx, 3, (float(*)[incx])x);
        double sum = 0;
        for (int i = 0; i < 70000; i++) sum += (i % 11) * y[i];
        printf("%g %g\\n", sum, dot(n < 3000 ? n : 3000, incx, incy, x, y));
      }
  return 0;
}
"""


def text_of(source: Path, folder: Path) -> str:
    drop_in(source, target="c").write(folder)
    return (folder / "polyloom_loops.c").read_text()


def printed(folder: Path, *command: str) -> str:
    subprocess.run([GCC, *command, "-o", "program", "-lm"], cwd=folder, check=True)
    return subprocess.run(folder / "program", check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.ci
def test_results_are_the_same_with_all_steps(tmp_path: Path) -> None:
    source = tmp_path / "steps.c"
    source.write_text(STEPS)
    text_of(source, tmp_path / "out")
    wanted = printed(tmp_path, "steps.c")
    for options in ([], ["-fopenmp"]):
        command = ("-O2", "-Wno-psabi", *options, "steps.c", "polyloom_loops.c")
        assert printed(tmp_path / "out", *command) == wanted
    functions = tmp_path / "out" / "polyloom_loops.c"
    functions.write_text(functions.read_text().replace("    function(&member", "    if (0) function(&member"))
    assert printed(tmp_path / "out", *command) != wanted, "it is the original loops that run"


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("for (int i = 0; i < n; i++) y[i * p] += x[i * q];", {"p", "q"}),
        ("for (int i = 0; i < n; i++) y[i * p] += x[i];", {"p"}),
        ("for (int i = 0; i < n; i++) for (int j = 0; j < p; j++) y[i * p + j] += x[i];", set()),
        ("for (int i = 0; i < n; i++) y[i] += p * x[i];", set()),
    ],
)
def test_which_steps_a_function_asks_for(body: str, asked: set[str], tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text(f"void f(int n, int p, int q, float *x, float *y) {{ {body} }}\n")
    text = text_of(source, tmp_path / "out")
    assert {name for name in "pq" if f"{name} == 1" in text} == asked
    assert ("_of_unit_steps" in text) == bool(asked)
