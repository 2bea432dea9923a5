"""Updates of elements that data choose, in neighbouring loops: one loop where their order does not matter."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.nodes import For, Kind
from polyloom.mdh.tree.rewrite import walk

HEAD = "void kernel(int n, int k, int x[n], int at[n], int s[k], int c[k], int u[n])"
ALL = "for (int i = 0; i < n; i++)"

JOINED = {
    "in one loop": f"{ALL} {{ s[at[i]] += x[i]; c[at[i]] += 1; }}",
    "into one array": f"{ALL} {{ s[at[i]] += x[i]; s[at[n - 1 - i]] -= u[i]; }}",
    "in two loops": f"{ALL} s[at[i]] += x[i]; for (int j = 0; j < n; j++) c[at[j]] += x[j] * j;",
}
APART = {
    "what the first one combines": f"{ALL} s[at[i]] += x[i]; {ALL} s[at[i]] += s[at[n - 1 - i]] % 3;",
    "at places that it gives": f"{ALL} s[at[i]] += x[i]; {ALL} s[s[at[i]] & 3] += 1;",
    "other lengths": f"{ALL} s[at[i]] += x[i]; for (int j = 1; j < n; j++) c[at[j]] += 1;",
    "data of the first": f"{ALL} s[at[i]] += x[i]; {ALL} c[at[i]] += s[0];",
    "places of the first": f"{ALL} s[at[i]] += 1; {ALL} c[s[at[i]] % k] += x[i];",
    "by two operators": f"{ALL} s[at[i]] += x[i]; {ALL} s[at[n - 1 - i]] *= 2;",
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


@pytest.mark.parametrize("fp", ["reassociate", "strict"])
def test_sums_of_floats_change_places_only_where_they_may(
    tmp_path: Path, fp: Literal["reassociate", "strict"]
) -> None:
    path = tmp_path / "charge.c"
    path.write_text(
        "void charge(int n, double q[n], int cell[n], double rho[8]) {\n"
        f"  {ALL} rho[cell[i]] += q[i];\n  {ALL} rho[cell[i] ^ 1] += 2 * q[i];\n}}\n"
    )
    made = polyloom.compile(path, device="native", threads=1, check=True, fp=fp)
    loops = [s for s in walk(made.tree({"n": 99}).body) if isinstance(s, For)]
    assert len(loops) == (2 if fp == "strict" else 1)
    rng = np.random.default_rng(1)
    made(n=99, q=rng.standard_normal(99), cell=rng.integers(0, 7, 99).astype(np.int32), rho=np.zeros(8))
