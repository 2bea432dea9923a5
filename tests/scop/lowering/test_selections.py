"""Selections: the largest value and where it is, beside elements that other statements write."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host

TEXT = """
void f(int n, int m, int a[n][m], int best[n], int where[n - {less}])
{{
#pragma scop
  for (int i = 0; i < n; i++) best[i] = 0;
  for (int i = 0; i < n - {less}; i++) where[i] = 0;
  for (int i = 0; i < n - 1; i++)
    for (int j = 0; j < m; j++)
      if (a[i][j] > best[i]) {{ best[i] = a[i][j]; where[i] = j; }}
#pragma endscop
}}
"""


@pytest.mark.parametrize("less", [0, 1], ids=["the same elements", "other elements"])
def test_elements_beside_a_selection(less: int) -> None:
    """Both arrays are written in full before, so neither is an input, as many elements as each may have."""
    (program,) = host_programs_of(TEXT.format(less=less))
    assert [buffer.name for buffer in program.given] == ["a"]
    a = np.random.default_rng(1).integers(-3, 9, (5, 4)).astype(np.int32)
    found = evaluate_host(program, {"n": 5, "m": 4}, {"a": a})
    largest = np.maximum(a[:4].max(1), 0)
    places = np.where(largest > 0, a[:4].argmax(1), 0)
    np.testing.assert_array_equal(found["best"], [*largest, 0])
    np.testing.assert_array_equal(found["where"], [*places, 0][: 5 - less])
