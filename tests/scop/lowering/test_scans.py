"""Scans that start from the element before the first, found in a piece of a statement."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host

TEXT = """
void f(int n, int m, int a[40], int A[24][24])
{
#pragma scop
  for (int i = 0; i < m; i++) A[i + 1][i + n] = ((a[i] * 3) & A[i][i]);
#pragma endscop
}
"""


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_recurrence_for_one_size_alone(n: int) -> None:
    """The loop is cut in two: only where n is 1 it reads what the iteration before wrote."""
    (program,) = host_programs_of(TEXT)
    generator = np.random.default_rng(3)
    a = generator.integers(0, 90, 40).astype(np.int32)
    square = generator.integers(0, 1 << 20, (24, 24)).astype(np.int32)
    wanted = square.copy()
    for i in range(19):
        wanted[i + 1, i + n] = a[i] * 3 & wanted[i, i]
    found = evaluate_host(program, {"n": n, "m": 19}, {"a": a, "A": square})
    np.testing.assert_array_equal(found["A"], wanted)


DIAGONAL = """
void f(int n, int A[24][24], int b[24][24])
{
#pragma scop
  for (int i = %s)
    for (int j = 0; j < n; j++)
      if (i + j == n - 1) { b[0][0] = 3 * b[0][0] + A[i][j]; b[i][j] = b[0][0]; }
#pragma endscop
}
"""


@pytest.mark.parametrize("loop", ["0; i < n; i++", "n - 1; i >= 0; i--"])
def test_along_a_diagonal_the_outer_loop_says_what_is_first(loop: str) -> None:
    (program,) = host_programs_of(DIAGONAL % loop)
    n = 9
    generator = np.random.default_rng(4)
    A, b = (generator.integers(0, 4, (24, 24)).astype(np.int32) for _ in range(2))
    wanted = b.copy()
    for i in range(n) if "i++" in loop else range(n - 1, -1, -1):
        wanted[0, 0] = 3 * wanted[0, 0] + A[i, n - 1 - i]
        wanted[i, n - 1 - i] = wanted[0, 0]
    found = evaluate_host(program, {"n": n}, {"A": A, "b": b})
    np.testing.assert_array_equal(found["b"], wanted)
