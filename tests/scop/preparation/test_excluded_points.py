"""Updates that leave points out: which become boxes under a condition, and C's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import MdHom, Nest
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop.preparation.excluded_points import with_excluded_points

HEAD = "void kernel(int n, int x[n + 2][n + 2], int y[n + 2][n + 2]) {"
EACH = "for (int i = 1; i <= n; i++) for (int j = 1; j <= n; j++)"
WINDOW = "for (int a = -1; a <= 1; a++) for (int b = -1; b <= 1; b++)"

BOXES = {
    "all but the middle": f"{EACH} {{ int t = 0; {WINDOW} if (a || b) t += x[i + a][j + b]; y[i][j] = t; }}",
    "into the element": f"{EACH} {WINDOW} if (a != 0 || b != 0) y[i][j] += x[i + a][j + b] * (2 * a + b);",
    "the least": f"{EACH} {{ int t = 9; {WINDOW} if (a || b) t = x[i + a][j + b] < t ? x[i + a][j + b] : t;"
    " y[i][j] = t; }",
    "off both diagonals": f"{EACH} if (i != j && i + j != n) y[0][i] += x[i][j];",
}
OTHERS = {
    "two pieces": f"{EACH} if (i != j) y[0][i] += x[i][j];",
    "half": f"{EACH} if (i < 3 || j < 4 || i > j + 7) y[0][i] += x[i][j];",
    "no update": f"{EACH} if (i != j && i + j != n) y[i][j] = x[i][j];",
    "elements that may not be there": f"{EACH} {WINDOW} if (a + b != 2 && a + b != -2 && (a || b))"
    " y[i][j] += x[i + a + b][j];",
}


@pytest.mark.parametrize("name", BOXES)
def test_updates_run_at_all_points_under_a_condition(name: str) -> None:
    before = read(f"{HEAD} {BOXES[name]} }}")
    after = with_excluded_points(before, strict=False)
    (changed,) = (s for s, old in zip(after.statements, before.statements, strict=True) if s is not old)
    assert changed.domain.coalesce().n_basic_set() == 1
    assert changed.condition is not None
    leaves = leaves_in(transformed(f"{HEAD} {BOXES[name]} }}").body)
    assert all(isinstance(leaf, MdHom | Nest) and leaf.extents for leaf in leaves)


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_as_they_are(name: str) -> None:
    before = read(f"{HEAD} {OTHERS[name]} }}")
    assert with_excluded_points(before, strict=False).statements == before.statements


@pytest.mark.parametrize("name", [*BOXES, *OTHERS])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_the_numbers_are_those_of_c(name: str, n: int) -> None:
    text = f"{HEAD} {(BOXES | OTHERS)[name]} }}"
    rng = np.random.default_rng(n)
    arrays = {array: rng.integers(-9, 9, (n + 2, n + 2), np.int32) for array in "xy"}
    expected = call(text, "kernel", {"n": n, **arrays})
    program = transformed(text)
    given = {b.name: arrays[b.name] for b in program.given}
    for array, values in {**arrays, **evaluate_host(program, {"n": n}, given)}.items():
        if array in expected:
            np.testing.assert_array_equal(values, expected[array], err_msg=array)
