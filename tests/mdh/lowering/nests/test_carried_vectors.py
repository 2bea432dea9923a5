"""Loops that read what they stored some steps before carry it in vectors, and give the same to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.nests.carried_vectors import carried_vectors
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Array, Function, Space
from polyloom.mdh.tree.rewrite import walk
from polyloom.scop.transform import host_program

HEAD = "void kernel(int n, double a[n], double b[n], float f[n], int k[n], double A[n][n])"


def behind(steps: int) -> str:
    """Return a loop that is as far behind."""
    return f"for (int i = {steps}; i < n; i++) a[i] = a[i - {steps}] * 0.5 + b[i];"


IN_VECTORS = {
    **{f"{steps} behind": behind(steps) for steps in (2, 3, 5, 7, 8, 13, 33)},
    "no linear function": "for (int i = 6; i < n; i++) a[i] = 1 / (2 + a[i - 6] * a[i - 6]) + b[i] * i;",
    "one ahead too": "for (int i = 5; i < n - 1; i++) a[i] = a[i - 5] - 0.5 * a[i + 1] + 0.25 * a[i];",
    "integers": "for (int i = 9; i < n; i++) k[i] = k[i - 9] * 3 + k[i] + i;",
    "two types": "for (int i = 11; i < n; i++) f[i] = f[i - 11] * 0.5f + (float)b[i];",
    "at other places": "for (int i = 5; i < n / 2; i++) a[i] = a[i - 5] * b[n - 1 - i] + b[2 * i];",
    "in each row": "for (int t = 0; t < n; t++) for (int i = 7; i < n; i++) A[t][i] = A[t][i - 7] * b[i];",
}
AS_BEFORE = {
    "one behind": behind(1),
    "two distances": "for (int i = 7; i < n; i++) a[i] = a[i - 5] * 0.5 + a[i - 7] * 0.25;",
    "more than registers hold": behind(200),
    "at places that data choose": "for (int i = 5; i < n; i++) a[i] = a[i - 5] + a[k[i]];",
}
FORMS = IN_VECTORS | AS_BEFORE


def given(n: int) -> dict[str, Any]:
    """Return arrays for a size."""
    rng = np.random.default_rng(n)
    return {
        "a": rng.random(n),
        "b": rng.random(n),
        "f": rng.random(n).astype(np.float32),
        "k": rng.integers(0, n, n).astype(np.int32),
        "A": rng.random((n, n)),
    }


def carried(function: Function) -> int:
    """Return how many vectors and scalars loops carry."""
    arrays = (s for s in walk(function.body) if isinstance(s, Array) and s.space is Space.REGISTER)
    return sum(s.name.startswith("carried") for s in arrays)


@pytest.mark.parametrize("form", FORMS)
def test_the_same_values(form: str) -> None:
    text = f"{HEAD} {{\n{FORMS[form]}\n}}\n"
    program = host_program(next(iter(read_c(Source("kernel.c", text))))).program
    for n in (8, 31, 70):
        before = program_tree(specialise(program, {"n": n}))
        after = carried_vectors(before, 64)
        if n == 70:
            assert bool(carried(after)) == (form in IN_VECTORS)
        wanted = evaluate(before, given(n), {"n": n})
        for name, found in evaluate(after, given(n), {"n": n}).items():
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name}, n = {n}")


@pytest.mark.parametrize("form", FORMS)
def test_beside_c(tmp_path: Path, form: str) -> None:
    path = tmp_path / "kernel.c"
    path.write_text(f"{HEAD} {{\n{FORMS[form]}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1, check=True)
    for n in (9, 70, 500):
        made(n=n, **given(n))
