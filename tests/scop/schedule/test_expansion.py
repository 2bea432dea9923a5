"""Arrays that every iteration sets anew: expanded beside scalars and other arrays that are."""

from __future__ import annotations

import numpy as np
import pytest
from forms import made_up, read, run

from polyloom.scop.transform import host_program

TWO_ARRAYS = """void kernel(int b, int n, int x[b][n], int y[b][n]) {
#pragma scop
  for (int k = 0; k < b; k++) {
    int t[n], u[n];
    for (int i = 0; i < n; i++) {
      int s = 0;
      for (int j = 0; j <= i; j++) s += x[k][j];
      t[i] = s;
    }
    for (int i = 0; i < n; i++) u[i] = t[n - 1 - i] * t[i];
    for (int i = 0; i < n; i++) y[k][i] = u[i] + t[0];
  }
#pragma endscop
}
"""
KEPT = TWO_ARRAYS.replace("u[i] = t[n - 1 - i]", "u[i] = y[k > 0 ? k - 1 : 0][i] + t[n - 1 - i]")


def outer_verdict(text: str) -> str:
    return host_program(read(text)).loops[0].verdict.value


def test_reuse_of_arrays_and_scalars_keeps_no_iterations_in_order() -> None:
    assert outer_verdict(TWO_ARRAYS) == "parallel"


def test_values_that_pass_from_iteration_to_iteration_do() -> None:
    assert outer_verdict(KEPT) == "serial"


@pytest.mark.parametrize("text", [TWO_ARRAYS, KEPT], ids=["two arrays", "kept"])
@pytest.mark.parametrize(("b", "n"), [(0, 3), (1, 1), (3, 0), (4, 7)])
def test_the_numbers_are_those_of_the_loops(text: str, b: int, n: int) -> None:
    program = host_program(read(text)).program
    values = made_up(program, {"b": b, "n": n}, b + n)
    wanted = np.array(values["y"]) if "y" in values else np.zeros((b, n), int)
    for k in range(b):
        t = np.cumsum(values["x"][k])
        u = t[::-1] * t if text == TWO_ARRAYS else wanted[max(k - 1, 0)] + t[::-1] * t
        wanted[k] = u + t[:1]
    assert np.array_equal(run(program, values)["y"], wanted)
