"""GNU's functions of bits: counted, the place of the last one, bytes in the other order; beside gcc."""

from __future__ import annotations

import pytest

import polyloom
from polyloom.diagnostics import PolyloomError

BODY = """
void f(int n, const unsigned a[n], const unsigned long b[n], int c[n], int d[n], unsigned e[n],
       unsigned long g[n], int h[n]) {
  for (int i = 0; i < n; i++) {
    unsigned v = a[i] * 2654435761u + i;
    unsigned long w = b[i] * 0x9E3779B97F4A7C15ul + i;
    c[i] = __builtin_popcount(v) + 100 * __builtin_popcountl(w);
    d[i] = __builtin_ctz(v | 1u << 20) + 100 * __builtin_ctzll(w | 1ul << 50);
    e[i] = __builtin_bswap32(v);
    g[i] = __builtin_bswap64(w);
    h[i] = __builtin_parity(v) + 2 * __builtin_bswap16(v) + 4 * __builtin_parityll(w);
  }
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_they_are_those_of_the_compiler() -> None:
    found = polyloom.load(BODY).run(n=100, check=True)
    assert found.passed
    assert len(set(found.outputs["c"].tolist())) > 10


def test_what_is_called_may_be_no_name() -> None:
    """A number that was called ended in a fault: random texts found it."""
    with pytest.raises(PolyloomError):
        polyloom.load("void f(int n, int c[n]) { for (int i = 0; i < n; i++) c[i] = 1(i); }").run(n=4)


def test_a_function_of_the_file_with_such_a_name_is_its_own() -> None:
    text = "static int popcount(int x) { return x + 1; } void f(int n, int c[n]) { LOOP }"
    found = polyloom.load(text.replace("LOOP", "for (int i = 0; i < n; i++) c[i] = popcount(i);")).run(n=4)
    assert found.outputs["c"].tolist() == [1, 2, 3, 4]
