"""Schedule trees: ours can be read again, users' are checked, and both compute what C does.

Integers without signs make every order of a sum exact, so a wrong instance, or one too many, is seen.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from forms import read

from compiled_c import compiled
from polyloom.diagnostics import PolyloomError, Source
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.programs import verify
from polyloom.polyhedra.loops.tree import Loop, leaves_in, nodes_in
from polyloom.report.forms_view import form
from polyloom.scop.transform import Transformation, host_program, schedule_tree

SWEEPS = """
void kernel(int n, int m, unsigned A[n][m], unsigned B[n][m], unsigned t[n]) {
#pragma scop
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) A[i][j] += 3 * B[i][j];
  for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++) t[i] += A[i][j];
  for (int i = 0; i < n - 1; i++)
    for (int j = 0; j < m; j++) B[i][j] = A[i + 1][j] + t[i];
#pragma endscop
}"""

FACTORED = """
void kernel(int n, int m, unsigned A[n][n], unsigned B[n][m], unsigned t[n]) {
#pragma scop
  for (int k = 0; k < n; k++) {
    for (int i = k + 1; i < n; i++) A[i][k] *= A[k][k] + 3;
    for (int i = k + 1; i < n; i++)
      for (int j = k + 1; j < n; j++) A[i][j] -= A[i][k] * A[k][j];
  }
#pragma endscop
}"""

SCANNED = """
void kernel(int n, int m, unsigned A[n][m], unsigned B[n][m], unsigned t[n]) {
#pragma scop
  unsigned s;
  for (int i = 0; i < n; i++) {
    s = 0;
    for (int j = 0; j < m; j++) {
      unsigned d = A[i][j] ^ i;
      if (d > 7) s += d; else s -= B[i][j];
      B[i][j] = s;
    }
    t[i] = s + B[i][0];
  }
  for (int i = 1; i < n; i++) t[i] += 5 * t[i - 1] + (i > 3 ? t[i - 3] : 0);
#pragma endscop
}"""

ROWS = "0 <= i < n and 0 <= j < m"
ALL = f"S1[i, j] : {ROWS}; S2[i, j] : {ROWS}; S3[i, j] : 0 <= i < n - 1 and 0 <= j < m"
DOMAIN = f"""domain: "[n, m] -> {{ {ALL} }}"
child:
"""
FILTERS = """    sequence:
    - filter: "{ S1[i, j] }"
    - filter: "{ S2[i, j] }"
    - filter: "{ S3[i, j] }"
"""
INNER = """    sequence:
    - filter: "{ S1[i, j] }"
      child: { schedule: "[{ S1[i, j] -> [j] }]" }
    - filter: "{ S2[i, j] }"
      child: { schedule: "[{ S2[i, j] -> [j] }]" }
    - filter: "{ S3[i, j] }"
      child: { schedule: "[{ S3[i, j] -> [j] }]" }
"""
BLOCKED = "S1[i, j] -> [floor(i / 4)]; S2[i, j] -> [floor(i / 4)]; S3[i, j] -> [floor((i + 1) / 4)]"
BLOCKS = f"""  schedule: "[{{ {BLOCKED} }}]"
  child:
"""
GUARDED = """  guard: "[n, m] -> { : n > 0 }"
  child:
"""
SHIFTED = """  schedule: "[{ S1[i, j] -> [i]; S2[i, j] -> [i]; S3[i, j] -> [i + 1] }]"
  child:
"""
COLUMNS = """  sequence:
  - filter: "{ S1[i, j] }"
    child: { schedule: "[{ S1[i, j] -> [j] }, { S1[i, j] -> [-i] }]" }
  - filter: "{ S2[i, j] }"
    child: { schedule: "[{ S2[i, j] -> [-j] }, { S2[i, j] -> [i] }]" }
  - filter: "{ S3[i, j] }"
    child: { schedule: "[{ S3[i, j] -> [i] }, { S3[i, j] -> [j] }]" }
"""
HALVES = """  sequence:
  - filter: "{ S1[i, j] : j >= 3 }"
    child: { schedule: "[{ S1[i, j] -> [i] }, { S1[i, j] -> [j] }]" }
  - filter: "{ S1[i, j] : j < 3 }"
    child: { schedule: "[{ S1[i, j] -> [i] }, { S1[i, j] -> [j] }]" }
  - filter: "{ S2[i, j]; S3[i, j] }"
    child:
      schedule: "[{ S2[i, j] -> [i]; S3[i, j] -> [i] }]"
      coincident: [ 1 ]
      child:
        sequence:
        - filter: "{ S2[i, j] }"
          child: { schedule: "[{ S2[i, j] -> [j] }]" }
        - filter: "{ S3[i, j] }"
          child: { schedule: "[{ S3[i, j] -> [j] }]" }
