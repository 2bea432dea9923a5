"""Arrays of ``_Bool``: a byte that is 0 or 1, also where a check makes them up."""

from __future__ import annotations

import numpy as np

import polyloom

PICKED = """
void f(int n, const _Bool m[n], const float x[n], float y[n], _Bool one[n], _Bool kept[n])
{
  for (int i = 0; i < n; i++) {
    y[i] = m[i] ? x[i] : -x[i];
    one[i] = m[i] == 1;
    if (x[i] > 0) kept[i] = m[i];
  }
}
"""


def test_a_check_makes_up_truth_values() -> None:
    result = polyloom.load(PICKED).run(n=100, check=True)
    assert result.passed
    assert set(np.unique(result.outputs["one"])) == {0, 1}
    assert set(np.unique(result.outputs["kept"])) == {0, 1}
