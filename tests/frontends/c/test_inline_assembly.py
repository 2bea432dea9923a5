"""Assembly in a text: what it writes is known, and loops beside it are read."""

from __future__ import annotations

import pytest

from polyloom import drop_in
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.c.read import read_c
from polyloom.frontends.c.syntax.inline_assembly import without_assembly

LOOP = "void f(int n, float *x) { for (int i = 0; i < n; i++) x[i] = x[i] * 2; }"
SAME = [
    ('{ asm volatile ("rdtsc" : "=a"(a) : : "cc"); }', "{ asm(&(a)); }"),
    ('extern int g(int) __asm__("other");', "extern int g(int) ;"),
    ('asm(".globl x");', ";"),
    ('{ register long s asm("rsp"); if (s) asm("nop"); }', "{ register long s ; if (s) asm(); }"),
    (
        '{ __asm__ goto ("x: %0" :: "m"(p[1]) :: done); done: asm(""); }',
        "{ __asm__(); done: asm(); }",
    ),
    ('char *s = "asm(1)";', 'char *s = "asm(1)";'),
    ('{ asm("a:b" : "=m"(p[(1)]), [o] "+r" (p[0]) : "r"(2)); }', "{ asm(&(p[(1)]), &(p[0])); }"),
    ("int asm_count; int g(void) { return asm_count; }", "int asm_count; int g(void) { return asm_count; }"),
]


@pytest.mark.parametrize(("text", "wanted"), SAME)
def test_assembly_is_a_call_or_nothing(text: str, wanted: str) -> None:
    found = without_assembly(text)
    assert "".join(found.split()) == "".join(wanted.split()) and len(found) == len(text)


def test_lines_stay_where_they_are() -> None:
    text = 'void g(int a) {\n  asm volatile(\n    "nop"\n    : "=r"(a)\n  );\n  a++;\n}'
    found = without_assembly(text)
    assert [len(line) for line in found.split("\n")] == [len(line) for line in text.split("\n")]
    assert "a++;" in found.split("\n")[5]


@pytest.mark.parametrize(
    "beside",
    [
        'static inline int top(int x) { int r; asm("bsrl %1, %0" : "=r"(r) : "r"(x)); return r; }',
        'extern int other(int) __asm__("renamed");',
        'register unsigned long stack __asm__("rsp");',
        '__asm__(".globl here");',
        "#include <sys/select.h>",
    ],
)
def test_loops_beside_assembly_are_taken(beside: str) -> None:
    made = drop_in(f"{beside}\n{LOOP}", target="c")
    assert list(made.document["functions"]) == ["int polyloom_f(long long n, void *x)"]


def test_loops_around_assembly_are_not() -> None:
    text = LOOP.replace("x[i] = x[i] * 2;", '{ asm volatile("" : : : "memory"); x[i] = 2; }')
    with pytest.raises(PolyloomError, match="`asm` is a function that Polyloom does not know"):
        read_c(Source("f.c", text))


def test_a_size_that_assembly_writes_is_not_what_it_was() -> None:
    """``n`` is 4 before, and another number in the loop."""
    text = 'void f(int *x) { int n = 4; asm("" : "+r"(n)); for (int i = 0; i < n; i++) x[i] = n; }'
    made = drop_in(text, target="c")
    assert list(made.document["functions"]) == ["int polyloom_f(long long n, void *x)"]
