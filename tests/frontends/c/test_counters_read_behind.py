"""Counters of loops, read where only some ways went through the loop: heads of loops store nothing."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c

UNKNOWN = {
    "in a branch": "int i = n; if (n > 7) { for (; i > 7; i--) x[i - 1] = i; } x[0] = i;",
    "set in a branch": "int i = 3; if (n > 7) { for (i = 0; i < n; i++) x[i] = i; } x[0] = i;",
    "by data": "int i = 3; if (y[0] > 7) { for (i = 0; i < n; i++) x[i] = i; } x[0] = i;",
    "in one of two": (
        "int i; for (int k = 0; k < 3; k++) {"
        " if (k) for (i = 0; i < n; i++) x[i] += i; else i = 2; x[0] += i; }"
    ),
    "the other one": "int i; for (i = 0; i < n; i++) x[i] = 1; if (y[0]) i = 4; x[0] = i;",
    "some iterations": "int i = 5; for (int k = 0; k < 3; k++) { *x += i; for (i = 0; i < n; i++) *x = 1; }",
    "all iterations": "int i = 5; for (int k = 0; k < m; k++) { for (i = 0; i < n; i++) x[i] = i; } *x = i;",
}
KNOWN = {
    "right behind": "int i; for (i = 0; i < n; i++) x[i] = i; x[0] = i;",
    "both sides": "int i; for (i = 0; i < n; i++) x[i] = i; if (y[0] > 2) x[1] = i; else x[2] = i; x[3] = i;",
    "stored anew": (
        "int i = 5; for (int k = 0; k < m; k++) {"
        " i = k; x[i] += 3; for (i = 0; i < n; i++) x[i] += i; x[1] += i; }"
    ),
    "declared there": "for (int k = 0; k < m; k++) { int i; for (i = 0; i < k; i++) x[i] += i; x[1] += i; }",
}


def program(body: str) -> str:
    return f"void f(int n, int m, int *x, int *y) {{ {body} }}"


@pytest.mark.parametrize("name", UNKNOWN)
def test_it_is_refused_where_ways_meet(name: str) -> None:
    """What was in memory was read: the value from before the loop."""
    with pytest.raises(Unsupported, match="`i` is read after its loop"):
        read_c(Source("f.c", program(UNKNOWN[name])))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", KNOWN)
def test_it_is_known_where_all_ways_went_through_the_loop(name: str) -> None:
    assert polyloom.load(program(KNOWN[name])).run(n=20, m=4, check=True).passed
