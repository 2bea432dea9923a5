"""Conditions on data whose branch is one statement of C that stores more than once: their values are kept."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c

FORMS = {
    "chained": "if (y[i] & 1) z[i] = y[i] = 30 + i % 3 * 2;",
    "called": "if (y[i] & 1) z[i] = step(y + i);",
    "structure": "struct s a = {y[i], 3}, b = {z[i] - 40, 9}; if (a.x & 1) a = b; y[i] = a.x; z[i] = a.y;",
    "switch": "switch (y[i] & 3) { case 1: y[i] = 2; case 2: z[i] = 1; break; case 3: z[i] = y[i] = 0; }",
}
PROGRAM = """
struct s { int x, y; };
static int step(int *c) { c[0] = c[0] + 1; return c[0] * 2; }
static int twice(int x) { return 2 * x; }
void f(int n, int *y, int *z) { for (int i = 0; i < n; i++) { %s } }
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", FORMS)
def test_what_the_c_compiler_computes(form: str) -> None:
    """The second store asked the condition again, of what the first had changed."""
    assert polyloom.load(PROGRAM % FORMS[form]).run(n=40, check=True).passed


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("z[i] = y[i] = 3;", True),
        ("z[i] = step(y + i);", True),
        ("y[i] = twice(y[i]);", False),
        ("y[i] += 3;", False),
        ("y[i]++;", False),
    ],
)
def test_of_one_store_nothing_is_kept(statement: str, kept: bool) -> None:
    (scop,) = read_c(Source("f.c", PROGRAM % f"if (y[i] & 1) {statement}"))
    assert any(array.name.startswith("condition") for array in scop.arrays) is kept
