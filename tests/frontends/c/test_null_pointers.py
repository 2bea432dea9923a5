"""Conditions on pointers: one that the part uses is taken to be there, and a drop-in looks first."""

from __future__ import annotations

import pytest

from polyloom import drop_in
from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c
from polyloom.scop.model import Scop

HEAD = """\
#include <stddef.h>
struct box { float *data; int n; };
static float table[9];
"""


def read(body: str, arguments: str = "int n, float *x, const float *by, struct box *b") -> Scop:
    (scop,) = read_c(Source("f.c", f"{HEAD}void f({arguments}) {{\n{body}\n}}\n"))
    return scop


@pytest.mark.parametrize(
    ("condition", "present"),
    [
        ("by != NULL", ("by",)),
        ("NULL != by", ("by",)),
        ("by != 0", ("by",)),
        ("by", ("by",)),
        ("!!by && x", ("by", "x")),
        ("by == NULL || x != 0", ("by", "x")),
        ("!(by == (void *)0)", ("by",)),
        ("b && b->data", ("b", "b[0].data")),
        ("table != NULL", ()),
    ],
)
def test_what_is_taken_not_to_be_null(condition: str, present: tuple[str, ...]) -> None:
    loop = f"for (int i = 0; i < n; i++) if ({condition}) x[i] += by[i] + b->data[i]; else x[i] = 0;"
    scop = read(loop)
    assert scop.present == present
    assert len(scop.statements) == 1 and len(scop.statements[0].reads) == 3
    assert [f"`{name}` is not NULL" in scop.assumed for name in present] == [True] * len(present)


@pytest.mark.parametrize(
    ("body", "statements"),
    [
        ("if (!x) return; for (int i = 0; i < n; i++) x[i] = 1;", 1),
        ("for (int i = 0; i < n; i++) x[i] = by ? by[i] : 2;", 1),
        ("if (x == NULL || by == NULL) { table[0] = 1; } for (int i = 0; i < n; i++) x[i] = by[i];", 1),
        ("float *y = x + 1; if (y) for (int i = 0; i < n; i++) y[i] = 1;", 1),
    ],
)
def test_statements_without_pointers_are_left_out(body: str, statements: int) -> None:
    assert len(read(body).statements) == statements


def test_an_array_that_is_an_argument_may_be_null() -> None:
    scop = read("if (by) for (int i = 0; i < n; i++) x[i] = by[i];", "int n, float x[n], const float by[n]")
    assert scop.present == ("by",)


def test_what_is_not_used_may_be_null() -> None:
    with pytest.raises(Unsupported, match="`by` is compared with NULL and not used"):
        read("for (int i = 0; i < n; i++) if (by) x[i] = 1;")


def test_pointers_are_no_numbers() -> None:
    with pytest.raises(Unsupported, match="a pointer, used as a value"):
        read("for (int i = 0; i < n; i++) if (by == x) x[i] = by[i];")


def test_a_drop_in_looks_first() -> None:
    loop = "for (int i = 0; i < n; i++) x[i] = by ? by[i] : 0;"
    made = drop_in(f"{HEAD}void f(int n, float *x, const float *by) {{ {loop} }}", target="c")
    assert any("if (!(by && polyloom_f((long long)n, " in file for file in made.files.values())
