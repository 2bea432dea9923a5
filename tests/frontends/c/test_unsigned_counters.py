"""Unsigned counters with steps: their values are quotients of what may be negative on the way."""

from __future__ import annotations

import islpy as isl
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c

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


def test_a_step_may_be_beyond_the_numbers_of_isl() -> None:
    """``isl.Val(2**63)`` is an error."""
    loop = "for (unsigned long long i = 0; i < 100; i += 9223372036854775808ULL) x[i] = 1;"
    (scop,) = read_c(Source("f.c", f"void f(int *x) {{ {loop} }}"))
    assert scop.statements[0].domain.is_equal(isl.Set("{ S1[0] }"))
