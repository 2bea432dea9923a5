"""Statements under conditions that are kept: they run beside what keeps the condition, point by point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.ir.host import Nest, Role
from polyloom.polyhedra.loops.tree import leaves_in

PATHS = """
void kernel(int n, double d[n][n], int s[n][n]) {
    for (int k = 0; k < n; k++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (d[i][k] + d[k][j] < d[i][j]) { d[i][j] = d[i][k] + d[k][j]; s[i][j] = s[i][k]; }
}"""
CLIPPED = """
void kernel(int n, double d[n][n], int s[n][n]) {
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (int j = 0; j < n; j++) {
            if (d[i][j] < 0) { d[i][j] = 0; count++; }
            else if (d[i][j] > 4) { d[i][j] = 4; count++; }
        }
        s[i][0] = count;
    }
}"""
RELAXED = """
void kernel(int n, double d[n][n], int s[n][n]) {
    for (int r = 0; r < n; r++)
        for (int u = 0; u < n; u++)
            if (d[0][u] + d[u][r] < d[0][r]) { d[0][r] = d[0][u] + d[u][r]; s[0][r] = u; }
}"""
USED_BEHIND = """
void kernel(int n, double d[n][n], int s[n][n]) {
    for (int i = 0; i < n; i++)
        for (int j = 1; j < n; j++) {
            int c = d[i][j] > d[i][0];
            if (c) { d[i][j] = 1; s[i][j] = 2; }
            s[i][j] += c;
        }
}"""


def compiled(tmp_path: Path, text: str, threads: int) -> Any:
    path = tmp_path / "kernel.c"
    path.write_text(text)
    return polyloom.compile(path, device="native", threads=threads, check=True)


def dimensions(made: Any) -> int:
    """Return how many dimensions a local array has at most."""
    return max((len(b.shape) for b in made.program.buffers if b.role is Role.LOCAL), default=0)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("text", "parallel"),
    [(PATHS, 2), (CLIPPED, 1), (RELAXED, 0), (USED_BEHIND, 2)],
    ids=["paths", "clipped", "relaxed", "used behind"],
)
def test_conditions_need_no_arrays(tmp_path: Path, text: str, parallel: int) -> None:
    made = compiled(tmp_path, text, threads=2)
    assert dimensions(made) == 0
    nests = [node for node in leaves_in(made.program.body) if isinstance(node, Nest)]
    assert max(len(nest.extents) for nest in nests) == parallel
    for n in (1, 2, 3, 40):
        rng = np.random.default_rng(n)
        given = rng.integers(-3, 9, (n, n)).astype(np.float64)
        made(n=n, d=given, s=rng.integers(0, 9, (n, n), np.int32))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("threads", [1, 2])
def test_masked_vectors_store_where_asked(tmp_path: Path, threads: int) -> None:
    made = compiled(tmp_path, PATHS, threads)
    rng = np.random.default_rng(0)
    made(n=150, d=rng.integers(1, 99, (150, 150)).astype(np.float64), s=np.zeros((150, 150), np.int32))