"""

GIVEN = {
    "in blocks": DOMAIN + BLOCKS + INNER,
    "shifted": DOMAIN + SHIFTED + INNER,
    "columns": DOMAIN + COLUMNS,
    "halves": DOMAIN + HALVES,
    "blocks of shifts": DOMAIN + BLOCKS + SHIFTED.replace("\n  ", "\n    ") + INNER,
}


def under(text: str, tree: str) -> Transformation:
    return host_program(read(text), schedule=Source("tree.txt", tree))


def check(text: str, program: HostProgram, sizes: list[tuple[int, int]], folder: Path) -> None:
    """Compare with gcc."""
    verify(program)
    run = compiled(text, "kernel", folder)
    for n, m in sizes:
        special = specialise(program, {p.name: {"n": n, "m": m}[p.name] for p in program.parameters})
        random = np.random.default_rng(n)
        first = (n, n) if "A[n][n]" in text else (n, m)
        shapes = {"A": first, "B": (n, m), "t": (n,)}
        arrays = {name: random.integers(0, 2**32, shape, np.uint32) for name, shape in shapes.items()}
        expected = run({"n": n, "m": m, **arrays})
        found = evaluate_host(special, {}, {b.name: arrays[b.name] for b in special.given})
        for array, values in {**arrays, **found}.items():
            assert np.array_equal(values, expected[array]), f"{array}, n = {n}, m = {m}"


@pytest.mark.parametrize("name", GIVEN)
def test_trees_of_users_compute_what_c_does(name: str, tmp_path: Path) -> None:
    program = under(SWEEPS, GIVEN[name]).program
    check(SWEEPS, program, [(n, 5) for n in (0, 1, 3, 4, 5, 9)], tmp_path)


SLOW = pytest.param(FACTORED, marks=[pytest.mark.slow, pytest.mark.ci])


@pytest.mark.parametrize("text", [SWEEPS, SLOW, SCANNED], ids=["sweeps", "factored", "scanned"])
def test_our_trees_can_be_read_again(text: str, tmp_path: Path) -> None:
    ours = host_program(read(text))
    again = under(text, schedule_tree(read(text), ours))
    assert form(again.program) == form(ours.program)
    check(text, again.program, [(1, 1), (6, 5)], tmp_path)


def test_blocks_are_host_loops_around_md_homs() -> None:
    body = under(SWEEPS, GIVEN["in blocks"]).program.body
    assert sum(isinstance(n, Loop) for n in nodes_in(body)) == 1
    assert [type(n) for n in leaves_in(body)] == [MdHom] * 3


def test_coincident_members_over_several_statements_are_one_parallel_node() -> None:
    leaves = list(leaves_in(under(SWEEPS, GIVEN["halves"]).program.body))
    (nest,) = (n for n in leaves if isinstance(n, Nest))
    assert len(nest.extents) == 1


@pytest.mark.parametrize(
    ("tree", "code", "what"),
    [
        ("domain: [", "schedule-syntax", "no schedule tree of isl"),
        (DOMAIN.replace("n - 1", "n - 2") + BLOCKS + INNER, "schedule-domain", "leaves out S3["),
        (DOMAIN.replace("n - 1", "n") + BLOCKS + INNER, "schedule-domain", "is not there: S3["),
        (DOMAIN + BLOCKS.replace("(i + 1)", "i") + INNER, "schedule-order", "the schedule runs S3["),
        (DOMAIN + BLOCKS + FILTERS, None, ""),
        (DOMAIN + SHIFTED.replace("S2[i, j] -> [i]", "S2[i, j] -> [-i]") + INNER, "schedule-order", "runs S"),
        (DOMAIN + GUARDED + BLOCKS + INNER, "schedule-node", "no node `guard` here"),
    ],
)
def test_wrong_trees_are_refused_with_an_example(tree: str, code: str | None, what: str) -> None:
    if code is None:
        under(SWEEPS, tree)
        return
    with pytest.raises(PolyloomError) as caught:
        under(SWEEPS, tree)
    assert caught.value.diagnostics[0].code == code
    assert what in caught.value.diagnostics[0].message


def test_a_violated_dependence_is_named_with_two_instances() -> None:
    with pytest.raises(PolyloomError) as caught:
        under(SWEEPS, DOMAIN + BLOCKS.replace("(i + 1)", "i") + INNER)
    (found,) = caught.value.diagnostics
    assert found.message.startswith("the schedule runs S3[3, 0] not after S1[4, 0]")
    assert "S3[3, 0] reads the `A` that S1[4, 0] writes" in found.notes[0]
