"""Recurrences in tiles: which programs have them, and what they compute, element for element as C does.

Tiles are small here, so that a few points have several of them along either axis. Integers make every order
of a sum exact.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from forms import read, run

from compiled_c import call
from polyloom.ir.host import HostNode, HostProgram, MdHom, has_shared_loops
from polyloom.ir.transform.specialise import specialise
from polyloom.polyhedra.loops.tree import Branch, Loop, Number, Operation, leaves_in, nodes_in, sum_of
from polyloom.scop.schedule.blocks import tiles
from polyloom.scop.transform import host_program

ROWS_FROM_BELOW = """
void kernel(int n, unsigned T[n][n]) {
  for (int i = n - 1; i >= 0; i--)
    for (int j = i + 1; j < n; j++) {
      T[i][j] = T[i][j] >= T[i][j - 1] ? T[i][j] : T[i][j - 1];
      if (i < j - 1)
        T[i][j] = T[i][j] >= T[i + 1][j - 1] + 2 ? T[i][j] : T[i + 1][j - 1] + 2;
      for (int k = i + 1; k < j; k++)
        T[i][j] = T[i][j] >= T[i][k] + T[k + 1][j] ? T[i][j] : T[i][k] + T[k + 1][j];
    }
}"""

BY_LENGTH = """
void kernel(int n, int p[n + 1], int T[n + 1][n + 1]) {
  for (int d = 1; d < n; d++)
    for (int i = 1; i <= n - d; i++) {
      T[i][i + d] = 1000000;
      for (int k = i; k < i + d; k++)
        T[i][i + d] = T[i][k] + T[k + 1][i + d] + p[i - 1] * p[k] * p[i + d] < T[i][i + d]
                    ? T[i][k] + T[k + 1][i + d] + p[i - 1] * p[k] * p[i + d] : T[i][i + d];
    }
}"""

SUMS_BY_OFFSET = """
void kernel(int n, unsigned T[n][n]) {
  for (int d = 1; d < n; d++)
    for (int i = 0; i < n - d; i++)
      for (int k = 0; k < d; k++)
        T[i][i + d] += T[i][i + k] * T[i + k + 1][i + d];
}"""

COLUMNS = """
void kernel(int n, unsigned T[n][n]) {
  for (int j = n - 1; j >= 0; j--)
    for (int i = j + 1; i < n; i++)
      for (int k = j + 1; k < i; k++)
        T[i][j] ^= T[k][j] & T[i][k];
}"""

PROGRAMS = {
    "rows": ROWS_FROM_BELOW,
    "length": BY_LENGTH,
    "offset": SUMS_BY_OFFSET,
    "columns": COLUMNS,
}

HALF_A_SUM = """
void kernel(int n, unsigned T[n][n]) {
  for (int d = 1; d < n; d++)
    for (int i = 0; i < n - d; i++)
      for (int k = 0; k < d; k++)
        T[i][i + d] = T[i][i + d] / 2 + T[i][i + k] * T[i + k + 1][i + d];
}"""

NO_AXIS = """
void kernel(int n, unsigned T[n][n]) {
  for (int d = 1; d < n; d++)
    for (int i = 0; i < n - d; i++)
      for (int k = 0; k < d; k++)
        T[i][i + d] += T[n - 1 - i - d][n - 1 - i - d + k] * T[i + k + 1][i + d];
}"""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SIZE", 4)
    monkeypatch.setattr(tiles, "TERMS", 3)


def values(n: int) -> dict[str, object]:
    generator = np.random.default_rng(n)
    more = {"p": generator.integers(1, 9, n + 1).astype("int32")}
    return {"n": n, **more, "T": generator.integers(0, 9, (n, n)).astype("uint32")}


def given(name: str, n: int) -> dict[str, object]:
    found = values(n)
    if name != "length":
        return {k: v for k, v in found.items() if k != "p"}
    return {**found, "T": np.zeros((n + 1, n + 1), np.int32)}


@cache
def in_tiles(text: str) -> HostProgram:
    found = host_program(read(text)).program.in_rows
    assert found is not None
    assert has_shared_loops(found)
    return found


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", PROGRAMS)
def test_tiles_compute_what_c_computes(name: str) -> None:
    program = in_tiles(PROGRAMS[name])
    for n in (0, 1, 2, 3, 5, 17):
        expected = call(PROGRAMS[name], "kernel", given(name, n))
        for each in (program, replace(program, body=tuple(map(backwards, program.body)))):
            np.testing.assert_array_equal(run(each, given(name, n))["T"], expected["T"], f"n = {n}")


def backwards(node: HostNode) -> HostNode:
    """Return a node with the tiles of each wave in the opposite order."""
    match node:
        case Loop(iterator=iterator, start=start, condition=Operation("<", (name, end)), parallel=True):
            last = sum_of([(1, end), (-1, Number(1))])
            ends = Operation("<=", (start, name))
            return replace(node, iterator=iterator, start=last, condition=ends, step=Number(-1))
        case Loop(body=body):
            return replace(node, body=tuple(map(backwards, body)))
        case Branch(condition=condition, body=body, otherwise=otherwise):
            return Branch(condition, tuple(map(backwards, body)), tuple(map(backwards, otherwise)))
        case _:
            return node


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_first_is_a_product_of_boxes(name: str) -> None:
    """All its terms are asked for: no guard leaves any out."""
    homs = [node for node in leaves_in(in_tiles(PROGRAMS[name]).body) if isinstance(node, MdHom)]
    (product,) = (hom for hom in homs if len(hom.extents) == 3)
    assert product.guard is None
    assert product.written is None


@pytest.mark.parametrize("text", [HALF_A_SUM, NO_AXIS])
def test_other_recurrences_have_no_tiles(text: str) -> None:
    """The terms of the one do not change places; the other reads what the axes do not order."""
    found = host_program(read(text)).program.in_rows
    assert found is None or not has_shared_loops(found)


@pytest.mark.slow
@pytest.mark.ci
def test_sizes_leave_tiles_that_run_at_once() -> None:
    known = specialise(in_tiles(SUMS_BY_OFFSET), {"n": 30})
    assert any(isinstance(node, Loop) and node.parallel for node in nodes_in(known.body))
