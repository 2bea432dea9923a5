"""Functions that as a whole are no static control part: which loops of them are taken, and which are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from polyloom import load
from polyloom.diagnostics import PolyloomError, Source, Unsupported
from polyloom.frontends.c import read_computed
from polyloom.frontends.c.read import Part
from polyloom.frontends.c.syntax.statement_macros import Kind, statement_macros

LOOP = "for (int i = 0; i < n; i++) x[i] += 1;"
OTHER = "for (int i = 0; i < n; i++) y[i] = 2 * x[i];"
HEAD = """\
void stop(int);
#define EACH(i) for (int i = 0; i < n; i++)
#define BEGIN {
#define END }
#define SWAP(a, b) do { float swapped = a; a = b; b = swapped; } while (0)
#define TWO(a, b) a += 1; b = a
#define IF_POSITIVE(a) if ((a) > 0)
#define NESTED(a, b) TWO(a, b)
#define MANY(a) a = 1;
#undef MANY
#define MANY(a) a = 2; y[0] = 3
#define GUARDED(a, b) do if (a > 0) { b = 1; } while (0)
"""

FIRST = HEAD.count("\n") + 2
"""The line of the first statement."""


def parts(body: str, *, outside: str = "") -> Sequence[Part]:
    text = f"{HEAD}{outside}void f(int n, int m, float x[n], float y[n]) {{\n{body}\n}}\n"
    return read_computed(Source("f.c", text), unmarked=True)


def taken(body: str, **options: str) -> list[str]:
    """Return the text of each part."""
    found = parts(body, **options)
    content = [part.state.places.source.text.encode()[slice(*part.extent)] for part in found]
    return [text.decode() for text in content]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (f"stop(n); {LOOP} stop(m);", [LOOP]),
        (f"{LOOP} m = 3; {OTHER} stop(m);", [f"{LOOP} m = 3; {OTHER}"]),
        (f"{LOOP} stop(m); {OTHER}", [LOOP, OTHER]),
        (f"while (x[0] > 0) {{ {LOOP} stop(1); }}", [LOOP]),
        (f"while (x[0] > 0) {LOOP}", [LOOP]),
        (f"do {LOOP} while (x[0] > 0);", [LOOP]),
        (f"if (x[0] > 0) {LOOP} else stop(1);", [LOOP]),
        (f"if (x[0] > 0) stop(1); else {LOOP}", [LOOP]),
        (f"stop(m); /* for */ {LOOP} for (int i = 0; i < n; i++) stop(i);", [LOOP]),
        (f"switch (m) {{ case 1: {LOOP} break; default: {OTHER} stop(1); }}", [LOOP, OTHER]),
        (f"for (int k = 0; k < m; k++) {{ {LOOP} stop(k); }}", [LOOP]),
        (f"for (int k = 0; k < (int)x[0]; k++) {{ {LOOP} }}", [LOOP]),
        (f"stop(1);\n#pragma omp parallel for\n{LOOP}", [f"#pragma omp parallel for\n{LOOP}"]),
        (f"stop(1);\n#pragma omp parallel\n{{ {LOOP}\n#pragma omp for\n{OTHER} }}", [LOOP]),
        (f"stop(1);\n#pragma omp for\nfor (int k = 0; k < m; k++) {{ {LOOP} }}", [LOOP]),
        (f'stop(";}}for"[0]); /* for {{ */ {LOOP} // }}', [LOOP]),
        ("stop(1); for (int i = 0; i < n; i++) { x[i] = '}' /* } */; }", None),
        ("stop(1); for (int i = 0; i < n; i++) SWAP(x[i], y[i]);", None),
        ("stop(1); for (int i = 0; i < n; i++) { SWAP(x[i], y[i]); NESTED(x[i], y[i]); }", None),
        ("stop(1); for (int i = 0; i < n; i++) { IF_POSITIVE(x[i]) { y[i] = 1; } else x[i] = 4; }", None),
        ("stop(1); for (int i = 0; i < n; i++) {\n EACH(j) y[j] += 1;\n }", None),
        ("stop(1); for (int i = 0; i < n; i++) if (i > 3) x[i] = 1; else { x[i] = 2; }", None),
    ],
)
def test_loops_that_are_taken(body: str, wanted: list[str] | None) -> None:
    start = body.find("for (int i")
    end = max(body.rfind(";"), body.rfind("}")) + 1
    assert taken(body) == ([body[start:end]] if wanted is None else wanted)


@pytest.mark.parametrize(
    "loop",
    [
        "EACH(i) x[i] = 1;",
        "for (int i = 0; i < n; i++) BEGIN x[i] = 1; END",
        "for (int i = 0; i < n; i++) EACH(j) x[j] += y[i];",
        "for (int i = 0; i < n; i++) stop(i);",
        "for (int i = 0; i < 20; i++) x[i] = 1;",
        "for (int i = m; i < m + 5; i++) stop(i);",
        "int i; for (i = 0; i < n; i++) x[i] = 1; stop(i);",
        "for (int i = 0; i < n; i++) TWO(x[i], y[0]);",
        "for (int i = 0; i < n; i++) NESTED(x[i], y[0]);",
        "for (int i = 0; i < n; i++) MANY(x[i]);",
        "for (int i = 0; i < n; i++) IF_POSITIVE(x[i]) y[i] = 1; else y[i] = 2;",
        "for (int i = 0; i < n; i++) IF_POSITIVE(x[i]) { y[i] = 1; }",
        "for (int i = 0; i < n; i++) { BEGIN x[i] = 1; } END",
        "for (int i = 0; i < n; i++) GUARDED(x[i], y[i]);",
        "for (int i = 0; i < n; i++)\n#ifdef M\nx[i] = 1;\n#else\nx[i] = 2;\n#endif\n",
    ],
)
def test_loops_that_are_not(loop: str) -> None:
    assert taken(f"{loop}\nstop(m); {OTHER}") == [OTHER]
    with pytest.raises(PolyloomError):
        parts(f"stop(m); {loop}")


def test_what_is_one_part_stays_whole() -> None:
    (part,) = parts(f"{LOOP}\n{OTHER}")
    assert not part.region.marked and not part.remarks


SHARED = "static void shared(float *x) {\n#pragma omp atomic\n  x[0] += 1;\n}\n"


@pytest.mark.parametrize(
    "body",
    [
        f"#pragma omp for\n{LOOP}",
        f"#pragma omp for collapse(2)\nfor (int k = 0; k < m; k++) {LOOP}",
        f"#pragma omp single\n{LOOP}\n#pragma omp critical\n{LOOP}",
        "for (int i = 0; i < n; i++)\n#pragma omp atomic\n  x[0] += y[i];",
        f"#pragma omp parallel\n{{\n#pragma omp sections\n{{\n#pragma omp section\n{LOOP} }} }}",
        f"#pragma omp target teams distribute\n{LOOP}",
        "for (int i = 0; i < n; i++) shared(x);",
    ],
)
def test_what_threads_share_stays_as_it_is(body: str) -> None:
    """Each thread that comes to a part runs all of it."""
    found = parts(f"{body}\nif (x[0] > 0) {{ {OTHER} }}", outside=SHARED)
    assert [part.state.places.source.text.encode()[slice(*part.extent)].decode() for part in found] == [OTHER]
    (remark,) = found[0].scop.remarks
    assert "meant for several threads" in remark.message


def test_every_function_with_loops() -> None:
    outside = f"static float one(float a) {{ return a + 1; }}\nvoid g(int n, float x[n]) {{ {LOOP} }}\n"
    assert taken(f"stop(1); {OTHER}", outside=outside) == [f" {LOOP} ", OTHER]


def test_it_is_said_which_and_why() -> None:
    first, second = parts(f"{LOOP}\nstop(m);\n{OTHER}")
    (remark,) = first.scop.remarks
    assert not second.scop.remarks
    assert remark.code == "c-unmarked" and "`stop` is a function" in remark.message
    lines = f"{FIRST}, {FIRST + 2}"
    assert remark.notes == (f"taken by themselves are the loops in line {lines}; the rest stays as it is",)


def test_it_is_said_of_a_function_without_any() -> None:
    rows = "for (int i = 0; i < n; i++) for (int p = row[i]; p < row[i + 1]; p++) x[p] = 1;"
    outside = f"void g(int n, const int *row, float *x) {{ {rows} }}\n"
    (part,) = parts(LOOP, outside=outside)
    (remark,) = part.scop.remarks
    assert remark.code == "c-unmarked" and remark.notes == ("all of it stays as it is",)
    assert "`g`" in remark.message and "first value of the loop" in remark.message


def test_what_runs_a_whole_function_refuses_it() -> None:
    with pytest.raises(Unsupported, match="stop"):
        load(f"void stop(int);\nvoid f(int n, float x[n]) {{ {LOOP} stop(n); }}")


CALLER = """\
typedef struct {{ float re, im; }} number;
static void doubled(int n, number *x) {{ for (int i = 0; i < n; i++) x[i].re *= 2; }}
static int one(void) {{ return 1; }}
void caller(int n, float *x) {{ doubled(n, {argument}); for (int i = one(); i < n; i++) x[i] = 0; }}
int main(void) {{ float x[4]; for (int i = 0; i < 4; i++) x[i] = i; caller(2, x); return x[3] > 0; }}
"""


@pytest.mark.parametrize(
    ("argument", "wanted"),
    [("(number *)x", ["caller", "doubled"]), ("(number[9]){0}", ["caller", "doubled"])],
)
def test_what_is_called_is_a_part_where_the_caller_is_none(argument: str, wanted: list[str]) -> None:
    found = read_computed(Source("f.c", CALLER.format(argument=argument)), unmarked=True)
    assert [part.name for part in found] == wanted


def test_what_is_called_belongs_to_the_caller() -> None:
    text = CALLER.format(argument="(number *)0").replace("doubled(n, (number *)0);", "")
    found = read_computed(Source("f.c", text), unmarked=True)
    assert [part.name for part in found] == ["caller"]


def test_macros_that_hold_statements_come_from_headers_too(tmp_path: Path) -> None:
    (tmp_path / "two.h").write_text("#define TWO(a, b) a += 1; /* { */ \\\n  b = a\n")
    loop = "for (int i = 0; i < n; i++) TWO(x[i], y[0]);"
    text = f"#include <two.h>\nvoid s(int);\nvoid f(int n, float *x, float *y) {{ s(n); {loop} {OTHER} }}"
    (part,) = read_computed(Source("f.c", text), include=[tmp_path], unmarked=True)
    assert text[slice(*part.extent)] == OTHER
    text = text.replace("#include <two.h>\n", "")
    (part,) = read_computed(Source("f.c", text), defines={"TWO(a,b)": "a += 1; b = a"}, unmarked=True)
    assert text[slice(*part.extent)] == OTHER


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("(a) + (b)", None),
        ("a += b", None),
        ("do { a; b; } while (0)", Kind.STATEMENT),
        ("do { a; } while (0);", Kind.SEVERAL),
        ("((pair){a, b})", Kind.STATEMENT),
        ("({ int t = a; t; })", Kind.STATEMENT),
        ("{ a; }", Kind.SEVERAL),
        ("if (a)", Kind.SEVERAL),
        ("a; b", Kind.SEVERAL),
        ("{ a;", Kind.OPEN),
        ("} while (0)", Kind.OPEN),
        ("f(a", Kind.OPEN),
        ("\"{\" ';' a", None),
        ("do { OPENED } } while (0)", Kind.OPEN),
        ("do { TWICE } while (0)", Kind.STATEMENT),
        ("(TWICE)", Kind.SEVERAL),
        ("ONCE", Kind.STATEMENT),
        ("ITSELF", None),
    ],
)
def test_what_a_macro_holds(value: str, wanted: Kind | None) -> None:
    others = {"OPENED": "{", "TWICE": "a; b", "ONCE": "do { } while (0)", "ITSELF": "ITSELF + M"}
    found = statement_macros(["".join(f"#define {n} {v}\n" for n, v in others.items())], {"M(a)": value})
    assert found.get("M") == wanted
