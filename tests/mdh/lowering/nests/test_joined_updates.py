"""Updates of elements that data choose, in neighbouring loops: one loop where they touch other arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.nodes import For, Kind
from polyloom.mdh.tree.rewrite import walk

HEAD = "void kernel(int n, int k, int x[n], int at[n], int s[k], int c[k], int u[n])"
ALL = "for (int i = 0; i < n; i++)"

JOINED = {
    "in one loop": f"{ALL} {{ s[at[i]] += x[i]; c[at[i]] += 1; }}",
    "in two loops": f"{ALL} s[at[i]] += x[i]; for (int j = 0; j < n; j++) c[at[j]] += x[j] * j;",
}
APART = {
    "other lengths": f"{ALL} s[at[i]] += x[i]; for (int j = 1; j < n; j++) c[at[j]] += 1;",
    "data of the first": f"{ALL} s[at[i]] += x[i]; {ALL} c[at[i]] += s[0];",
    "places of the first": f"{ALL} s[at[i]] += 1; {ALL} c[s[at[i]] % k] += x[i];",
    "one array": f"{ALL} s[at[i]] += x[i]; {ALL} s[at[n - 1 - i]] *= 2;",
}


@pytest.mark.parametrize("form", [*JOINED, *APART])
def test_updates_of_several_arrays(tmp_path: Path, form: str) -> None:
    path = tmp_path / "updates.c"
    path.write_text(f"{HEAD} {{\n{(JOINED | APART)[form]}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1, check=True)
    loops = [s for s in walk(made.tree({"n": 300, "k": 7}).body) if isinstance(s, For)]
    assert sum(s.kind is Kind.SEQUENTIAL for s in loops) == (1 if form in JOINED else 2)
    for n in (1, 300):
        rng = np.random.default_rng(n)
        given = {
            name: rng.integers(0, 7, size).astype(np.int32)
            for name, size in zip("xscu", (n, 7, 7, n), strict=True)
        }
        made(n=n, k=7, at=rng.integers(0, 7, n).astype(np.int32), **given)
