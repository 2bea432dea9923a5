"""Rows of independent points that store under conditions, and what stands before them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.nodes import For, Kind, Let
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.verify import problems

HEAD = "void kernel(int n, double d[n][n], double x[n], int s[n][n])"
ROWS = "for (int i = 0; i < n; i++) for (int j = 0; j < n; j++)"

PATHS = f"for (int k = 0; k < n; k++) {ROWS} if (d[i][k] + x[j] < d[i][j]) s[i][j] = s[i][k];"
BEYOND = f"for (int k = 0; k < n; k++) {ROWS} if (x[j] > 9) s[i][j] = s[i][2 * k];"
IN_ONE = f"{ROWS} if (x[j] > 1) s[i][j] = j;"
ONE_ROW = "for (int j = 0; j < n; j++) if (x[j] > 1) d[0][j] = x[j];"
SMALLER = f"{ROWS} if (x[j] < d[i][j]) {{ d[i][j] = x[j]; s[i][j] = i; }}"
LARGER = f"{ROWS} if (x[j] > d[i][j]) {{ s[i][j] = i; d[i][j] = x[j]; }}"


def made(tmp_path: Path, body: str, threads: int) -> Any:
    path = tmp_path / "rows.c"
    path.write_text(f"{HEAD} {{\n{body}\n}}\n")
    return polyloom.compile(path, device="native", threads=threads, check=True)


@pytest.mark.parametrize(
    ("body", "threads", "named"),
    [
        (PATHS, 1, "s_kept"),
        (BEYOND, 1, None),
        (IN_ONE, 2, None),
        (ONE_ROW, 1, None),
        (SMALLER, 1, "asked"),
        (LARGER, 1, None),
    ],
    ids=["paths", "beyond", "in one", "one row", "smaller", "larger"],
)
def test_rows(tmp_path: Path, body: str, threads: int, named: str | None) -> None:
    """What may not exist is not loaded early, and only what was looked at is stored back."""
    compiled = made(tmp_path, body, threads)
    tree = compiled.tree({"n": 100})
    assert problems(tree) == ()
    rows = [s for s in walk(tree.body) if isinstance(s, For) and s.kind is Kind.INDEPENDENT]
    assert rows
    names = {re.sub("_[0-9]+$", "", s.name) for s in walk(tree.body) if isinstance(s, Let)}
    assert names == ({named} if named else set())
    for n in (1, 2, 100):
        rng = np.random.default_rng(n)
        reals = {name: rng.integers(0, 5, size).astype(float) for name, size in (("d", (n, n)), ("x", n))}
        compiled(n=n, **reals, s=rng.integers(0, 5, (n, n), np.int32))


def test_a_row_of_one_point_is_as_it_was(tmp_path: Path) -> None:
    """It may load what it has stored itself."""
    rows = ROWS.replace("j < n", "j < 1")
    body = f"{rows} if (x[i] > 2) {{ d[i][j] = x[i]; x[i] = d[i][0]; }}"
    compiled = made(tmp_path, body, 1)
    for n in (1, 100):
        rng = np.random.default_rng(n)
        compiled(
            n=n, d=rng.random((n, n)), x=rng.integers(0, 5, n).astype(float), s=np.zeros((n, n), np.int32)
        )
