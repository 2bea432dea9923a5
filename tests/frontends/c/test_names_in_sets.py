"""Names of C in isl's text: a set is the same one whatever its iterators and parameters are called."""

from __future__ import annotations

import re

import islpy as isl
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.frontends.lair.lower import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.relations import access_relation
from polyloom.polyhedra.text.names import WORDS, isl_name
from polyloom.scop.model import Scop
from polyloom.scop.schedule.arrays import whole

LOOPS = {
    "not equal": "for (int i = 0; i != n; i++) a[i] = 1;",
    "down": "for (int i = 5; i; i--) a[i] = 1;",
    "again": "for (int i = 0; i % 7 < 5; i++) a[i] = 1;",
    "broken off": "for (int i = 0; i < n; i++) { if (i == 9) break; a[i] = 1; }",
    "tested first": "for (int i = n; i-- > 4;) a[i] = 1;",
    "unsigned": "for (unsigned i = n; i >= 3; i -= 3) a[i] = 1;",
}


def scop_of(loop: str, iterator: str, parameter: str) -> Scop:
    text = re.sub(r"\bn\b", parameter, re.sub(r"\bi\b", iterator, loop))
    (scop,) = read_c(Source("f.c", f"void f(unsigned {parameter}, float *a) {{ {text} }}"))
    return scop


@pytest.mark.parametrize("names", [("x", "n"), ("t", "x"), ("i0", "i1"), ("x0", "i0")], ids=" ".join)
@pytest.mark.parametrize("name", LOOPS)
def test_domains_hang_on_no_name(name: str, names: tuple[str, str]) -> None:
    wanted, found = scop_of(LOOPS[name], "i", "n"), scop_of(LOOPS[name], *names)
    domain = found.statements[0].domain
    at = domain.find_dim_by_name(isl.dim_type.param, names[1])
    domain = domain.set_dim_name(isl.dim_type.param, at, "n") if at >= 0 else domain
    assert domain.is_equal(wanted.statements[0].domain)
    assert not domain.is_empty()


def test_a_size_may_have_the_name_that_a_place_has() -> None:
    (scop,) = read_c(Source("f.c", "void f(int i0, float a[i0]) { for (int i = 0; i < i0; i++) a[i] = 1; }"))
    found = whole("a", scop.arrays[0].shape)
    assert found is not None
    assert found.is_equal(isl.Set("[i0] -> { a[i] : 0 <= i < i0 }"))


def test_words_of_isl_are_names_in_c_and_lair() -> None:
    """isl takes ``MAX`` for ``max``, and ``NaN`` for a number."""
    for name in ["NaN", *(word.upper() for word in sorted(WORDS))]:
        loop = f"for (int i = 0; i < {name}; i++) a[i] = 1;"
        (scop,) = read_c(Source("f.c", f"void f(int {name}, int *a) {{ {loop} }}"))
        assert scop.statements[0].domain.find_dim_by_name(isl.dim_type.param, isl_name(name)) >= 0
    assert not scop_of(LOOPS["not equal"], "Max", "n").statements[0].domain.is_empty()
    text = "lair f() : float32 x[4][3] -> float32 y[4] { all (Not, Min) in (4, 3) y[Not] += x[Not][Min] }"
    (statement,) = lower(parse(Source("f.lair", text))).statements
    assert access_relation(statement, statement.reads[0]).domain().dim(isl.dim_type.set) == 2
