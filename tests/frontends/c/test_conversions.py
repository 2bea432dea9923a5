"""Constants that leave the range of the type that they become: C's value is another one."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import PolyloomError

CONSTANTS = """
static int pick(int x, int y) { if (x < 0) return y; return x; }
static short less(int x, long y) { return x > y ? x - y : y; }
void f(int n, int *y, int *z)
{
  for (int i = 0; i < n; i++) {
    int k = 3000000000, m = i - 0x80000000u;
    y[i] = less(0x80000000, '\\xff') + (k < 0 ? 20 : 10);
    z[i] = pick(0xfffffffe, 3) * (m < 0 ? 2 : 1);
  }
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_they_are_what_the_c_compiler_makes_of_them() -> None:
    """They were taken as they are written in comparisons of what they are assigned to."""
    assert polyloom.load(CONSTANTS).run(n=20, check=True).passed


WRAPPED = ["4294967298", "0x100000002u", "(long)i + 4294967298"]


@pytest.mark.parametrize("bound", WRAPPED)
def test_they_are_no_bounds(bound: str) -> None:
    text = f"void f(int n, int y[n][n]) {{ for (int i = 0; i < n; i++) {{ int k = {bound}; LOOP }} }}"
    with pytest.raises(PolyloomError, match="not affine"):
        polyloom.load(text.replace("LOOP", "for (int j = 0; j < k; j++) y[i][j] += j;")).run(n=3)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("bound", WRAPPED)
def test_they_are_ends_of_loops_as_data_are(bound: str) -> None:
    text = f"void f(int n, int *y) {{ for (int i = 0; i < n; i++) {{ int k = {bound}; LOOP }} }}"
    text = text.replace("LOOP", "for (int j = 0; j < k; j++) y[i] += j;")
    assert polyloom.load(text).run(n=3, check=True).passed


@pytest.mark.slow
@pytest.mark.ci
def test_nothing_is_assumed_that_leaves_no_iteration() -> None:
    """Where ``i - 1u`` must not wrap, at 0 neither, no ``n`` was left for which the loop runs."""
    text = (
        "void f(int n, int *y) { for (int i = 0; i < n; i++) if (i - 1u > 3 || -1 < (unsigned)i) y[i] = 4; }"
    )
    assert polyloom.load(text).run(n=20, check=True).passed


def test_a_loop_that_wraps_is_refused_inside_of_others() -> None:
    """It ended with an error of isl: that the loops around it never run was assumed."""
    text = "void f(int n, int y[n][256]) { for (int i = 0; i < n; i++) LOOP y[i][c] += c; }"
    with pytest.raises(PolyloomError, match="wraps and goes on"):
        polyloom.load(text.replace("LOOP", "for (unsigned char c = 250; c >= 248; c++)")).run(n=3)
