"""Parallel loops inside of the sequential loops in them: where memory is gone through along rows then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.nodes import For, Function, Store
from polyloom.mdh.tree.rewrite import walk
from polyloom.polyhedra.loops.tree import names_in
from samples import one_in

HEAD = "void kernel(int n, int m, T A[n][m], T B[n][m], int C[n][n][m], T r[m])"

ALONG_ROWS = {
    "a scan down columns": "for (int i = 1; i < n; i++) for (int j = 0; j < m; j++) A[i][j] += A[i - 1][j];",
    "a greatest so far": """for (int j = 0; j < m; j++)
        for (int i = 1; i < n; i++) A[i][j] = A[i - 1][j] > A[i][j] ? A[i - 1][j] : A[i][j];""",
    "totals apart": """for (int i = 1; i < n; i++)
        for (int j = 0; j < m; j++) B[i][j] = B[i - 1][j] + A[i][j] * A[i][j];""",
    "the middle of three": """for (int i = 0; i < n; i++) for (int j = 1; j < n; j++)
        for (int k = 0; k < m; k++) C[i][j][k] += C[i][j - 1][k];""",
    "the first of three": """for (int i = 1; i < n; i++) for (int j = 0; j < n; j++)
        for (int k = 0; k < m; k++) C[i][j][k] += C[i - 1][j][k];""",
    "a running total": """for (int j = 0; j < m; j++) { r[j] = 0;
        for (int i = 0; i < n; i++) { r[j] += A[i][j]; B[i][j] = r[j]; } }""",
}
AS_THEY_ARE = {
    "a scan along rows": "for (int i = 0; i < n; i++) for (int j = 1; j < m; j++) A[i][j] += A[i][j - 1];",
    "every second": """for (int i = 1; i < n; i++)
        for (int j = 0; j < m / 2; j++) A[i][2 * j] += A[i - 1][2 * j];""",
}


def compiled(tmp_path: Path, body: str, kind: str, threads: int, **options: Any) -> Any:
    path = tmp_path / "columns.c"
    path.write_text(f"{HEAD} {{\n{body}\n}}\n")
    return polyloom.compile(
        path, device="native", threads=threads, check=True, defines={"T": kind}, **options
    )


def run(made: Any, kind: str, n: int, m: int) -> None:
    """Call it, which compares with the C program."""
    rng = np.random.default_rng(n)

    def whole(*shape: int, type: Any = np.int32 if kind == "int" else np.float32) -> Any:
        return rng.integers(-9, 9, shape).astype(type)

    made(n=n, m=m, A=whole(n, m), B=whole(n, m), C=whole(n, n, m, type=np.int32), r=whole(m))


def goes_along_rows(function: Function) -> bool:
    """Return whether in each innermost loop the last subscript of what is stored in an argument moves."""
    arrays = {p.name for p in function.parameters}
    loops = [s for s in walk(function.body) if isinstance(s, For)]
    innermost = [loop for loop in loops if not any(isinstance(s, For) for s in walk(loop.body))]
    stores = [
        (loop, s) for loop in innermost for s in walk(loop.body) if isinstance(s, Store) and s.array in arrays
    ]
    return bool(stores) and all(loop.iterator in names_in(s.subscripts[-1]) for loop, s in stores)


@pytest.mark.parametrize("form", one_in(2, ALONG_ROWS))
@pytest.mark.parametrize(("kind", "threads"), [("int", 1), ("float", 3)])
def test_memory_is_gone_through_along_rows(tmp_path: Path, form: str, kind: str, threads: int) -> None:
    made = compiled(tmp_path, ALONG_ROWS[form], kind, threads)
    assert goes_along_rows(made.tree({"n": 30, "m": 70}))
    for n, m in ((1, 1), (2, 17), (30, 70)):
        run(made, kind, n, m)


@pytest.mark.parametrize("form", AS_THEY_ARE)
def test_others_stay(tmp_path: Path, form: str) -> None:
    made = compiled(tmp_path, AS_THEY_ARE[form], "int", 1)
    tree = made.tree({"n": 30, "m": 70})
    assert not any(isinstance(s, For) and s.iterator.endswith("_block") for s in walk(tree.body))
    run(made, "int", 7, 20)


def test_blocks_are_shared_by_threads(tmp_path: Path) -> None:
    """Blocks end where the array does, and there are enough of them for all threads."""
    made = compiled(tmp_path, ALONG_ROWS["a scan down columns"], "int", 2)
    (loop,) = made.tree({"n": 30, "m": 1000}).body
    assert loop.step.value * 2 <= 1000
    for m in (999, 1000, 1001):
        run(made, "int", 5, m)
