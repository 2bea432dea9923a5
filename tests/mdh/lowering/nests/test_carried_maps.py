"""Maps at the points of a reduction: where that is right, and where they stay apart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.nodes import Code, Store
from polyloom.mdh.tree.rewrite import blocks, walk

HEAD = "void both(int n, double a[n], double b[n], double A[n][n], double r[n], double s[2])"
ALL = "for (int i = 0; i < n; i++)"
ROWS = f"{ALL} for (int j = 0; j < n; j++)"
JOINED = {
    "a sum of what is stored": f"{ALL} {{ a[i] = a[i] * 2 + b[i]; s[0] += a[i]; }}",
    "two sums": f"{ALL} {{ a[i] = a[i] * 2 + b[i]; s[0] += a[i]; s[1] += a[i] * b[i]; }}",
    "of a shared input": f"{ALL} {{ a[i] = b[i] * 3; s[0] += b[i]; }}",
    "the map behind": f"{ALL} {{ s[0] += a[i]; a[i] = b[i] * 3; }}",
    "the map behind two sums": f"{ALL} {{ s[0] += a[i]; s[1] += a[i] * b[i]; a[i] = b[i] * 3; }}",
    "sums of rows": f"{ROWS} {{ A[i][j] = A[i][j] - b[j]; r[i] += A[i][j]; }}",
    "sums of columns": f"{ROWS} {{ A[i][j] = A[i][j] - b[j]; r[j] += A[i][j]; }}",
}
APART = {
    "of other points": f"{ALL} a[i] = b[i] * 3; {ALL} s[0] += a[n - 1 - i] * b[i];",
    "of the point before": f"{ALL} a[i] = b[i] * 3; for (int i = 1; i < n; i++) s[0] += a[i - 1] * a[i];",
    "behind what reads other points": f"{ALL} s[0] += a[n - 1 - i] * b[i]; {ALL} a[i] = b[i] * 3;",
    "of a result": f"{ALL} s[0] += b[i]; {ALL} a[i] = b[i] * 3 + s[0];",
    "before a result that it reads": f"{ALL} a[i] = b[i] * 3 + s[0]; {ALL} s[0] += a[i];",
    "another length": f"{ALL} a[i] = b[i] * 3; for (int i = 0; i < n / 2; i++) s[0] += a[i];",
    "one element at all points": f"{ALL} a[i] = b[i] * 3; {ALL} s[0] += b[i] * a[n / 2];",
}


def joined(code: Code) -> Iterator[bool]:
    """Yield whether stores of a block carry out a map and a term at one point."""
    for block in (code, *(b for s in walk(code) for b in blocks(s))):
        done = [s for s in block if isinstance(s, Store) and s.instance is not None]
        yield any(s.array in "abA" for s in done) and any(s.array not in "abA" for s in done)


@pytest.mark.parametrize("form", [*JOINED, *APART])
def test_maps_and_reductions_of_one_domain(tmp_path: Path, form: str) -> None:
    path = tmp_path / "both.c"
    path.write_text(f"{HEAD} {{\n{(JOINED | APART)[form]}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1, check=True)
    assert any(joined(made.tree({"n": 200}).body)) == (form in JOINED)
    for n in (1, 200):
        rng = np.random.default_rng(n)
        shapes = {"a": (n,), "b": (n,), "A": (n, n), "r": (n,), "s": (2,)}
        made(n=n, **{name: rng.standard_normal(shape) for name, shape in shapes.items()})


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("sum_of", ["r[i]", "s[0]"])
def test_what_is_loaded_for_other_points_too_is_stored_before(tmp_path: Path, sum_of: str) -> None:
    """Rows that are turned in registers are loaded in blocks, before the terms."""
    path = tmp_path / "both.c"
    path.write_text(f"{HEAD} {{\n{ROWS} {{ A[j][i] = A[j][i] - b[j]; {sum_of} += A[j][i]; }}\n}}\n")
    n = 1000
    made = polyloom.compile(path, device="native", threads=2, check=True)
    rng = np.random.default_rng(n)
    shapes = {"a": (n,), "b": (n,), "A": (n, n), "r": (n,), "s": (2,)}
    made(n=n, **{name: rng.standard_normal(shape) for name, shape in shapes.items()})


def test_their_one_loop_has_the_schedule_of_the_reduction(tmp_path: Path) -> None:
    path = tmp_path / "both.c"
    path.write_text(f"{HEAD} {{\n{JOINED['a sum of what is stored']}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1)
    (kernel,) = polyloom.run(made, {"n": 200}).kernels()
    assert (kernel["name"], kernel["schedule"]) == ("S1, S2", "cost model")
