"""Attributes of GNU: those that change a type are refused where it is used, all others mean nothing."""

from __future__ import annotations

import pytest

from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c
from polyloom.frontends.c.syntax.attributes import MARK, without_attributes

CHANGED = {
    "vector": "typedef float t __attribute__((vector_size(16)));",
    "vector, before": "typedef __attribute__((__vector_size__(16), aligned(4))) float t;",
    "vector, twice": "typedef float t __attribute__ ((vector_size (16)))\n  __attribute__((may_alias));",
    "anywhere": "typedef int t __attribute__((aligned(1)));",
    "anywhere, hexadecimal": "typedef int t __attribute__((aligned(0x1)));",
    "anywhere, by an expression": "typedef int t __attribute__((aligned(sizeof(char))));",
    "anywhere, before": "typedef __attribute__((__may_alias__, __aligned__ (4))) double t;",
    "mode": "typedef int t __attribute__((mode(DI)));",
    "packed": "typedef enum { A, B } __attribute__((packed)) t;",
    "packed, before": "enum __attribute__((packed)) e { A, B }; typedef enum e t;",
    "packed, behind": "enum e { A, B } __attribute__((__packed__)); typedef enum e t;",
}


@pytest.mark.parametrize("name", CHANGED)
def test_a_type_that_an_attribute_changes_is_refused(name: str) -> None:
    text = f"{CHANGED[name]}\nvoid f(int n, t *a) {{ for (int i = 0; i < n; i++) a[i] = a[i] + 1; }}\n"
    with pytest.raises(Unsupported) as caught:
        read_c(Source("f.c", text))
    assert {d.code for d in caught.value.diagnostics} == {"c-type"}


def test_a_variable_that_a_function_cleans_up_is_refused() -> None:
    text = "void g(int *p); void f(int a[9]) { int k __attribute__((cleanup(g))) = 1; a[0] = k; }"
    with pytest.raises(Unsupported, match="c-type"):
        read_c(Source("f.c", text))


@pytest.mark.parametrize("tag", ["", "tag"])
def test_a_structure_that_may_lie_anywhere_is_refused(tag: str) -> None:
    anywhere = "{ struct { int y; } a; int x; } __attribute__((unused)) t __attribute__((aligned(1)))"
    text = (
        f"typedef struct {tag} {anywhere};\nvoid f(int n, t *a) {{ for (int i = 0; i < n; i++) a[i].x = 1; }}"
    )
    with pytest.raises(Unsupported):
        read_c(Source("f.c", text))
    (scop,) = read_c(Source("f.c", text.replace("t __attribute__((aligned(1)))", "t")))
    assert {a.name for a in scop.arrays} == {"a_x"}


def test_others_mean_nothing() -> None:
    text = """
enum { A, B } __attribute__((deprecated)) k;
typedef enum __attribute__((deprecated, aligned(4))) { C, D } kind;
typedef struct u { int x; } __attribute__((aligned(4))) a_structure; __attribute__((aligned(2))) char given;
typedef struct __attribute__((__aligned__(sizeof(void *)))) { int x; } another_structure;
struct __attribute__((packed)) s { char c; double d; } __attribute__((aligned(8)));
static __attribute__((noinline, optimize("O1"))) int g(int x) { return x + 1; }
void __attribute__((hot)) f(int n, int a[n] __attribute__((unused)), struct s p[n])
  __attribute__((nonnull(2)));
void f(int n, int a[n], struct s p[n])
{
  int t __attribute__((aligned(32)));
  for (int i = 0; i < n; i++) { t = B; a[i] = g(t); p[i].d = 1; }
}
"""
    (scop,) = read_c(Source("f.c", text), "f")
    assert {a.name for a in scop.arrays if a.shape} == {"a", "p_d"}


def test_a_text_keeps_its_places() -> None:
    text = "int a __attribute__((unused)), b;\nint c __attribute__((mode\n(DI))) = 2; x __attribute\n"
    found = without_attributes(text)
    assert [len(line) for line in found.split("\n")] == [len(line) for line in text.split("\n")]
    assert f"int c [{MARK}] " in found and found.endswith("= 2; x __attribute\n")


@pytest.mark.parametrize(
    "declared",
    [
        "__attribute__((weak)) double g(double x) { return x + 1; }",
        "double g(double x) __attribute__((__weak__));\ndouble g(double x) { return x + 1; }",
        "#pragma weak g\ndouble g(double x) { return x + 1; }",
    ],
)
def test_a_function_in_whose_place_another_may_be_linked_is_none_that_is_known(declared: str) -> None:
    text = f"{declared}\nvoid f(int n, double a[n]) {{ for (int i = 0; i < n; i++) a[i] = g(a[i]); }}\n"
    with pytest.raises(Unsupported) as caught:
        read_c(Source("f.c", text), "f")
    assert caught.value.diagnostics[0].code == "c-call"
    known = text.replace("weak", "unused")
    assert len(read_c(Source("f.c", known), "f")) == 1
