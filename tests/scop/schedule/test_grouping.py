"""Statements in one node: sums beside what writes their terms, which needs no array of all of them then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.ir.host import Role

HEAD = "void kernel(int n, int k, float x[n], float y[n], int count[n], float s[n], float t[1])"

ESCAPE = """
for (int i = 0; i < n; i++) {
    float v = x[i];
    int steps = 0;
    for (int j = 0; j < k; j++) {
        float w = v * v;
        if (w < 9) { v = w - y[i]; steps = steps + 1; }
    }
    count[i] = steps;
}"""
SUM_OF_STEPS = """
for (int i = 0; i < n; i++) {
    float v = x[i], total = 0;
    for (int j = 0; j < k; j++) { float w = v / 2 + y[i]; v = w; total += w * w; }
    s[i] = total;
}"""
SUM_OF_ALL = """
t[0] = 0;
for (int i = 0; i < n; i++) {
    float v = x[i];
    for (int j = 0; j < k; j++) { float w = v / 2 + y[i]; v = w; t[0] += w; }
    s[i] = v;
}"""


def compiled(tmp_path: Path, body: str) -> Any:
    path = tmp_path / "kernel.c"
    path.write_text(f"{HEAD} {{\n{body}\n}}\n")
    return polyloom.compile(path, device="native", threads=2, check=True)


def dimensions(made: Any) -> int:
    """Return how many dimensions a local array has at most."""
    return max((len(b.shape) for b in made.program.buffers if b.role is Role.LOCAL), default=0)


@pytest.mark.parametrize("body", [ESCAPE, SUM_OF_STEPS, SUM_OF_ALL], ids=["escape", "steps", "all"])
def test_sums_are_beside_their_terms(tmp_path: Path, body: str) -> None:
    """But where points that run at once would add to one element."""
    made = compiled(tmp_path, body)
    assert dimensions(made) == (2 if body is SUM_OF_ALL else 0)
    for n, k in ((1, 0), (2, 1), (33, 20)):
        rng = np.random.default_rng(n)
        reals = {name: rng.uniform(-2, 2, n).astype(np.float32) for name in "xys"}
        made(n=n, k=k, **reals, count=np.zeros(n, np.int32), t=np.zeros(1, np.float32))


ROTATIONS = """void kernel(int n, float a[n][n]) {
for (int j = 0; j < n - 1; j++)
    for (int i = j + 1; i < n; i++) {
        float c = a[j][j] / 2, s = a[i][j] / 3;
        for (int k = j; k < n; k++) {
            float x = a[j][k];
            a[j][k] = c * x + s * a[i][k];
            a[i][k] = c * a[i][k] - s * x;
        }
    }
}"""


@pytest.mark.slow
@pytest.mark.ci
def test_users_are_inside_a_host_loop_that_is_in_another(tmp_path: Path) -> None:
    path = tmp_path / "kernel.c"
    path.write_text(ROTATIONS)
    made = polyloom.compile(path, device="native", threads=2, check=True)
    assert dimensions(made) == 1
    for n in (0, 1, 2, 9):
        made(n=n, a=np.random.default_rng(n).uniform(-1, 1, (n, n)).astype(np.float32))
