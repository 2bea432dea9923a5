"""What is an update and what is not; and that a loop over it is a reduction exactly where it may be."""

from __future__ import annotations

import pytest
from forms import read, transformed

from polyloom.report.forms_view import form
from polyloom.scop.dependence.reductions import update_of

UPDATES = {
    "s += e[i];": "+",
    "s = e[i] + s;": "+",
    "s = s - e[i];": "+",
    "s = e[i] + s - 2 * e[i];": "+",
    "s *= e[i];": "*",
    "s = s > e[i] ? s : e[i];": "greater or NaN",
    "s = s <= e[i] ? s : e[i];": "less or NaN",
    "s = e[i] < s ? e[i] : s;": "less",
    "if (e[i] > s) s = e[i];": "greater",
    "if (s >= e[i]) s = e[i];": "less",
    "if (!(s >= e[i])) s = e[i];": "greater or NaN",
    "s = fmax(s, e[i]);": "fmax",
    "if (e[i] > 0) s += e[i];": "+",
    "if (f[i] > 0 && e[i] < s) s = e[i];": "less",
    "if (f[i] > 0) if (e[i] > s) s = e[i];": "greater",
    "if (e[i] < s && e[i] > 0) s = e[i];": "less",
    "s = f[i] > 0 && f[i] < 2 && e[i] > s ? e[i] : s;": "greater",
}
NONE = (
    "s = s + s * e[i];",
    "s = 2 * s + e[i];",
    "s = e[i] - s;",
    "if (s > 3) s += e[i];",
    "s = s > e[i] ? e[i] + 1 : s;",
    "s = e[i];",
    "if (f[i] > 0 && !(s >= e[i])) s = e[i];",
    "if (e[i] < s && f[i] > 0) s = e[i];",
    "if (f[i] > s && e[i] > s) s = e[i];",
)


def text(body: str) -> str:
    head = "double kernel(int n, double e[n], double f[n]) {"
    lines = ["#include <math.h>", head, "double s = 1;", "#pragma scop"]
    return "\n".join([*lines, "for (int i = 0; i < n; i++) {", body, "}", "#pragma endscop", "return s; }"])


@pytest.mark.parametrize(("body", "operator"), UPDATES.items())
def test_an_update_is_recognised(body: str, operator: str) -> None:
    (statement,) = read(text(body)).statements
    found = update_of(statement)
    assert found is not None and found.combiner.name == operator
    assert form(transformed(text(body))) == f"({operator})"


@pytest.mark.parametrize("body", NONE)
def test_what_is_none_stays_sequential(body: str) -> None:
    assert "nest()" in form(transformed(text(body))) or body == "s = e[i];"


def test_a_narrow_type_wraps_in_the_wide_one() -> None:
    """``char c; c += x`` computes in int and converts back: a sum of chars, modulo 256."""
    program = "void kernel(int n, signed char e[n], signed char c[1]) {\n#pragma scop\n"
    program += "for (int i = 0; i < n; i++) c[0] += e[i];\n#pragma endscop\n}"
    assert form(transformed(program)) == "(+)"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("c[0] += u[i];", "(+)"),
        ("c[0] -= u[i];", "(+)"),
        ("c[0] *= u[i];", "(*)"),
        ("c[0] ^= u[i];", "(^)"),
        ("v[0] += c[i];", "(+)"),
        ("s[0] += u[i];", "(+)"),
        ("c[0] = (unsigned)c[0] > u[i] ? (unsigned)c[0] : u[i];", "nest()"),
        ("l[0] = (unsigned)l[0] + u[i];", "nest()"),
        ("c[0] /= u[i];", "nest()"),
        ("c[0] += u[i] * c[0];", "nest()"),
    ],
)
def test_sums_of_signed_and_unsigned_integers(body: str, expected: str) -> None:
    """``int c; c += u`` computes in unsigned and converts back; so do others whose last bits are the same."""
    arrays = "unsigned u[n], int c[n], unsigned v[1], short s[1], long l[1]"
    loop = f"#pragma scop\nfor (int i = 0; i < n; i++) {body}\n#pragma endscop\n"
    program = f"void kernel(int n, {arrays}) {{\n{loop}}}"
    assert form(transformed(program)) == expected


def test_an_int_that_adds_fractions_is_no_sum() -> None:
    program = "void kernel(int n, double e[n], int c[1]) {\n#pragma scop\n"
    program += "for (int i = 0; i < n; i++) c[0] += e[i];\n#pragma endscop\n}"
    assert form(transformed(program)) == "nest()"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for (int i = 0; i < n; i++) { s += x[i]; y[i] = s; }", "(ps(+)); (+)"),
        ("for (int i = 0; i < n; i++) { s += x[i]; s += y[i]; }", "(+); (+)"),
        ("for (int i = 0; i < n; i++) { s += x[i]; s *= y[i]; }", "nest()"),
        ("for (int i = 0; i < n; i++) { y[i] = s; s += x[i]; }", "nest()"),
        ("for (int i = 1; i < n; i++) y[i] = y[i - 1] + x[i];", "(ps(+))"),
        ("for (int i = n - 2; i >= 0; i--) y[i] = y[i + 1] + x[i];", "nest()"),
        ("for (int i = 0; i < n; i++) if (x[i] > s) { s = x[i]; t = i; }", "(argmax)"),
        ("for (int i = 0; i < n; i++) if (x[i] > s) { s = x[i]; t += i; }", "nest()"),
        ("for (int i = 0; i < n; i++) if (!y[i] && x[i] > s) { s = x[i]; t = i; }", "(argmax)"),
        ("for (int i = 0; i < n; i++) if (y[i] > t && x[i] > s) { s = x[i]; t = i; }", "nest()"),
    ],
)
def test_groups_of_statements(body: str, expected: str) -> None:
    """Sums that share a cell, scans, and selections; `max` inside `+` is left in order."""
    head = "void kernel(int n, long x[n], long y[n], long out[2]) {\nlong s = out[0], t = out[1];\n"
    head += "#pragma scop\n"
    assert form(transformed(f"{head}{body}\n#pragma endscop\nout[0] = s; out[1] = t; }}")) == expected


@pytest.mark.parametrize(
    "kinds", [("unsigned char", "unsigned char"), ("unsigned short", "int"), ("short", "short")]
)
@pytest.mark.parametrize(
    "body", ["if (e[i] > s) s = e[i];", "s = e[i] > s ? e[i] : s;", "s = s < e[i] ? e[i] : s;"]
)
def test_maxima_of_small_integers_are_compared_as_wider_ones(kinds: tuple[str, str], body: str) -> None:
    elements, kind = kinds
    assert form(transformed(integers(elements, kind, body))) == "(max)"


@pytest.mark.parametrize(
    "kinds", [("unsigned char", "signed char"), ("short", "unsigned char"), ("int", "short")]
)
def test_maxima_that_are_cut_off_are_none(kinds: tuple[str, str]) -> None:
    """What is kept is not what was compared."""
    assert "nest()" in form(transformed(integers(*kinds, "if (e[i] > s) s = e[i];")))


def integers(elements: str, kind: str, body: str) -> str:
    head = f"{kind} kernel(int n, {elements} e[n]) {{ {kind} s = 1;"
    return f"{head}\n#pragma scop\nfor (int i = 0; i < n; i++) {{ {body} }}\n#pragma endscop\nreturn s; }}"
