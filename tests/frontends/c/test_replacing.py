"""What replaces a part must know: iterators that C reads afterwards, macros that `-D` could change."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.frontends.c.syntax.macros import OPENMP, conditions

PART = """
#pragma scop
for (i = 0; i < n; i++) x[i] = i;
#pragma endscop
"""


def escaping(before: str, after: str) -> tuple[str, ...]:
    text = f"int g(int); int f(int n, int m, int x[n]) {{ int i, j = 0; {before} {PART} {after} }}"
    (scop,) = read_c(Source("f.c", text))
    return scop.escaping


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "return i;"),
        ("", "return x[i - 1];"),
        ("", "if (m) i = 0; return i;"),
        ("", "i = i + 1;"),
        ("", "for (int i = 0; i < 3; i++) x[i]++; return i;"),
        ("", "{ int i = 3; x[i] = 0; } return i;"),
        ("", "while (i < m) { i++; }"),
        ("", "for (j = 0; j < m; j++) i = 5; return i;"),
        ("for (j = 0; j < m; j++) { if (j) g(i);", "}"),
        ("while (j++ < m) { g(i); ", "}"),
        ("{", "} return g(i);"),
        ("", "i += 1;"),
        ("", "switch (m) { case 0: i = 0; break; case 1: return i; }"),
        ("", "switch (i) { case 0: i = 0; }"),
        ("", "if (m) goto out; i = 0; out: return i;"),
        ("again: ;", "if (m--) goto back; return 0; back: j += i; goto again;"),
        ("again: j += i;", "if (m--) goto again;"),
        ("while (m--) {", "if (j) break; i = 0; } return i;"),
        ("while (m--) { if (j == 5) g(i);", "if (j) continue; i = 0; }"),
        ("", "do { if (m) break; i = 0; } while (m); return i;"),
        ("int *p = &i;", "return *p;"),
        ("", "m && (i = 0); return i;"),
        ("again: ;", "if (m) { i = 0; goto out; } if (j) goto again; out: return i;"),
    ],
)
def test_an_iterator_that_is_read_afterwards(before: str, after: str) -> None:
    assert escaping(before, after) == ("i",)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("", "return j;"),
        ("", "i = 0; return i;"),
        ("", "for (i = 0; i < m; i++) x[i] = 0;"),
        ("", "for (j = 0; j < m; j++) for (i = 0; i < m; i++) x[i] = 0;"),
        ("", "if (m) i = 0; else i = 1; return i;"),
        ("", "for (int i = 0; i < 3; i++) x[i]++;"),
        ("for (j = 0; j < m; j++) {", "}"),
        ("", "switch (m) { case 0: i = 0; break; case 1: return j; }"),
        ("if (m < 0) goto out;", "i = 0; j = i; out: return 0;"),
        ("", "while (j++ < m) { if (g(j)) break; } i = 0; return i;"),
        ("", "for (i = 0; i < m; i++) if (x[i]) goto out; out: return j;"),
        ("while (m--) {", "for (i = m; i--;) { if (x[i]) goto next; j += i; } next: ; }"),
        ("", "while (j++ < m) { if (g(j)) continue; if (m) break; i = 0; m = i; }"),
        ("", "if (m) return 0; i = 0; return i;"),
    ],
)
def test_an_iterator_that_nobody_reads(before: str, after: str) -> None:
    assert escaping(before, after) == ()


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        ("for (; k < n; k++) x[k] = 1;", ("k",)),
        ("for (int i = 0; i < n; i++, k++) x[k] = 1;", ("k",)),
        ("for (int i = 0; i < n; i++, k += 1) x[k] = 1;", ("k",)),
        ("for (counted = 0; counted < n; counted++) x[counted] = 1;", ("counted",)),
        ("for (kept = 0; kept < n; kept++) x[kept] = 1;", ("kept",)),
        ("count(n, x);", ("counted",)),
        ("for (int k = 0; k < n; k++) x[k] = 1;", ()),
    ],
)
def test_variables_that_heads_of_loops_move(loop: str, wanted: tuple[str, ...]) -> None:
    count = "for (counted = 0; counted < n; counted++) x[counted] = 1;"
    outside = f"int counted;\nstatic void count(int n, int *x) {{ {count} }}"
    part = f"#pragma scop\n{loop}\n#pragma endscop"
    text = f"{outside}\nint f(int n, int x[n]) {{ static int kept; int k = 0;\n{part}\nreturn k; }}"
    (scop,) = read_c(Source("f.c", text), "f")
    assert scop.escaping == wanted


def test_a_variable_of_the_file_is_seen_behind_a_function_that_is_taken_as_a_whole() -> None:
    (scop,) = read_c(Source("f.c", "int i; void f(int n, int x[n]) { for (i = 0; i < n; i++) x[i] = 0; }"))
    assert scop.escaping == ("i",)


def test_a_part_without_iterators_outside_leaves_nothing() -> None:
    (scop,) = read_c(Source("f.c", "void f(int n, int x[n]) { for (int i = 0; i < n; i++) x[i] = 0; }"))
    assert scop.escaping == ()


MACROS = """\
#ifndef N
#define N (2 * M)
#endif
#if !defined(M)
# define M 50
#endif
#ifndef T
#define T float
#endif
#ifndef GUARD_H
#define GUARD_H
#endif
#define FIXED 3
#ifndef UNUSED
#endif
#if defined(FAST) && LEVEL > 2 || T /* not a NAME */ > 10L
#elif 0
#if __has_feature("-Wextra-semi")
#endif
#endif
"""


@pytest.mark.parametrize("preprocessor", [None, "gcc -E"])
def test_macros_that_another_command_line_would_change(preprocessor: str | None) -> None:
    found = conditions(Source("f.c", MACROS), {"K": "7", "M": "60", "S": "short"}, (), preprocessor)
    (level,) = found
    *values, unused, fast, height, feature = level.split(" && ")
    assert {c.split()[0]: eval(c.split("==")[1]) for c in values} == {"(K)": 7, "(M)": 60, "(N)": 120}
    assert [unused, fast, height] == ["!defined(UNUSED)", "!defined(FAST)", "!defined(LEVEL)"]
    assert feature == "!defined(__has_feature)"


def test_macros_of_headers_are_known(tmp_path: Path) -> None:
    (tmp_path / "sizes.h").write_text("#define N 12\n")
    text = '#include "sizes.h"\n#ifndef N\n#define N 5\n#endif\n'
    assert conditions(Source("f.c", text), {}, [tmp_path]) == ("(N) == (12)",)


def test_macros_that_headers_ask_for_are_known(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "real.h").write_text('#include "../first.h"\n#ifdef DOUBLE\n#endif\n')
    (tmp_path / "first.h").write_text('#ifndef FIRST_H\n#define FIRST_H\n#include "inner/real.h"\n#endif\n')
    source = Source(str(tmp_path / "f.c"), '#include "first.h"\n#include "missing.h"\nint x;\n')
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "missing.h").write_text("#if WIDE\n#endif\n")
    (level,) = conditions(source, {}, [folder])
    assert set(level.split(" && ")) == {"!defined(DOUBLE)", "!defined(WIDE)"}


_ASKED = """\
#ifdef __cplusplus
#endif
#if defined(__CHAR_BIT__) || LEVEL > 1
#endif
#if __CHAR_BIT__ > 8 || \\
  defined(__FAST_MATH__) // __AVX__
