"""Maps over quotients and remainders of iterators that reads divide."""

from __future__ import annotations

import numpy as np
import pytest

import polyloom
from c_host_programs import host_programs_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, Index, MdHom
from polyloom.ir.transform.records.digits_of_iterators import with_digits_of_iterators
from polyloom.ir.transform.specialise import specialise

TEXT = """
void f(int m, int n, float B[40][80], float w[120], float A[m][n])
{{
#pragma scop
  for (int y = 0; y < m; y++)
    for (int x = 0; x < n; x++)
      {body}
#pragma endscop
}}
"""
SPLIT = {
    "nearest": (8, 64, "A[y][x] = B[y / 2][x / 2];"),
    "linear": (6, 120, "A[y][x] = B[y][x / 3] * (3 - x % 3) + B[y][x / 3 + 1] * (x % 3);"),
    "along rows alone": (5, 64, "A[y][x] = B[y][x / 4] * w[y];"),
    "before and behind": (4, 64, "A[y][x] = B[y / 2 + 1][x / 2 + 3] - w[x];"),
    "also whole": (9, 64, "A[y][x] = B[y / 3][x / 2] * x + w[x] * y;"),
    "two arrays": (3, 64, "A[y][x] = B[y][x / 2] * w[x / 2 + 7];"),
}
WHOLE = {
    "rows of odd length": (4, 65, "A[y][x] = B[y][x / 2];"),
    "rows backwards": (4, 64, "A[y][n - 1 - x] = B[y][x / 2];"),
    "short rows": (4, 30, "A[y][x] = B[y][x / 2];"),
    "several divisors": (4, 72, "A[y][x] = B[y][x / 2] + w[x / 3];"),
    "many points of one": (4, 120, "A[y][x] = B[y][x / 5];"),
    "remainders alone": (4, 64, "A[y][x] = w[x] * (x % 2);"),
    "a sum": (64, 64, "A[y][0] += B[y / 2][x / 2];"),
    "columns alone": (64, 64, "A[y][x] = B[y / 2][x];"),
}


def given(name: str) -> tuple[HostProgram, dict[str, np.ndarray]]:
    """Return a program for its size, and arrays."""
    m, n, body = (SPLIT | WHOLE)[name]
    (program,) = host_programs_of(TEXT.format(body=body))
    rng = np.random.default_rng(1)
    shapes = {"B": (40, 80), "w": (120,), "A": (m, n)}
    return specialise(program, {"m": m, "n": n}), {
        k: rng.integers(-9, 9, s).astype(np.float32) for k, s in shapes.items()
    }


@pytest.mark.parametrize("name", SPLIT)
def test_reads_are_affine_and_results_the_same(name: str) -> None:
    program, arrays = given(name)
    found = with_digits_of_iterators(program)
    homs = [node for node in found.body if isinstance(node, MdHom)]
    assert all(isinstance(i, Index) for hom in homs for view in hom.inputs for i in view.indices)
    wanted = evaluate_host(program, {}, {b.name: arrays[b.name] for b in program.given})
    after = evaluate_host(found, {}, {b.name: arrays[b.name] for b in found.given})
    np.testing.assert_array_equal(after["A"], wanted["A"])


@pytest.mark.parametrize("name", WHOLE)
def test_others_stay(name: str) -> None:
    program, _ = given(name)
    assert with_digits_of_iterators(program) == program


@pytest.mark.parametrize("name", SPLIT)
def test_beside_c(name: str) -> None:
    m, n, _ = SPLIT[name]
    _, arrays = given(name)
    made = polyloom.load(TEXT.format(body=SPLIT[name][2]), device="native", threads=2, check=True)
    made(m=m, n=n, **arrays)
