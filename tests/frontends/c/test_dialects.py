"""Programs that are not C99: GNU C and the C of 1978, beside functions that are."""

from __future__ import annotations

import shutil

import pytest

import polyloom
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c import read_computed

LOOP = "void f(int n, double *a) { for (int i = 0; i < n; i++) a[i] += 1; }\n"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="only a C compiler knows what it takes")


def parts(text: str) -> list[str]:
    return [part.name for part in read_computed(Source("f.c", text), unmarked=True)]


@needs_compiler
@pytest.mark.parametrize(
    "other",
    [
        "int g(int x) { return x ?: 3; }",
        "int g(int x) {\n#line 40\n  __typeof__(x) y = x; return y; }",
        "int g(int *p) { static void *t[] = {&&l, &&m}; goto *t[*p]; l: return 1; m: return '}'; }",
        'int g(int c) { switch (c) { case 1 ... 5: return 1; } return "}"[0]; }',
        "int g(int n) { int h(int x) { return x + n; } return h(3); } int k(int x) { return x ?: g(x); }",
    ],
)
def test_functions_in_another_dialect_stay_as_they_are(other: str) -> None:
    assert parts(f"{LOOP}{other}\n") == ["f"]
    assert parts(f"{other}\n{LOOP}") == ["f"]


@needs_compiler
def test_what_a_function_in_another_dialect_does_is_not_known() -> None:
    text = "static int max(int a, int b) { return a ?: b; }\n%svoid g(int n, int *a)"
    text += " { for (int i = 0; i < n; i++) a[i] = max(a[i], 3); }\n"
    assert parts(text % LOOP) == ["f"]


@pytest.mark.parametrize(
    "text",
    [
        f"{LOOP}int g(int x) {{ return x + ; }}\n",
        f"{LOOP}int g(int x) {{ return x ?: 3; }}\nint h(int x) {{ return x + ; }}\n",
        "int g(int x) { for (int i = 0; i < 99; i++) x += i ?: 3; return x; }\n",
        f"{LOOP}int x = 3 ?: 4;\n",
        f"{LOOP}int g(int x) {{ return x ?: 3;",
    ],
)
def test_what_no_compiler_builds_or_leaves_nothing_is_an_error(text: str) -> None:
    with pytest.raises(PolyloomError) as refusal:
        parts(text)
    assert refusal.value.diagnostics[0].code == "c-syntax"


@pytest.mark.parametrize(
    "text",
    [
        f"{LOOP}main(argc, argv) int argc; char **argv; {{ return 0; }}\n",
        f"{LOOP}main() {{ return 0; }}\n",
        "int f(a, n) double *a; int n; { int i; for (i = 0; i < n; i++) a[i] += 1; return 0; }\n",
        f"_Thread_local int t; static __thread double u;\n{LOOP}",
    ],
)
def test_old_forms(text: str) -> None:
    assert parts(text) == ["f"]


def test_arguments_that_are_declared_behind_the_head_have_their_types() -> None:
    text = "int f(n, a, b) float *a; int n, *b; { int i; for (i = 0; i < n; i++) a[i] += b[i]; return 0; }"
    (part,) = read_computed(Source("f.c", text), unmarked=True)
    assert sorted((a.name, a.type.value) for a in part.scop.arrays if a.shape) == [
        ("a", "float32"),
        ("b", "int32"),
    ]


def test_what_is_expected_is_the_condition_itself() -> None:
    text = """#define likely(x) __builtin_expect(!!(x), 1)
    void f(int n, int *a) { if (likely(n > 3)) for (int i = 0; i < n; i++) if (likely(a[i])) a[i] = 7; }"""
    result = polyloom.load(text).run(n=40, check=True)
    assert result.passed and 7 in result.outputs["a"]
