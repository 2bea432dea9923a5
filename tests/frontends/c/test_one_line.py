"""Functions in one line, behind macros and comments: what stands in their braces is found, or nothing is."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c

HEAD = "#include <stdbool.h>\n#define REAL double\n#define FIVE 5\n"
BODY = " for (int i = 0; i < n; i++) { x[i] *= FIVE; f[i] = !f[i]; } "
SHOWN = {
    "macros in front": f"void g(int n, bool *f, REAL *x) {{{BODY}}}",
    "comment in front": f"/* {{ one */ void g(int n, bool *f, double *x) /* two */ {{{BODY}}} // }}",
    "attribute": f"void __attribute__((noinline)) g(int n, bool *f, REAL *x) /* ( */ {{{BODY}}}",
    "directive between": "void g(int n, bool *f, REAL *x)\n#ifndef FIVER\n"
    f"{{{BODY}}}\n#else\n{{ f[0] = 1; }}\n#endif",
    "brace below": f"void g(int n, bool *f, REAL *x)\n  {{{BODY}}}",
}
HIDDEN = {
    "two in a line": f"void h(bool *f) {{ f[0] = 1; }} void g(int n, bool *f, REAL *x) {{{BODY}}}",
    "block behind a macro": f"#define BEGIN {{\nvoid g(int n, bool *f, REAL *x) BEGIN {{{BODY}}} }}",
    "by a macro": f"#define BEGIN {{\nvoid g(int n, bool *f, REAL *x) BEGIN{BODY}}}",
}


@pytest.mark.parametrize("cpp", (None, "gcc -E"))
@pytest.mark.parametrize("name", SHOWN)
def test_a_body_is_what_stands_between_its_braces(name: str, cpp: str | None) -> None:
    source = Source("g.c", f"{HEAD}{SHOWN[name]}\n")
    (scop,) = read_c(source, "g", preprocessor=cpp)
    assert source.text.encode()[slice(*scop.extent)].decode() == BODY


@pytest.mark.parametrize("name", HIDDEN)
def test_braces_that_cannot_be_told_apart(name: str) -> None:
    (scop,) = read_c(Source("g.c", f"{HEAD}{HIDDEN[name]}\n"), "g")
    assert scop.extent == (0, 0)


def test_a_check_builds_the_line() -> None:
    result = polyloom.load(f"{HEAD}{SHOWN['macros in front']}\n").run(n=9, check=True)
    assert result.check is not None
    assert "the C program" in result.check.by
