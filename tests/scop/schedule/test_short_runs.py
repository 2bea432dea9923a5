"""A few instances in order at each point of a parallel loop stay inside it: no step is the host's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from forms import transformed

import polyloom
from polyloom.polyhedra.loops.tree import Loop, nodes_in

FACTORISATIONS = """#include <math.h>
void kernel(int m, int n, double a[m][SIDE][SIDE]) {
  for (int r = 0; r < m; r++)
    for (int j = 0; j < SIDE; j++) {
      a[r][j][j] = sqrt(fabs(a[r][j][j]) + 9);
      for (int i = j + 1; i < SIDE; i++) {
        a[r][i][j] = a[r][i][j] / a[r][j][j];
        for (int k = j + 1; k <= i; k++) a[r][i][k] -= a[r][i][j] * a[r][k][j];
      }
    }
}
"""


def text_of(side: str) -> str:
    return FACTORISATIONS.replace("SIDE", side)


@pytest.mark.parametrize(("side", "steps"), [("6", False), ("n", True)])
def test_the_host_steps_through_large_matrices_alone(side: str, steps: bool) -> None:
    program = transformed(text_of(side).replace(") {", ") {\n#pragma scop", 1)[:-2] + "#pragma endscop\n}\n")
    assert any(isinstance(node, Loop) and not node.parallel for node in nodes_in(program.body)) == steps


def test_the_numbers_are_those_of_c(tmp_path: Path) -> None:
    path = tmp_path / "small.c"
    path.write_text(text_of("6"))
    made = polyloom.compile(path, device="native", threads=2, check=True)
    for m in (0, 1, 33):
        made(m=m, n=1, a=np.random.default_rng(m).standard_normal((m, 6, 6)))
