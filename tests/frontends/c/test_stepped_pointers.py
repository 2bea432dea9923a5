"""Pointers that loops move: what is computed, what a drop-in adds to them, what stays refused."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import PolyloomError, Source, Unsupported
from polyloom.frontends.c import read_c, read_computed
from polyloom.frontends.c.syntax.faults import as_written

WHOLE = {
    "copied": "for (int i = 0; i < n; i++) *x++ = *y++;",
    "in the head": "for (int i = 0; i < n / 2; i++, x += 2, y++) { x[1] = *y; *x = x[1] + 1; }",
    "rows": "for (int i = 0; i < n / 8; i++) { int *p = x + 8 * i; for (int j = 0; j < 8; j++) *p++ += j; }",
    "backwards": "int *p = x + n; for (int i = 0; i < n; i++) { *--p = i; } *p = 7;",
    "a value": "for (int i = 0; i < n - 1; i++) { int sum = *y++ * 2; sum += y[0]; *x++ = sum; }",
    "skipped": "for (int i = 0; i < n; i++, x++) { if (i % 3 == 1) continue; *x += 1; } ",
    "by data": "for (int i = 0; i < n; i++) { if (y[i] > 0) { *x = y[i]; } x++; }",
    "called": "for (int i = 0; i < n / 8; i++) add(x + 8 * i, y, 8);",
    "in steps": "for (int i = 0; i < n / 3; i++) { x[0] = *y; x += 3; y += 2; x -= 1u; }",
    "argument": "for (int i = 0; i < n - 1; i++) { add(x, x + 1, 1); ++x; }",
}
HELPER = "static void add(int *d, const int *s, int m) { for (int i = 0; i < m; i++) *d++ += *s++; }\n"


def program(body: str) -> str:
    return f"{HELPER}void f(int n, int *restrict x, int *restrict y) {{ {body} }}\n"


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_computed_is_what_the_c_compiler_computes(name: str) -> None:
    result = polyloom.load(program(WHOLE[name])).run(n=48, check=True)
    assert result.passed
    assert result.check is not None and "the C program" in result.check.by
    assert len(set(result.outputs["x"].tolist())) > 1


REFUSED = {
    "assigned": "int *p = x; for (int i = 0; i < n; i++) { *p++ = 1; p = x; }",
    "address": "int **q = &x; for (int i = 0; i < n; i++) { *x++ = 1; }",
    "twice": "for (int i = 0; i < n; i++) *x++ = *x;",
    "sometimes": "for (int i = 0; i < n; i++) x[0] = y[i] ? *y++ : 0;",
    "only in the head": "int i = 0; for (; i < n; x++) i++;",
    "skipped by data": "for (int i = 0; i < n; i++, x++) { if (y[i]) { if (i) continue; *x = 1; } *x = 2; }",
    "two of a name": "for (int i = 0; i < n; i++) { int *p = x; *p++ = 1; { int *p = y; *p++ = 2; } }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_refused(name: str) -> None:
    with pytest.raises(PolyloomError) as refusal:
        polyloom.load(program(REFUSED[name])).run(n=40)
    assert "polyloom_" not in refusal.value.diagnostics[0].message


PART = "#pragma scop\nfor (int i = 0; i < n; i++) *x++ = 1;\n#pragma endscop\n"


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [("*x = 3;", ["polyloom_steps_of_x_in_all", "x"]), ("return;", ["x"]), ("n = 0;", ["x"])],
)
def test_who_replaces_a_part_adds_to_pointers_that_are_read_behind_it(behind: str, wanted: list[str]) -> None:
    text = f"void f(int n, int *x) {{\n{PART}{behind} }}"
    (part,) = read_computed(Source("f.c", text), unmarked=True)
    assert part.scop.stepped == (("x", "polyloom_steps_of_x_in_all"),)
    assert sorted(a.name for a in part.scop.arrays) == wanted


def test_a_part_that_nobody_replaces_leaves_no_pointer_elsewhere() -> None:
    with pytest.raises(Unsupported):
        read_c(Source("f.c", f"void f(int n, int *x) {{\n{PART}*x = 3; }}"))
    assert read_c(Source("f.c", f"void f(int n, int *x) {{\n{PART} }}"))


def test_diagnostics_name_pointers_as_they_are_written() -> None:
    said = "`d[polyloom_steps_of_d++]`, `e[--polyloom_steps_of_e]`, `(a + polyloom_steps_of_a)[3]`"
    assert as_written(said) == "`*d++`, `*--e`, `a[3]`"
    assert as_written("`polyloom_steps_of_k` is read") == "`k` is read"
