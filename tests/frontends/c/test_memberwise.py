"""Structures with arrays and structures inside, as wholes: what C makes of them, built by the C compiler."""

from __future__ import annotations

import pytest

import polyloom

NESTED = """
typedef struct { float re, im; } cplx;
typedef struct { double p[3]; struct { int kind; cplx z; } q; } body;
void f(int n, cplx x[n], cplx y[n], body b[n], body c[n])
{
  for (int i = 0; i < n; i++) {
    cplx s = {0.f};
    for (int j = 0; j < n; j++) {
      const cplx a = x[i], v = x[j];
      s.re += a.re * v.re - a.im * v.im;
      s.im += a.re * v.im + a.im * v.re;
    }
    y[i] = s;
  }
  for (int i = 1; i < n; i++) {
    body t = b[i];
    t.p[1] += b[i - 1].p[2];
    c[i] = t;
    const cplx one = {.im = t.p[0], .re = 2};
    c[i].q.z = one;
    body fresh = {{1, i}, {7, {i, y[i].im}}};
    *(b + i) = fresh;
    cplx u, w;
    u = w = y[i - 1];
    y[i - 1].re = u.im + w.re;
    y[i] = (cplx){y[i].im, y[i].re + y[i - 1].re};
    const cplx last = (cplx){.im = y[i].im};
    y[i].re += last.re + last.im;
  }
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("n", (1, 2, 9))
def test_nested_structures(n: int) -> None:
    result = polyloom.load(NESTED).run(n=n, check=True)
    assert result.passed
    assert result.check is not None
    assert "the C program" in result.check.by


TRUTHS = """
struct in { int x; _Bool p[3]; };
void f(int n, struct in t[n], int a[n])
{
  for (int i = 0; i < n; i++)
    if (i % 2) a[i] += t[i].p[1] + t[i].x; else t[i].p[0] = a[i] > 2;
}
"""


def test_the_check_gives_members_the_bytes_of_its_inputs() -> None:
    """Elements of ``_Bool`` that nothing stores into stay as they are, as those of arrays do."""
    assert polyloom.load(TRUTHS).run(n=11, check=True).passed
