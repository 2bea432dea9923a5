"""Unsigned counters with steps: their values are quotients of what may be negative on the way."""

from __future__ import annotations

import pytest

import polyloom

STEPS = """
#include <stddef.h>
void f(size_t n, unsigned m, int *restrict x, int *restrict y)
{
  for (size_t i = n; i >= 3; i -= 3) x[i] = (int)i;
  for (unsigned i = m; i >= 2; i -= 2) y[0] ^= (int)i;
  for (unsigned short i = 40; i > 4; i -= 5) y[i / 2 + 1] += i;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("n", [20, 5])
def test_steps_down(n: int) -> None:
    """``0 - n - 1`` was divided as a number without a sign."""
    assert polyloom.load(STEPS).run(n=n, m=n + 2, check=True).passed
