"""Statements, pieces and nodes are told apart whatever they are called."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from forms import read, run, transformed

from compiled_c import call
from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop.transform import host_program

PATHS = """
void kernel(int n, int p[n][n], int y[n], int z[n])
{
#pragma scop
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
FIRST:  p[i][j] = p[i][k] + p[k][j] < p[i][j] ? p[i][k] + p[k][j] : p[i][j];
  for (int i = 1; i < n; i++)
SECOND: y[i] = y[i - 1] ^ z[i] << (y[i - 1] & 1);
  for (int i = 1; i < n; i++)
THIRD:  z[i] += p[i][0] + y[i];
#pragma endscop
}
"""
"""The first statement runs in blocks: pieces, and values that they keep. The second is a sequential node, the
third a map."""

NAMES = ("S", "S_1", "S_1_1", "S_2")
LABELS = [
    pytest.param(names, marks=[] if NAMES[-1] not in names else [pytest.mark.slow, pytest.mark.ci])
    for names in product(NAMES, repeat=3)
    if len(set(names)) == 3
]


def labelled(names: tuple[str, ...]) -> str:
    text = PATHS
    for place, name in zip(("FIRST", "SECOND", "THIRD"), names, strict=True):
        text = text.replace(place, name)
    return text


def nodes(program: HostProgram) -> Iterator[MdHom | Nest]:
    return (node for node in leaves_in(program.body) if isinstance(node, MdHom | Nest))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("names", LABELS, ids="-".join)
def test_pieces_and_statements_called_alike(names: tuple[str, ...]) -> None:
    program = transformed(labelled(names))
    verify(program)
    found = [node.name for node in nodes(program)]
    assert len(set(found)) == len(found) == 32


@pytest.mark.parametrize(
    "names", [("S", "S_1", "S_1_1"), ("S_1", "S", "S_1_1"), ("A", "B", "C")], ids="-".join
)
@pytest.mark.slow
@pytest.mark.ci
def test_results_and_verdicts_do_not_depend_on_labels(names: tuple[str, ...]) -> None:
    text = labelled(names)
    generator = np.random.default_rng(1)
    sizes = {"p": (6, 6), "y": (6,), "z": (6,)}
    arrays = {name: generator.integers(1, 9, shape).astype("int32") for name, shape in sizes.items()}
    found = host_program(read(text))
    results = run(found.program, {"n": 6, **arrays})
    for name, expected in call(text, "kernel", {"n": 6, **arrays}).items():
        np.testing.assert_array_equal(results[name], expected)
    plain = host_program(read(labelled(("A", "B", "C"))))
    assert [loop.parts for loop in found.loops] == [loop.parts for loop in plain.loops]


ROWS = """
void kernel(int n, int m, double x[n][m], double y[n][m], double z[n])
{
#pragma scop
  for (int i = 0; i < n; i++) {
A:  z[i] = 0;
    for (int j = 1; j < m; j++) {
B:    y[i][j] = y[i][j - 1] * z[i] + x[i][j];
C:    z[i] = z[i] * y[i][j] + 1;
    }
  }
A_B_C: x[0][0] = z[0];
#pragma endscop
}
"""


@pytest.mark.parametrize("label", ["A_B_C", "B_C", "A_B", "D"])
def test_a_node_of_several_statements_called_like_a_statement(label: str) -> None:
    program = transformed(ROWS.replace("A_B_C", label))
    verify(program)
    found = [node.name for node in nodes(program)]
    assert len(set(found)) == len(found)
