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


INLINED = """\
static void layer(float *out, const float *inp, const float *bias, float *extra, int n) {
  for (int i = 0; i < n; i++) {
    float v = bias ? bias[i] : 0.5f;
    if (bias != NULL && bias[0] > 3) v += 1;
    if (extra) extra[i] += v;
    if (!extra || inp[i] > 2) out[i] = v + inp[i];
  }
}
static void both(float *out, const float *inp, const float *bias, int n) { layer(out, inp, bias, NULL, n); }
"""


def inlined(call: str) -> Scop:
    text = f"{HEAD}{INLINED}void f(int n, float *x, const float *by) {{ {call} }}\n"
    (scop,) = read_c(Source("f.c", text), "f")
    return scop


@pytest.mark.parametrize("null", ["NULL", "0", "(float *)0", "(void *)0"])
def test_an_argument_that_is_null(null: str) -> None:
    scop = inlined(f"layer(x, by, {null}, {null}, n);")
    assert {a.name for a in scop.arrays if a.shape} == {"x", "by"} and not scop.present
    assert "extra" not in str(scop.assumed)


def test_an_argument_that_is_null_one_function_further() -> None:
    assert {a.name for a in inlined("both(x, by, 0, n);").arrays if a.shape} == {"x", "by"}
    assert {a.name for a in inlined("both(x, x, by, n);").arrays if a.shape} == {"x", "by"}


def test_null_that_is_used_is_refused() -> None:
    with pytest.raises(Unsupported) as caught:
        inlined("layer(NULL, by, by, x, n);")
    (fault,) = caught.value.diagnostics
    assert (fault.code, fault.message) == ("c-pointer", "`out` is NULL here, and is used")
