"""Points that an inequality leaves out: which md_homs compute them, and C's numbers in any case."""

from __future__ import annotations

import numpy as np
import pytest
from forms import transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import MdHom, Nest, Role
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop.transform import ReductionMode

FORCES = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (i == j) continue;
      double d = x[j] - x[i], w = x[j] / (d * d * d * d + d * d + x[i]);
      y[i] += d * w;
      z[i] -= w * A[i][j];
    }"""
EXTREME = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i != j) y[i] = y[i] < A[i][j] ? A[i][j] : y[i];"""
APART_BY_TWO = """
  for (int i = 0; i < n; i++) {
    y[i] = 3;
    for (int j = 0; j < n; j++)
      if (j != i + 2) y[i] += A[j][i];
  }"""
NOT_THE_OTHER_DIAGONAL = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i + j != 6) y[i] *= A[i][j];"""
FILLED = {
    "forces": FORCES,
    "extreme": EXTREME,
    "apart by two": APART_BY_TWO,
    "not the other diagonal": NOT_THE_OTHER_DIAGONAL,
}

DIVIDED = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i != j) y[i] += 12 / (i - j);"""
OUTSIDE = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (j != 0) y[i] += A[i][j - 1];"""
STORED = """
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i != j) A[i][j] = x[i] * x[j];"""
NEVER_GIVEN = """
  double w[n][n];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (i > j) w[i][j] = x[i] * A[j][i];
      if (j > i) w[i][j] = x[j] + A[j][i];
    }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      if (i != j) y[i] += w[j][i];"""
ASKED = {"divided": DIVIDED, "outside": OUTSIDE, "stored": STORED, "never given": NEVER_GIVEN}


def text_of(body: str) -> str:
    """Return a C function over a matrix and three vectors."""
    return f"void kernel(int n, double A[n][n], double x[n], double y[n], double z[n]) {{\n{body}\n}}"


def guarded(body: str) -> list[str]:
    """Return the names of the md_homs that leave points out."""
    nodes = [node for node in leaves_in(transformed(text_of(body)).body) if isinstance(node, MdHom)]
    return [node.name for node in nodes if node.guard is not None]


@pytest.mark.parametrize("name", FILLED)
def test_all_points_are_computed(name: str) -> None:
    assert guarded(FILLED[name]) == []


@pytest.mark.parametrize("name", [name for name in ASKED if name != "outside"])
def test_points_that_may_trap_or_that_others_see_are_left_out(name: str) -> None:
    assert guarded(ASKED[name])


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("name", [*FILLED, *ASKED])
def test_the_numbers_are_those_of_c(name: str, n: int) -> None:
    source = text_of({**FILLED, **ASKED}[name])
    numbers = np.random.default_rng(n)
    shapes = {"A": (n, n), "x": (n,), "y": (n,), "z": (n,)}
    arrays = {array: numbers.integers(1, 3, shape).astype(np.float64) for array, shape in shapes.items()}
    expected = call(source, "kernel", {"n": n, **arrays})
    program = transformed(source)
    given = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    for array, values in {**arrays, **evaluate_host(program, {"n": n}, given)}.items():
        np.testing.assert_allclose(values, expected[array], rtol=1e-12, err_msg=array)


def test_what_is_no_number_there_is_not_combined() -> None:
    program = transformed(text_of(EXTREME.replace("y[i] < A[i][j] ? A[i][j] : y[i]", "y[i] + A[i][j]")))
    matrix = np.ones((7, 7))
    np.fill_diagonal(matrix, np.nan)
    found = evaluate_host(program, {"n": 7}, {"A": matrix, "y": np.zeros(7)})
    np.testing.assert_array_equal(found["y"], np.full(7, 6.0))


def test_both_forms_of_a_statement_that_two_ranges_of_sizes_have_are_nodes_of_their_own() -> None:
    """Without reductions it is an md_hom where rows end inside, and a nest where some are empty."""
    program = transformed(
        """
        void kernel(int n, int m, int a[40], int s[1]) {
          for (int i = 0; i <= m; i++) {
            s[0] = a[0];
            for (int j = 0; j <= n - i; j++) s[0] += s[0];
          }
        }""",
        ReductionMode.IGNORE,
    )
    names = [node.name for node in leaves_in(program.body) if isinstance(node, MdHom | Nest)]
    assert len(names) == len({*names}) == 2
