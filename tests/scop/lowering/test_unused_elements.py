"""Indices of elements that are not used everywhere: which go on as they are, and what is read."""

from __future__ import annotations

import numpy as np
import pytest

from c_host_programs import host_programs_of
from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import Index, MdHom
from polyloom.polyhedra.loops.tree import leaves_in

HEAD = "void f(int n, int p[n + 1][n + 1], int q[n][n])"
READS = {
    "a row above": ("i > 0 ? p[i - 1][j] : 7", (False, True)),
    "a column before": ("j > 0 ? p[i][j - 1] : 7", (True, False)),
    "a corner": ("i > 0 && j > 0 ? p[i - 1][j - 1] : 7", (False, False)),
    "no others where n is 2": ("i > 2 ? p[i - 3][n - 1 - j] : 7", (False, False)),
    "outside of what is used": ("j < 2 ? p[i][j] : 7", (True, False)),
    "both of one": ("i + j < n ? p[i + j][i] : 7", (False, True)),
    "a half": ("j % 2 == 0 ? p[i][j / 2] : 7", (True, False)),
    "never": ("i > n ? p[i][j] : 7", (False, False)),
}


@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("name", READS)
def test_indices_where_an_element_is_not_used(name: str, n: int) -> None:
    read, plain = READS[name]
    body = f"for (int i = 0; i < n; i++)\n    for (int j = 0; j < n; j++) q[i][j] = {read};"
    (program,) = host_programs_of(f"{HEAD} {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    (hom,) = (node for node in leaves_in(program.body) if isinstance(node, MdHom))
    views = [view for view in hom.inputs if view.buffer == "p"]
    assert [tuple(isinstance(i, Index) for i in view.indices) for view in views] in ([plain], [])
    arrays = {"p": np.arange((n + 1) ** 2, dtype=np.int32).reshape(n + 1, n + 1)}
    expected = call(f"{HEAD} {{\n{body}\n}}", "f", {"n": n, **arrays, "q": np.zeros((n, n), np.int32)})
    given = arrays if views else {}
    np.testing.assert_array_equal(evaluate_host(program, {"n": n}, given)["q"], expected["q"])
