"""Sums of unrolled loops: which become the loop before, and that they compute what C does."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Role
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in

ROLLED_UP = {
    "one statement": "for (int i = 0; i < n; i++) s[0] += x[3 * i] * y[3 * i] + x[3 * i + 1] * y[3 * i + 1]"
    " + x[3 * i + 2] * y[3 * i + 2];",
    "a statement each": "for (int i = 0; i < n; i++) { s[0] += x[2 * i] * 5; s[0] += x[2 * i + 1] * 5; }",
    "taken off, backwards": "for (int i = n - 1; i >= 0; i--) s[0] -= x[2 * i + 2], s[0] -= x[2 * i + 1];",
    "rows": "for (int j = 0; j < n; j++) for (int i = 0; i < n; i++)"
    " s[j] += a[j][2 * i + 1] * y[j] + a[j][2 * i] * y[j];",
    "steps": "for (int i = 0; i + 3 < 2 * n; i += 4) s[0] += x[i] + x[i + 1] + x[i + 2] + x[i + 3];",
}
KEPT = {
    "not in a row": "for (int i = 0; i < n; i++) s[0] += x[2 * i] + x[2 * i + 2];",
    "not alike": "for (int i = 0; i < n; i++) s[0] += x[2 * i] * 3 + x[2 * i + 1] * 5;",
    "half of them": "for (int i = 0; i < n; i++) s[0] += x[3 * i] + x[3 * i + 1];",
    "other distances": "for (int i = 0; i < n; i++) s[0] += x[2 * i] * y[i] + x[2 * i + 1] * y[i + 1];",
    "another factor": "for (int i = 0; i < n; i++) s[0] += x[2 * i] * y[0] + x[2 * i + 1] * y[1];",
    "crosswise": "for (int i = 0; i < n; i++) s[0] += x[2 * i] * y[2 * i + 1] + x[2 * i + 1] * y[2 * i];",
    "the same again": "for (int i = 0; i < n; i++) s[0] += x[i] + x[i];",
    "of a product": "for (int i = 0; i < n; i++) s[0] *= x[2 * i] + x[2 * i + 1];",
    "a map": "for (int i = 0; i < n; i++) s[i] = x[2 * i] + x[2 * i + 1];",
}
HEAD = "void f(int n, unsigned s[n + 1], unsigned x[3 * n + 9], unsigned y[3 * n + 9], unsigned a[n][2 * n])"


def program(body: str) -> HostProgram:
    (made,) = host_programs_of(f"{HEAD} {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    verify(made)
    return made


def reads(made: HostProgram) -> int:
    """Return how many elements a point reads at most, its result not counted."""
    homs = [node for node in leaves_in(made.body) if isinstance(node, MdHom)]
    return max(sum(view.buffer != "s" for view in hom.inputs) for hom in homs)


@pytest.mark.parametrize("body", ROLLED_UP.values(), ids=ROLLED_UP)
def test_rolled_up(body: str) -> None:
    assert reads(program(body)) == (2 if "*" in body and "y" in body else 1)


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_kept(body: str) -> None:
    (hom,) = (node for node in leaves_in(program(body).body) if isinstance(node, MdHom))
    assert len({view for view in hom.inputs if view.buffer == "x"}) == (1 if "x[i] + x[i]" in body else 2)


@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("body", [*ROLLED_UP.values(), *KEPT.values()], ids=[*ROLLED_UP, *KEPT])
def test_what_c_computes(body: str, n: int) -> None:
    special = specialise(program(body), {"n": n})
    random = np.random.default_rng(n)
    shapes = {"s": (n + 1,), "x": (3 * n + 9,), "y": (3 * n + 9,), "a": (n, 2 * n)}
    arrays = {name: random.integers(0, 2**32, shape, np.uint32) for name, shape in shapes.items()}
    expected = call(f"{HEAD} {{\n{body}\n}}", "f", {"n": n, **arrays})
    given = {b.name for b in special.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    found = evaluate_host(special, {}, {k: v for k, v in arrays.items() if k in given})
    assert found
    for name, values in found.items():
        np.testing.assert_array_equal(values, expected[name])
