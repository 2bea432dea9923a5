"""What is found in small parts, one or more for each kind of C that is accepted, as sets and relations."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_parts
from polyloom.frontends.c.document import document

HEAD = """#define FOR(i, n) for (int i = 0; i < n; i++)
int g(int);
void h(int *, const int *, int);
struct s { int v; struct { float w[4]; } in[3]; };
"""

CASES = {
    "strided": (
        "void f(int n, int a[n]) {@ for (int i = 1; i < n; i += 4) a[i] = 0; @}",
        "[n] -> { S1[i] : (i - 1) mod 4 = 0 and 1 <= i < n }",
        "{ }",
        "[n] -> { S1[i] -> a[i] : (i - 1) mod 4 = 0 and 1 <= i < n }",
    ),
    "descending": (
        "void f(int n, int a[n]) {@ for (int i = n - 1; i > 2; i--) a[i] = a[i - 1]; @}",
        "[n] -> { S1[i] : 2 < i < n }",
        "[n] -> { S1[i] -> a[i - 1] : 2 < i < n }",
        "[n] -> { S1[i] -> a[i] : 2 < i < n }",
    ),
    "stepped in its condition": (
        "void f(int n, int a[n]) {@ int i; for (i = n - 2; i-- > 4;) a[i] = 0; a[0] = i;"
        " for (i = 2; n > ++i;) a[i] = 1; @}",
        "[n] -> { S1[i] : 4 <= i < n - 2; S2[]; S3[i] : 3 <= i < n }",
        "{ }",
        "[n] -> { S1[i] -> a[i] : 4 <= i < n - 2; S2[] -> a[0]; S3[i] -> a[i] : 3 <= i < n }",
    ),
    "ends early": (
        "void f(int n, int a[n]) {@ for (int i = 0; i % 7 < 4; i++) a[i] = 0; @}",
        "{ S1[i] : 0 <= i <= 3 }",
        "{ }",
        "{ S1[i] -> a[i] : 0 <= i <= 3 }",
    ),
    "triangle": (
        "void f(int n, int a[n][n]) {@ FOR(i, n) for (int j = i; j < n; j++) a[j][i] += 1; @}",
        "[n] -> { S1[i, j] : 0 <= i <= j < n }",
        "[n] -> { S1[i, j] -> a[j, i] : 0 <= i <= j < n }",
        "[n] -> { S1[i, j] -> a[j, i] : 0 <= i <= j < n }",
    ),
    "affine condition": (
        "void f(int n, int a[n]) {@ FOR(i, n) if (2 * i > n || i == 3) a[i] = 1; else a[i] = 2; @}",
        "[n] -> { S1[i] : 0 <= i < n and (2i > n or i = 3); S2[i] : 0 <= i < n and 2i <= n and i != 3 }",
        "{ }",
        "[n] -> { S1[i] -> a[i] : 0 <= i < n and (2i > n or i = 3); "
        "S2[i] -> a[i] : 0 <= i < n and 2i <= n and i != 3 }",
    ),
    "chosen subscript": (
        "void f(int n, int a[n], int b[n]) {@ FOR(i, n) a[i] = b[i > 0 ? i - 1 : n - 1]; @}",
        "[n] -> { S1[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> b[i - 1] : 0 < i < n; S1[i] -> b[n - 1] : i = 0 and n > 0 }",
        "[n] -> { S1[i] -> a[i] : 0 <= i < n }",
    ),
    "chosen value": (
        "void f(int n, int a[n], int b[n]) {@ FOR(i, n) a[i] = i > 0 ? b[i - 1] : 5; @}",
        "[n] -> { S1[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> b[i - 1] : 0 < i < n }",
        "[n] -> { S1[i] -> a[i] : 0 <= i < n }",
    ),
    "truncating": (
        "void f(int a[9]) {@ for (int i = -4; i < 4; i++) a[i / 2 + 4] = i % 3; @}",
        "{ S1[i] : -4 <= i < 4 }",
        "{ }",
        "{ S1[i] -> a[2] : i = -4; S1[i] -> a[3] : -3 <= i <= -2; S1[i] -> a[4] : -1 <= i <= 1; "
        "S1[i] -> a[5] : 2 <= i <= 3 }",
    ),
    "break": (
        "void f(int n, int a[n]) {@ FOR(i, n) { if (i == 5) break; a[i] = 0; } @}",
        "[n] -> { S1[i] : 0 <= i < n and i < 5 }",
        "{ }",
        "[n] -> { S1[i] -> a[i] : 0 <= i < n and i < 5 }",
    ),
    "continue": (
        "void f(int n, int a[n]) {@ FOR(i, n) { if (i % 2) continue; a[i] = 0; } @}",
        "[n] -> { S1[i] : 0 <= i < n and i mod 2 = 0 }",
        "{ }",
        "[n] -> { S1[i] -> a[i] : 0 <= i < n and i mod 2 = 0 }",
    ),
    "known scalar": (
        "void f(int n, int a[n]) { int m;@ for (int i = 1; i < n; i++) { m = i - 1; a[m] = a[i]; } @}",
        "[n] -> { S1[i] : 0 < i < n; S2[i] : 0 < i < n }",
        "[n] -> { S2[i] -> a[i] : 0 < i < n }",
        "[n] -> { S1[i] -> m[] : 0 < i < n; S2[i] -> a[i - 1] : 0 < i < n }",
    ),
    "data condition": (
        "void f(int n, int a[n], int b[n]) {@ FOR(i, n) if (b[i] > 0 && i > 2) a[i] = 0; @}",
        "[n] -> { S1[i] : 2 < i < n }",
        "[n] -> { S1[i] -> b[i] : 2 < i < n }",
        "[n] -> { S1[i] -> a[i] : 2 < i < n }",
    ),
    "data subscript": (
        "void f(int n, int a[n], int b[n]) {@ FOR(i, n) a[b[i]]++; @}",
        "[n] -> { S1[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> b[i] : 0 <= i < n; S1[i] -> a[o] : 0 <= i < n and o >= 0 }",
        "[n] -> { S1[i] -> a[o] : 0 <= i < n and o >= 0 }",
    ),
    "kept condition": (
        "void f(int a[4]) {@ if (a[0] * a[1]) a[0] = 1; @}",
        "{ S1[]; S2[] }",
        "{ S1[] -> a[o] : 0 <= o <= 1; S2[] -> __pet_test_0[] }",
        "{ S1[] -> __pet_test_0[]; S2[] -> a[0] }",
    ),
    "structure": (
        "void f(struct s p[5]) {@ for (int i = 0; i < 3; i++) p[i].in[i].w[1] = p[i + 1].v; @}",
        "{ S1[i] : 0 <= i < 3 }",
        "{ S1[i] -> p_v[p[i + 1] -> v[]] : 0 <= i < 3 }",
        "{ S1[i] -> p_in_w[p_in[p[i] -> in[i]] -> w[1]] : 0 <= i < 3 }",
    ),
    "unknown call": (
        "void f(int n, int a[n][n], int b[n]) {@ FOR(i, n) h(a[i], &b[i], g(i)); @}",
        "[n] -> { S1[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> a[i, o] : 0 <= i < n; S1[i] -> b[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> a[i, o] : 0 <= i < n }",
    ),
    "called body": (
        "void k(int m, int *x) { for (int j = 1; j < m; j++) x[j] = x[0]; }\n"
        "void f(int n, int a[n][n]) {@ FOR(i, n) k(n, a[i]); @}",
        "[n] -> { S1[i] : 0 <= i < n }",
        "[n] -> { S1[i] -> a[i, 0] : 0 <= i < n and n > 1 }",
        "[n] -> { S1[i] -> a[i, o] : 0 <= i < n and 0 < o < n }",
    ),
    "inlined body": (
        "static inline void k(int *x) { x[0] = x[1]; }\n"
        "void f(int n, int a[n]) {@ for (int i = 0; i < n - 1; i++) k(&a[i]); @}",
        "[n] -> { S1[i] : 0 <= i < n - 1; S2[i] : 0 <= i < n - 1 }",
        "[n] -> { S2[i] -> a[i + 1] : 0 <= i < n - 1 }",
        "[n] -> { S1[i] -> __pet_arg_0[] : 0 <= i < n - 1; S2[i] -> a[i] : 0 <= i < n - 1 }",
    ),
    "linearised": (
        "void f(int n, int m, int *a) {@ FOR(i, n) FOR(j, m) a[i * m + j] = 0; @}",
        "[n, m] -> { S1[i, j] : 0 <= i < n and 0 <= j < m }",
        "{ }",
        "[n, m] -> { S1[i, j] -> a[i, j] : 0 <= i < n and 0 <= j < m }",
    ),
    "labels": (
        "void f(int a[3]) {@ A: a[0] = 1; a[1] = 2; B: a[2] = 3; @}",
        "{ A[]; S2[]; B[] }",
        "{ }",
        "{ A[] -> a[0]; S2[] -> a[1]; B[] -> a[2] }",
    ),
    "empty": ("void f(int n) {@ ; { } @}", "{ }", "{ }", "{ }"),
    "never": ("void f(int n, int a[n]) {@ if (0) a[0] = 1; @}", "{ }", "{ }", "{ }"),
}


@pytest.mark.parametrize("name", CASES)
def test_sets(name: str) -> None:
    text, domain, reads, writes = CASES[name]
    found = shown(HEAD + text.replace("@", "\n#pragma scop\n", 1).replace("@", "\n#pragma endscop\n", 1))
    assert isl.UnionSet(found["domain"]).is_equal(isl.UnionSet(domain)), found["domain"]
    assert isl.UnionMap(found["reads"]).is_equal(isl.UnionMap(reads)), found["reads"]
    assert isl.UnionMap(found["writes"]).is_equal(isl.UnionMap(writes)), found["writes"]


def shown(text: str) -> dict[str, str]:
    (part,) = read_parts(Source("f.c", text))
    return document(part)


def test_must_writes_are_those_that_surely_happen() -> None:
    found = shown(
        HEAD + "void f(int n, int a[n], int b[n], int c[n]) {\n#pragma scop\n"
        "FOR(i, n) { a[i] = 0; a[b[i]] = 1; if (b[i]) c[i] = 2; }\n#pragma endscop\n}"
    )
    expected = isl.UnionMap("[n] -> { S1[i] -> a[i] : 0 <= i < n }")
    assert isl.UnionMap(found["must_writes"]).is_equal(expected)


def test_schedule_is_the_order_of_the_text() -> None:
    found = shown(
        "void f(int n, int a[n]) {\n#pragma scop\n"
        "a[0] = 1; for (int i = n; i > 0; i--) { a[1] = 2; a[2] = 3; } a[3] = 4;\n#pragma endscop\n}"
    )
    expected = isl.UnionMap(
        "[n] -> { S1[] -> [0, 0, 0]; S2[i] -> [1, -i, 0] : 0 < i <= n; S3[i] -> [1, -i, 1] : 0 < i <= n; "
        "S4[] -> [2, 0, 0] }"
    )
    assert isl.UnionMap(found["schedule"]).is_equal(expected)
