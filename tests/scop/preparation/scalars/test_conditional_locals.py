"""Locals of branches: which are set in any case, what becomes of the loops, and C's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Binary, BinaryOp, Compare, CompareOp, Constant, Read, Select
from polyloom.ir.host import MdHom, Nest
from polyloom.ir.transform.decided_choices import decided
from polyloom.ir.types import ElementType
from polyloom.ir.value_ranges import ValueRanges
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop.preparation.scalars.conditional_locals import with_locals_always_set

HEAD = "void kernel(int n, unsigned x[n], unsigned y[n], const unsigned w[n], unsigned r[2]) {"
EACH = "for (int i = 0; i < n; i++)"
FIRST = "i == 0"

SET = {
    "a difference": f"{EACH} if (w[i] > 3) {{ unsigned d = x[i] - w[i]; r[0] += d * d; }}",
    "a swap": f"{EACH} if (w[i] % 3) {{ unsigned t = x[i]; x[i] = y[i]; y[i] = t; }}",
    "declared outside": f"unsigned t; {EACH} if (x[i] > y[i]) {{ t = x[i]; x[i] = y[i]; y[i] = t; }}",
    "in a branch inside": f"{EACH} if (w[i] > 3) {{ unsigned d = x[i] - w[i]; if (d > 1) y[i] = d * d; }}",
    "a loop inside": f"{EACH} if (w[i]) {{ unsigned s = 1; for (int k = 0; k < n; k++) s += x[k] * w[i];"
    " y[i] = s; }",
    "at an element of data": f"{EACH} if (w[i] < n) {{ unsigned t = x[w[i]]; r[0] += t * t; }}",
    "in two branches": f"{EACH} {{ unsigned t; if (w[i] > 3) {{ t = x[i]; r[0] += t * t; }}"
    " if (w[i] % 3) { t = y[i] + 1; r[1] += t * t; } }",
    "of two conditions": f"{EACH} if (w[i] > 3 && x[i] > 2) {{ unsigned t = x[i] + 1; y[i] += t * t; }}",
}
OTHERS = {
    "used behind": f"{EACH} {{ unsigned t; if (i == 0 || w[i] > 3) t = x[i]; y[i] = t; }}",
    "used by the next one": f"unsigned t = 0; {EACH} {{ y[i] += t; if (w[i] > 3) t = x[i]; }}",
    "used under another": f"unsigned t = 0; {EACH} {{ if (w[i] > 3) t = x[i]; if (w[i] > 1) y[i] = t; }}",
    "asked again": f"unsigned t; {EACH} {{ if ({FIRST} || x[i] > 3) t = w[i]; x[i] += 1;"
    f" if ({FIRST} || x[i] > 3) y[i] = t; }}",
    "used under less": f"unsigned t; {EACH} {{ if (({FIRST} || w[i] > 3) && ({FIRST} || x[i] > 2)) t = x[i];"
    f" if ({FIRST} || w[i] > 3) y[i] = t; }}",
    "used by the next one of a loop inside": f"{EACH} {{ unsigned t; if (w[i] > 3) t = x[i];"
    " for (int k = 0; k < n; k++) { if (w[i] > 3) y[i] += t * x[k];"
    " if (w[k] > 1) { t = w[k]; y[k] ^= t; } } }",
    "in two branches and behind": f"unsigned t = 1; {EACH} {{ if (w[i] > 3) {{ t = x[i]; r[0] += t * t; }}"
    " if (w[i] % 3) { t = y[i] + 1; r[1] += t * t; } if (w[i] > 2) y[i] = t; }",
    "made of itself": f"unsigned t; {EACH} if ({FIRST} || w[i] > 3)"
    " { t = (i > 0 ? t : 1) * 3 + x[i]; y[i] = t; }",
}


@pytest.mark.parametrize("name", SET)
def test_locals_that_live_in_a_branch_are_set_in_any_case(name: str) -> None:
    scop = with_locals_always_set(read(f"{HEAD} {SET[name]} }}"))
    first = next(s for s in scop.statements if s.target.array in "dts")
    assert first.condition is None
    loops = transformed(f"{HEAD} {SET[name]} }}")
    assert all(isinstance(leaf, MdHom | Nest) and leaf.extents for leaf in leaves_in(loops.body))


@pytest.mark.parametrize("name", OTHERS)
def test_other_locals_keep_their_condition(name: str) -> None:
    scop = read(f"{HEAD} {OTHERS[name]} }}")
    assert with_locals_always_set(scop).statements == scop.statements


def test_swaps_through_one_local_are_independent_of_other_iterations() -> None:
    """The local lives in three branches, in each apart: a median of three is one md_hom."""
    swaps = "".join(f"if ({a} > {b}) {{ t = {a}; {a} = {b}; {b} = t; }}" for a, b in ("pq", "qs", "pq"))
    window = "unsigned p = x[i - 1], q = x[i], s = x[i + 1], t;"
    text = f"for (int i = 1; i < n - 1; i++) {{ {window} {swaps} y[i] = q; }}"
    loops = transformed(f"{HEAD} {text} }}")
    assert [type(leaf) for leaf in leaves_in(loops.body)] == [MdHom]
    given = {"x": np.array([5, 1, 4, 4, 9, 2], np.uint32), "y": np.zeros(6, np.uint32)}
    found = evaluate_host(loops, {"n": 6}, given)["y"]
    assert found.tolist() == [0, 4, 4, 4, 4, 0]


@pytest.mark.parametrize("name", [*SET, *OTHERS])
@pytest.mark.parametrize("n", [0, 1, 6, 33])
def test_the_numbers_are_those_of_c(name: str, n: int) -> None:
    text = f"{HEAD} {(SET | OTHERS)[name]} }}"
    rng = np.random.default_rng(n)
    sizes = {"x": n, "y": n, "w": n, "r": 2}
    arrays = {array: rng.integers(0, 9, size, np.uint32) for array, size in sizes.items()}
    expected = call(text, "kernel", {"n": n, **arrays})
    program = transformed(text)
    given = {b.name: arrays[b.name] for b in program.given}
    for array, values in {**arrays, **evaluate_host(program, {"n": n}, given)}.items():
        np.testing.assert_array_equal(values, expected[array])


def test_what_a_choice_has_decided_is_not_asked_again() -> None:
    a, b, c = (Read(k, ElementType.INT32) for k in range(3))
    p, q = Compare(CompareOp.GT, a, b), Compare(CompareOp.GT, b, c)
    inner = Select(p, a, b)
    sum_, both = Binary(BinaryOp.ADD, a, c), Binary(BinaryOp.AND, p, q)
    types = ValueRanges(())
    assert decided(Select(p, Binary(BinaryOp.ADD, inner, c), inner), {}, types) == Select(p, sum_, b)
    assert decided(Select(both, inner, inner), {}, types) == Select(both, a, inner)
    other = Select(q, inner, Constant(0, ElementType.INT32))
    assert decided(other, {}, types) == other
