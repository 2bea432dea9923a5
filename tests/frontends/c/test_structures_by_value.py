"""Structures as arguments and results of functions, functions under conditions on data, beside C itself."""

from __future__ import annotations

import pytest

import polyloom

FUNCTIONS = """
typedef struct { double re, im; } cplx;
typedef struct { cplx z; int k, of[2]; } tagged;
static cplx add(cplx a, cplx b) { return (cplx){a.re + b.re, a.im + b.im}; }
static cplx mul(const cplx a, const cplx b)
{
  cplx r;
  r.re = a.re * b.re - a.im * b.im;
  r.im = a.re * b.im + a.im * b.re;
  return r;
}
static double norm(cplx a) { return a.re * a.re + a.im * a.im; }
static cplx swapped(cplx a) { double t = a.re; a.re = a.im; a.im = t; return a; }
static cplx first(int i, cplx a, cplx b) { if (i < 3) return a; return b; }
static tagged tag(cplx z, int k) { tagged t = {z, k, {k, k + 1}}; return t; }
static double half(double a) { double t = a / 2; return t; }
"""

BODIES = {
    "nested calls": "cplx s = mul(x[i], y[i]); y[i] = add(s, mul(swapped(x[i]), s));",
    "numbers of structures": "cplx s = add(x[i], y[i]); d[i] = norm(x[i]) - 2 * norm(add(y[i], s));",
    "arguments are copies": "cplx s = swapped(x[i]); y[i] = add(x[i], s); x[i] = swapped(s);",
    "early return": "y[i] = first(i, x[i], y[i]); x[i] = first(2 * i, y[i], x[i]);",
    "structures inside": "tagged t = tag(y[i], i); q[i] = t.k + t.of[1]; x[i] = t.z;",
    "a chain": "cplx u, v; u = v = swapped(x[i]); y[i].re = u.im; y[i].im = v.re;",
    "a choice": "x[i] = x[i].re > 0 ? y[i] : swapped(x[i]); y[i] = i % 2 ? x[i] : add(y[i], x[i]);",
    "under data": "if (x[i].re > 0) { d[i] = half(x[i].im); y[i] = mul(x[i], y[i]); }",
    "what it writes it reads": "x[i] = mul(x[i], x[i]); x[i] = add(swapped(x[i]), x[i]);",
}


@pytest.mark.parametrize("name", BODIES)
def test_structures_by_value(name: str) -> None:
    loops = (
        f"void f(int n, cplx x[n], cplx y[n], double d[n], int q[n]) {{ for (int i = 0; i < n; i++) {{ "
        f"{BODIES[name]} }} }}"
    )
    for n in (1, 7):
        result = polyloom.load(FUNCTIONS + loops).run(n=n, check=True)
        assert result.passed
        assert result.check is not None
        assert "the C program" in result.check.by


def test_helpers_are_not_what_is_meant() -> None:
    helper = "static double twice(double a) { double b = a + a; return b; }"
    loops = "void f(int n, double a[n]) { for (int i = 0; i < n; i++) a[i] = twice(a[i]); }"
    main = "int main(void) { return 0; }"
    assert polyloom.load(f"{helper}\n{loops}\n{main}").run(n=5, check=True).passed
