"""``while`` loops that count, and counters that a part begins with."""

from __future__ import annotations

import re

import islpy as isl
import pytest

import polyloom
from polyloom import drop_in
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_computed

WHOLE = {
    "down": "while (n--) *x++ = *y++ * 2;",
    "tested": "while (n-- > 3) { *x += n; x++; }",
    "head": "for (; n; n--, x++) *x += n;",
    "up": "int i = 0; while (i < n) { x[i] += i; i++; } x[0] += i;",
    "inside": "int i = 0; x[7] = 9; while (i < n - 2) x[i++] = x[n - 1]; x[40] = 5;",
    "steps": "while (n >= 4) { x[0] = n; x[3] = y[2]; x += 4; n -= 4; } while (n) { *x++ = 7; n = n - 1; }",
    "nested": "int i = 0; while (i < n) { int j = i; while (j < n && j < i + 3) { x[j]++; ++j; } i += 2; }",
    "used behind": "int k = n; while (k > 5) { x[k - 1] += 1; --k; } x[k] = 4; return;",
    "choice": "if (m > 7) { while (n > 7) { x[n - 1] = n; n--; } } x[0] = 3;",
}


def program(body: str) -> str:
    return f"void f(int n, int m, int *restrict x, int *restrict y) {{ {body} }}\n"


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_computed_is_what_the_c_compiler_computes(name: str) -> None:
    result = polyloom.load(program(WHOLE[name])).run(n=41, m=9, check=True)
    assert result.passed
    assert len(set(result.outputs["x"].tolist())) > 1


REFUSED = {
    "skipped": "int i = 0; while (i < n) { if (y[i] > 3) { if (i) continue; x[i] = 2; } x[i] += 1; i++; }",
    "in the middle": "int i = 0; while (i < n) { if (y[i]) i++; x[i] = 1; }",
    "twice": "while (n--) { x[n] = 1; n--; }",
    "of data": "while (*x) *x++ = 1;",
    "address": "int *p = &n; while (n--) x[n] = 1;",
    "no end": "int i = 0; while (i < n) x[i] = 1;",
    "another in the body": "enum { k = 3 }; int i = 0; while (i < n) { enum { k = 1 }; x[i] = 1; i += k; }",
    "another variable": "int i = 0; while (i < n) { int i = 2; x[i] = 1; i++; }",
    "twice in the head": "for (; n > 0; n--, n--) x[n] = 1;",
    "more in the head": "for (; n > 0; n--, *y += 2) x[n] = 1;",
    "an enumerator of its name": "while (n--) { enum { n = 2 }; x[n] = 1; }",
    "moved bound": "int i = 0, s = 1; while (i < n) { x[i] = 1; s += 1; i += s; }",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_stays_refused(name: str) -> None:
    with pytest.raises(PolyloomError) as refusal:
        polyloom.load(program(REFUSED[name])).run(n=40, m=9)
    assert "polyloom_" not in refusal.value.diagnostics[0].message


KEPT = {
    "unsigned char k = 250; for (; n > 0; n--, k++) x[k] = n;": "n <= 6",
    "unsigned char k = 250; for (; n > 0 && k > 9; n--, k++) x[k] = n;": "n <= 5",
    "while (++c < n) x[8] = c;": "c != 127",
    "while (c > n) { x[8] += c; c -= 4; }": "c != -126 or n != -127",
}


@pytest.mark.parametrize("body", KEPT)
def test_counters_of_narrow_types_are_assumed_not_to_wrap(body: str) -> None:
    text = f"void f(int n, signed char c, int *restrict x) {{ {body} }}\n"
    (part,) = read_computed(Source("f.c", text), unmarked=True)
    assert part.scop.context.is_subset(isl.Set(f"[n, c] -> {{ : {KEPT[body]} }}"))


PART = "#pragma scop\nwhile (n-- > 0) *x++ = 1;\n#pragma endscop\n"


def test_a_counter_that_is_read_behind_the_part_is_left_to_c() -> None:
    (part,) = read_computed(Source("f.c", program(PART)), unmarked=True)
    assert "n" in [p.text for p in part.scop.parameters]
    assert part.scop.escaping == ()
    with pytest.raises(PolyloomError, match="the first value of `n` is not known"):
        read_computed(Source("f.c", program(PART + "*y = n;")), unmarked=True)


def test_loops_of_a_function_that_is_none_as_a_whole() -> None:
    body = "while (n--) *x++ = 1;\nprintf(n);\n"
    body += "int i = 0; while (i < 99) { y[i] = i; i++; }\ndo y++; while (*y);\n"
    files = drop_in("void printf(int);\n" + program(body), target="c").files
    (text,) = (text for name, text in files.items() if name.endswith(".c") and name != "polyloom_loops.c")
    assert text.count("if (!polyloom_") == 1, "of `n`, which is printed, C knows the value"


def test_functions_with_no_other_loops_beside_such_with_for_loops() -> None:
    others = "void g(int m, int *y) { for (int i = 0; i < m; i++) y[i] = i; }\n"
    files = drop_in(others + program("while (n--) *x++ = 1;"), target="c").files
    (text,) = (text for name, text in files.items() if name.endswith(".c") and name != "polyloom_loops.c")
    assert {"polyloom_f(", "polyloom_g("} <= {*re.findall(r"polyloom_\w+\(", text)}


def test_a_while_that_ends_a_do_is_no_loop_of_a_macro() -> None:
    text = "#define ZERO while (n--) x[n] = 0\nvoid touch(int);\n"
    text += program("touch(1);\nZERO; do { y++; } while (*y);\nwhile (m-- > 0) y[m + 64] = 1;")
    (part,) = read_computed(Source("f.c", text), unmarked=True)
    assert text[slice(*part.scop.extent)].startswith("while (m--")
