"""Loops that data end go for vectors of points, and leave the same to the bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.lowering.asked import asked
from polyloom.mdh.lowering.nests.masked_loops import masked_loops
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import For, Function, Kind
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.verify import verify
from polyloom.scop.transform import host_program
from random_data_loops import data_loops

HEAD = "#include <math.h>\nvoid kernel(int n, int k[n], int r[n], double a[n], double b[n], float f[n])"

IN_VECTORS = {
    "Collatz": "int v = key + 1, s = 0; while (v != 1) { v = v % 2 ? 3 * v + 1 : v / 2; s++; } r[i] = s;",
    "roots": """double x = a[i] * a[i] + 1, y;
        do { y = x; x = 0.5 * (x + a[i] / x); } while (y - x > 1e-9);
        b[i] = x;""",
    "leaves early": "int s = 0; for (int j = 0; j < 40; j++) { s += j * k[i]; if (s > 90) break; } r[i] = s;",
    "loops in loops": """int s = 0, j = key;
        while (j > 0) { int m = j; while (m % 3) { m--; s += m; } j -= 2; if (s & 1) continue; s += 5; }
        r[i] = s;""",
    "an inner count that goes on": """int s = 0, m = 0, j = key;
        while (j > 0) { while (m < j * key % 17) { m++; s += m; } j--; }
        r[i] = s;""",
    "only some are stored": "float x = f[i] * f[i]; while (x < 3) { x = x * 2 + 0.5f; if (x > 2) f[i] = x; }",
    "two sides": """int s = key, c = 0;
        while (s > 0) { if (s & 1) c += s; else { c ^= s; s--; } s /= 2; }
        r[i] = c;""",
    "data choose before": "int s = r[key % n] & 255, c = 0; while (s > 1) { s /= 2; c++; } b[i] = c;",
    "divides behind it": "int x = key, c = 1; while (x > 2) { x -= 2; c += x; } r[i] = c * 99 / (key + x);",
    "loads in each iteration": "int s = 0, m = 9; while (m > key) { s += k[i] / 2 + m; m--; } r[i] = s;",
}
EXTREMES = {
    "the larger": "b[i] = a[i] > b[i] ? a[i] : b[i];",
    "of C": "f[i] = fmaxf(f[i] - 1, 0);",
}
AS_BEFORE = {
    "loads where data say so": "if (k[i] > 9) b[i] = a[i] < 0.5 ? a[i] : 0.5;",
    "minima of integers": "r[i] = k[i] < 5 ? k[i] : 5;",
    "columns": "b[i] = a[2 * (i / 2)] > 0.5 ? a[2 * (i / 2)] : 0.5;",
    "loads by what it counts": "int j = 0; while (j < n && k[j] < k[i]) j++; r[i] = j;",
    "asks at places that it counts": "int x = 0, c = 0; while (k[x % n] > c) { x++; c += 5; } r[i] = c;",
    "loads now and then": "int s = 0; while (s < 40) { if (s % 3 == key) s += r[i] & 7; s++; } b[i] = s;",
    "divides by what may be 0": "int x = 60, y = key; while (y) { int t = x % y; x = y; y = t; } r[i] = x;",
}
FORMS = IN_VECTORS | EXTREMES | AS_BEFORE


def text_of(form: str) -> str:
    """Return a program whose loops end whatever its data are."""
    return f"{HEAD} {{\nfor (int i = 0; i < n; i++) {{ int key = k[i] & 31; {FORMS[form]} }}\n}}\n"


def given(n: int) -> dict[str, Any]:
    """Return arrays for a size."""
    rng = np.random.default_rng(n)
    integers = {name: rng.integers(0, 30, n).astype(np.int32) for name in "kr"}
    return {**integers, "a": rng.random(n), "b": rng.random(n), "f": rng.random(n).astype(np.float32) * 4}


def in_vectors(function: Function) -> bool:
    return any(isinstance(s, For) and s.kind is Kind.VECTOR for s in walk(function.body))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_values(form: str) -> None:
    program = host_program(next(iter(read_c(Source("kernel.c", text_of(form)))))).program
    for n in (7, 16, 37):
        known = specialise(program, {"n": n})
        before = program_tree(known)
        after = masked_loops(before, 64)
        assert in_vectors(after) == (form not in AS_BEFORE)
        assert not verify(after, asked(known), 1_000_000).wrong
        wanted = evaluate(before, given(n), {"n": n})
        for name, found in evaluate(after, given(n), {"n": n}).items():
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name}, n = {n}")


def test_short_vectors_are_no_gain() -> None:
    program = host_program(next(iter(read_c(Source("kernel.c", text_of("roots")))))).program
    assert not in_vectors(masked_loops(program_tree(program), 16))
    assert in_vectors(masked_loops(program_tree(program), 32))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", FORMS)
def test_built_and_beside_the_program_as_it_stands(form: str) -> None:
    found = polyloom.load(text_of(form)).run(n=37, check=True)
    assert found.passed
    assert found.check is not None and "the C program" in found.check.by


@pytest.mark.slow
@pytest.mark.ci
def test_random_loops_are_in_vectors_often_enough(tmp_path: Path) -> None:
    """The random functions that CI compares with gcc's contain such loops."""
    masked = 0
    for seed in range(30):
        polyloom.drop_in(data_loops(seed), target="c").write(tmp_path / str(seed))
        loops = (tmp_path / str(seed) / "polyloom_loops.c").read_text()
        masked += re.search(r"while \(any_\w+\(", loops) is not None
    assert masked >= 3
