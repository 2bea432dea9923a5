"""Rows of a host loop that are updated under a condition on data: in pieces, parallel, and left out whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom

CLOSURE = """
void closure(int n, unsigned char r[n][n]) {
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      if (r[i][k])
        for (int j = 0; j < n; j++)
          r[i][j] |= r[k][j];
}
"""


@pytest.mark.slow
@pytest.mark.ci
def test_a_transitive_closure_is_that_of_c(tmp_path: Path) -> None:
    path = tmp_path / "closure.c"
    path.write_text(CLOSURE)
    made = polyloom.compile(path, device="native", check=True)
    rng = np.random.default_rng(0)
    for n in (1, 2, 9, 40):
        made(n=n, r=(rng.random((n, n)) < 1.5 / n).astype(np.uint8))


def test_rows_are_asked_once_and_are_in_parallel(tmp_path: Path) -> None:
    path = tmp_path / "closure.c"
    path.write_text(CLOSURE)
    polyloom.drop_in(path, target="c").write(tmp_path / "out")
    text = (tmp_path / "out" / "polyloom_loops.c").read_text()
    rows = [
        part for part in text.split("static void ") if "for (int64_t i = first" in part and "r[k][j]" in part
    ]
    assert len(rows) == 2
    for part in rows:
        assert part.index("if (condition_each[") < part.index("ivdep") < part.index("r[k][j]")