#elif !defined _H_
#define _H_
#elif defined __GNUC__ && !__STRICT_ANSI__
#endif
int x = __CHAR_BIT__ + _OPENMP;
"""


def test_what_is_asked_of_a_compiler() -> None:
    given = {OPENMP: "201511"}
    assert conditions(Source("f.c", _ASKED), given) == (
        "!defined(LEVEL) && (__CHAR_BIT__ == 8) && !(__CHAR_BIT__ > 8 || defined(__FAST_MATH__))"
        " && (defined __GNUC__ && !__STRICT_ANSI__) && (_OPENMP == 201511)",
    )


def test_what_a_compiler_may_not_know_is_asked_inside_of_whether_it_does() -> None:
    asked = "#if defined(__has_{0})\n#if __has_{0}({1})\n#define YES\n#endif\n#endif\n"
    asking = (("feature", "safe_stack"), ("include", "<math.h>"), ("odd", "x"))
    text = "".join(asked.format(*names) for names in asking)
    assert conditions(Source("f.c", text), {}) == (
        "!defined(__has_feature) && defined(__has_include) && !defined(__has_odd)",
        "(__has_include(<math.h>))",
    )


def test_without_a_compiler_nothing_is_taken_to_be_defined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert conditions(Source("f.c", "#if __GNUC__ > 4\n#endif\n#ifdef linux\n#endif\n"), {}) == (
        "!defined(linux) && !(__GNUC__ > 4)",
    )
