"""Selections whose compared value is set last: they are reductions, with C's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import MdHom, Nest, Order
from polyloom.polyhedra.loops.tree import Loop, leaves_in
from polyloom.scop.preparation.chosen.decisions import with_decisions

HEAD = "void kernel(int n, const int a[n], const int b[n], int y[n], int r[4]) {"
START = "int best = r[0], at = -1, other = 7;"
END = "r[1] = best; r[2] = at; r[3] = other;"
EACH = "for (int i = 0; i < n; i++)"

FOUND = {
    "the place": f"{EACH} if (a[i] > best) {{ at = i; best = a[i]; }}",
    "the last place": f"{EACH} if (a[i] <= best) {{ at = i; best = a[i]; }}",
    "two more": f"{EACH} if (a[i] < best) {{ at = i; other = b[i] * 2; best = a[i]; }}",
    "of a sum": f"{EACH} if (best < a[i] + b[i]) {{ at = i; best = a[i] + b[i]; }}",
    "where more holds": f"{EACH} if (b[i] > 3 && a[i] > best) {{ at = i; best = a[i]; }}",
    "among others": f"{EACH} {{ y[i] = a[i] - b[i]; if (a[i] > best) {{ at = i; best = a[i]; }} }}",
}
PLACES = {
    "through its place": f"at = 0; {EACH} if (a[i] > a[at]) at = i;",
    "the last one": f"at = n - 1; {EACH} if (a[at] >= a[i]) at = i;",
    "of a difference": f"at = 0; {EACH} if (a[i] - b[i] < a[at] - b[at]) at = i;",
    "of a later element": "at = 0; for (int i = 0; i + 1 < n; i++) if (a[i + 1] > a[at]) at = i + 1;",
    "in each row": "for (int j = 0; j + 1 < n; j++) { int k = j;"
    " for (int i = j + 1; i < n; i++) if (a[i] < a[k]) k = i; y[j] = k; }",
    "two places": f"at = other = 0;{EACH} {{ if (a[i] > a[at]) at = i; if (b[i] < b[other]) other = i; }}",
}
"""What is compared is found through the place that is kept."""
OTHER_PLACES = {
    "of another element": f"at = 0; {EACH} if (a[i] > a[at]) at = n - 1 - i;",
    "of a changed array": f"at = 0; {EACH} {{ y[i] = i % 3; if (y[i] > y[at]) at = i; }}",
    "of the row before": "at = 0; for (int j = 0; j + 1 < n; j++) {"
    " for (int i = 0; i < 2; i++) if (a[j + i] + a[i] > a[j + at] + a[at]) at = i; y[j] = at; }",
    "where more may hold": f"at = 0; {EACH} if (b[i] > 3 && a[i] > a[at]) at = i;",
    "in a loop before, too": f"at = 0; {EACH} if (a[i] > a[at]) at = i; {EACH} if (b[i] > b[at]) at = i;",
}
OTHERS = {
    "what was best": f"{EACH} if (a[i] > best) {{ y[i] = best; best = a[i]; }}",
    "another value": f"{EACH} if (a[i] > best) {{ at = i; best = b[i]; }}",
    "another condition": f"{EACH} {{ if (a[i] > best) at = i; if (a[i] >= best) best = a[i]; }}",
    "by the other result": f"{EACH} if (a[i] > best) {{ other = at; at = i; best = a[i]; }}",
}


@pytest.mark.parametrize("name", [*FOUND, *PLACES])
def test_selections_that_set_what_is_compared_last_are_reductions(name: str) -> None:
    loops = transformed(f"{HEAD} {START} {(FOUND | PLACES)[name]} {END} }}")
    leaves = list(leaves_in(loops.body))
    orders = [o.order for leaf in leaves if isinstance(leaf, MdHom) for o in leaf.combine]
    assert Order.POINTWISE in orders
    assert Order.SERIAL not in orders
    assert not any(isinstance(s, Loop) for leaf in leaves if isinstance(leaf, Nest) for s in leaf.body)


@pytest.mark.parametrize("name", [*OTHERS, *OTHER_PLACES])
def test_other_branches_stay_as_they_are(name: str) -> None:
    scop = read(f"{HEAD} {START} {(OTHERS | OTHER_PLACES)[name]} {END} }}")
    assert with_decisions(scop) is scop


@pytest.mark.parametrize("name", [*FOUND, *OTHERS, *PLACES, *OTHER_PLACES])
@pytest.mark.parametrize("n", [0, 1, 6, 33])
def test_the_numbers_are_those_of_c(name: str, n: int) -> None:
    text = f"{HEAD} {START} {(FOUND | OTHERS | PLACES | OTHER_PLACES)[name]} {END} }}"
    rng = np.random.default_rng(n)
    arrays = {array: rng.integers(0, 9, n, np.int32) for array in "aby"} | {"r": np.full(4, 4, np.int32)}
    expected = call(text, "kernel", {"n": n, **arrays})
    program = transformed(text)
    given = {b.name: arrays[b.name] for b in program.given}
    for array, values in {**arrays, **evaluate_host(program, {"n": n}, given)}.items():
        np.testing.assert_array_equal(values, expected[array])
