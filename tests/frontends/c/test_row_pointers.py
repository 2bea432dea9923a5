"""Pointers that are set in a part: their uses are of the place that was set last, or they are refused."""

from __future__ import annotations

import pytest

from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_c
from polyloom.scop.model import Scop

SET = "p = d + y * w;"
USE = "for (int x = 0; x < w; x++) p[x] += x;"


def read(before: str, loop: str, after: str = "") -> Scop:
    part = f"#pragma scop\nfor (int y = 0; y < h; y++) {loop}\n#pragma endscop"
    text = f"double f(int w, int h, double *d, double *e) {{ {before}\n{part}\n{after} return 0; }}"
    (scop,) = read_c(Source("f.c", text))
    return scop


@pytest.mark.parametrize(
    ("before", "loop", "after"),
    [
        ("double *p;", f"{{ {SET} {USE} }}", ""),
        ("double *p = d;", f"{{ {SET} {USE} }}", "p = d; p[0] = 1;"),
        ("double *p;", f"{{ {SET} {USE} p = e + y * w; {USE} }}", ""),
        ("double *p;", f"{{ if (y > 1) {{ {SET} {USE} }} else {{ p = e; p[y] = 1; }} }}", ""),
    ],
)
def test_is_the_place_that_it_was_set_to(before: str, loop: str, after: str) -> None:
    scop = read(before, loop, after)
    assert {s.target.array for s in scop.statements} <= {"d", "e"}


@pytest.mark.parametrize(
    ("before", "loop", "after"),
    [
        ("double *p = d;", f"{{ {USE} {SET} }}", ""),
        ("double *p = d;", f"{{ if (y > 2) {SET} {USE} }}", ""),
        ("double *p = d;", f"{{ {SET} {USE} }}", "return p[0];"),
        ("double *p = d;", "{ p = d + y * w; for (int x = 0; x < w; x++) { p[x] += 1; p = e; } }", ""),
        ("double *p = d, **q = &p;", f"{{ {SET} {USE} }}", "**q = 1;"),
        ("static double *p;", f"{{ {SET} {USE} }}", ""),
        ("double *p = d;", f"{{ {{ {SET} }} {USE} }}", ""),
        ("double *volatile p = d;", f"{{ {SET} {USE} }}", ""),
    ],
)
def test_others_are_refused(before: str, loop: str, after: str) -> None:
    with pytest.raises(PolyloomError):
        read(before, loop, after)


def test_a_pointer_of_the_file_is_seen_by_others() -> None:
    text = f"double *p; void f(int w, int h, double *d) {{ for (int y = 0; y < h; y++) {{ {SET} {USE} }} }}"
    with pytest.raises(PolyloomError):
        read_c(Source("f.c", text), "f")
