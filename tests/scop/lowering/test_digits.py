"""Sums that move along their target by more than one element: how large their boxes are, and C's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
import pytest
from forms import made_up, run, transformed

from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order
from polyloom.ir.integers import integer
from polyloom.polyhedra.loops.tree import Branch

FLAT = (
    "kernel(int n, int x[5][n][32], int y[32 * n])",
    ["t < 5", "i < n", "j < 32"],
    "y[32*i+j] += x[t][i][j]",
)
BLOCKS = "kernel(int n, int x[n][20], int y[8*n+12])", ["i < n", "k < 20"], "y[8*i+k] += x[i][k]"
OPEN = "kernel(int n, int w, int x[n][w], int y[4*n+w])", ["i < n", "k < w"], "y[4*i+k] += x[i][k]"
STRIDED = "kernel(int n, int x[n], int w[3], int y[2*n+1])", ["i < n", "k < 3"], "y[2*i+k] += x[i] * w[k]"
PLANES = (
    "kernel(int n, int x[n][n], int w[3][5], int y[2*n+1][3*n+2])",
    ["i < n", "j < n", "a < 3", "b < 5"],
    "y[2*i+a][3*j+b] += x[i][j] * w[a][b]",
)
TO_ONE = "kernel(int n, int x[n][n], int y[1])", ["i < n", "j < n"], "y[0] += x[i][j]"
BACKWARDS = (
    "kernel(int n, int x[n], int w[4], int y[2*n+4])",
    ["i < n", "k < 4"],
    "y[2*n-2*i+k] += x[i] * w[k]",
)
COPRIME = "kernel(int n, int x[n][9], int y[3*n+20])", ["i < n", "k < 9"], "y[3*i+2*k] += x[i][k]"
TAPS = "kernel(int n, int x[n], int w[3], int y[n+2])", ["k < 3", "i < n"], "y[i+k] += x[i] * w[k]"
TAPS_OF_PLANES = (
    "kernel(int n, int x[n][n], int w[3][5], int y[n+2][n+4])",
    ["a < 3", "b < 5", "i < n", "j < n"],
    "y[i+a][j+b] += x[i][j] * w[a][b]",
)
SHORT_OR_LONG = (
    "kernel(int n, int w, int x[n], int c[w], int y[n+w])",
    ["k < w", "i < n"],
    "y[i+k] += x[i] * c[k]",
)
DIAGONALS = "kernel(int n, int x[n][n], int y[2*n])", ["i < n", "j < n"], "y[i+j] += x[i][j]"
OTHER_DIAGONALS = "kernel(int n, int x[n][n], int y[2*n])", ["i < n", "j < n"], "y[n+i-j] += x[i][j]"
FEW_ROWS = "kernel(int n, int x[30][n], int y[n+30])", ["i < 30", "j < n"], "y[i+j] += x[i][j]"
THREE = (
    "kernel(int n, int x[n], int w[2][6], int y[4*n+12])",
    ["i < n", "a < 2", "b < 6"],
    "y[4*i+2*a+b] += x[i] * w[a][b]",
)
GREATEST = (
    "kernel(int n, int x[n][6], int y[4*n+4])",
    ["i < n", "k < 6"],
    "y[4*i+k] = x[i][k] > y[4*i+k] ? x[i][k] : y[4*i+k]",
)
CASES = {
    name.lower(): case for name, case in list(globals().items()) if name.isupper() and isinstance(case, tuple)
}


def text_of(case: tuple[str, list[str], str]) -> str:
    head, loops, statement = case
    nest = " ".join(f"for (int {bound[0]} = 0; {bound}; {bound[0]}++)" for bound in loops)
    return f"void {head} {{\n#pragma scop\n{nest} {statement};\n#pragma endscop\n}}\n"


def sizes_of(case: tuple[str, list[str], str], n: int) -> dict[str, int]:
    return {"n": n, "w": 11} if "int w," in case[0] else {"n": n}


def points_of(program: HostProgram, sizes: dict[str, int]) -> int:
    """Return how many points the boxes of all md_homs have."""
    return sum(
        prod(integer(extent, sizes) for extent in node.extents) for node in md_homs(program.body, sizes)
    )


def md_homs(body: Sequence[HostNode], sizes: dict[str, int]) -> Iterator[MdHom]:
    """Yield the md_homs that run for given sizes; there is nothing else."""
    for node in body:
        if isinstance(node, Branch):
            yield from md_homs(node.body if integer(node.condition, sizes) else node.otherwise, sizes)
        else:
            assert isinstance(node, MdHom)
            yield node


@pytest.mark.parametrize("name", CASES)
def test_boxes_grow_with_the_instances(name: str) -> None:
    """Of a box over ``(2 * i + k, i)`` all but a few points in each row would be left out."""
    case = CASES[name]
    program = transformed(text_of(case))
    sizes = sizes_of(case, 200)
    bounds = [bound.split(" < ")[1] for bound in case[1]]
    instances = prod(sizes[b] if b in sizes else int(b) for b in bounds)
    assert points_of(program, sizes) < 2 * instances


@pytest.mark.parametrize(
    "case",
    [
        DIAGONALS,
        OTHER_DIAGONALS,
        ("kernel(int n, int x[60][20], int y[80])", ["i < 60", "j < 20"], "y[i+j] += x[i][j]"),
    ],
)
def test_reads_are_contiguous_along_what_is_kept(case: tuple[str, list[str], str]) -> None:
    """Not ``x[u - j][j]``: an element of each row."""
    (node,) = md_homs(transformed(text_of(case)).body, {"n": 9})
    kept = [k for k, operator in enumerate(node.combine) if operator.order is Order.CONCATENATE]
    last = [view.indices[-1] for view in node.inputs if view.buffer == "x"]
    assert len(kept) == len(last) == 1
    assert isinstance(last[0], Index) and last[0].coefficients[kept[0]] == 1


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 20])
def test_the_numbers_are_those_of_the_loops(name: str, n: int) -> None:
    case = CASES[name]
    program = transformed(text_of(case))
    sizes = sizes_of(case, n)
    values = made_up(program, sizes, n)
    wanted = {name: np.array(array) for name, array in values.items() if name not in sizes}
    bounds = [int(sizes.get(b, b)) for bound in case[1] for b in [bound.split(" < ")[1]]]
    for point in np.ndindex(*bounds):
        here = dict(zip((bound[0] for bound in case[1]), map(int, point), strict=True))
        exec(_in_python(case[2]), {}, {**sizes, **wanted, **here})
    found = run(program, values)
    assert np.array_equal(found["y"], wanted["y"])


def _in_python(statement: str) -> str:
    target, chosen = statement.partition(" = ")[::2]
    if not chosen:
        return statement
    condition, values = chosen.split(" ? ")
    first, second = values.split(" : ")
    return f"{target} = {first} if {condition} else {second}"


def test_a_scalar_has_no_subscripts() -> None:
    text = """void kernel(int n, int x[n][n], int y[2]) {
#pragma scop
  int s = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) s += x[i][j];
  y[1] = s;
#pragma endscop
}
"""
    program = transformed(text)
    values = made_up(program, {"n": 5}, 0)
    assert run(program, values)["y"][1] == values["x"].sum()
