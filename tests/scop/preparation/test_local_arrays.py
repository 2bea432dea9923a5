"""Arrays that an iteration fills and reads: which are computed where they are read, and C's numbers."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.host import Role
from polyloom.scop.preparation.local_arrays import without_local_arrays

PROGRAM = """
void kernel(int n, unsigned x[n][8], unsigned y[n][8], unsigned s[8]) {
  for (int i = 1; i < n; i++) {
    unsigned t[8];
    %s
  }
}
"""
FILL = "for (int k = 0; k < 8; k++) t[k] = x[i][k] * 3 + k;"
GONE = {
    "turned": FILL + "for (int k = 0; k < 8; k++) y[i][k] += t[7 - k];",
    "from another iterator": "for (int k = 2; k < 10; k++) t[k - 2] = x[i][k - 2] + (unsigned)k * i;"
    "for (int k = 7; k >= 0; k--) y[i][k] = t[7 - k];",
    "single elements": FILL + "y[i][0] = t[0] * t[3] - t[1] * t[2];",
    "two readers": FILL + "for (int k = 0; k < 8; k++) s[k] += t[k]; y[i][1] = t[5];",
    "a part": FILL + "for (int k = 0; k < 8; k += 2) y[i][k] = t[k / 2];",
    "under a condition": FILL + "for (int k = 0; k < 8; k++) if (k > 2) y[i][k] = t[k - 2];",
    "read before it is written": FILL + "x[i][3] = t[0] + t[1];",
    "written in other rows": FILL + "for (int k = 0; k < 8; k++) s[k] += t[7 - k];",
}
KEPT = {
    "written over": FILL + "for (int k = 0; k < 8; k++) x[i][k] = t[7 - k];",
    "written between": FILL + "x[i][2] = 5; for (int k = 0; k < 8; k++) y[i][k] = t[7 - k];",
    "written while it is filled": "for (int k = 0; k < 8; k++) { t[k] = x[i][k]; x[i][7 - k] = k; }"
    "for (int k = 0; k < 8; k++) y[i][k] = t[7 - k];",
    "given twice": FILL + "t[3] = 1; for (int k = 0; k < 8; k++) y[i][k] = t[7 - k];",
    "read by each": FILL + "for (int k = 0; k < 8; k++) y[i][k] = t[0] * k;",
    "read in deeper loops": FILL
    + "for (int j = 0; j < 9; j++) for (int k = 0; k < 8; k++) y[i][k] += t[k] * j;",
    "much": "for (int k = 0; k < 8; k++) t[k] = x[i][k] / 3 + x[i - 1][k] * 5 % 7;"
    "for (int k = 0; k < 5; k++) y[i][k] = t[k] + t[k + 1] + t[k + 2] + t[k + 3];",
    "sums": "for (int k = 0; k < 8; k++) { t[k] = 0; for (int j = 0; j < k; j++) t[k] += x[i][j]; }"
    "for (int k = 0; k < 8; k++) y[i][k] = t[7 - k];",
    "data says where": FILL + "for (int k = 0; k < 8; k++) y[i][k] = t[x[i][k] % 8];",
}
BODIES = {**GONE, **KEPT}


def is_gone(body: str) -> bool:
    found = without_local_arrays(read(PROGRAM % body))
    return not any(statement.uses("t") for statement in found.statements)


@pytest.mark.parametrize("name", BODIES)
def test_arrays_go_where_each_element_is_read_by_one_iteration(name: str) -> None:
    assert is_gone(BODIES[name]) == (name in GONE)


LIVING = PROGRAM.replace("unsigned s[8]", "unsigned s[8], unsigned t[8]").replace("unsigned t[8];", "")
DOWNWARDS = LIVING.replace("int i = 1; i < n; i++", "int i = n - 1; i >= 1; i--")


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("source", [LIVING, DOWNWARDS], ids=["upwards", "downwards"])
def test_of_arrays_that_live_on_what_is_left_is_computed(source: str, name: str) -> None:
    """The last iteration fills them, in that of ``i`` that comes last."""
    scop = without_local_arrays(read(source % BODIES[name]))
    read_somewhere = any(access.array == "t" for s in scop.statements for access in s.reads)
    assert read_somewhere == (name in KEPT)
    filling = [s.domain for s in scop.statements if s.target.array == "t"]
    if name in GONE:
        (where,) = filling
        last = "n - 1" if source == LIVING else "1"
        assert where.is_subset(isl.Set(f"[n] -> {{ {where.get_tuple_name()}[i, k] : i = {last} }}"))


def test_an_array_of_which_each_element_is_left_is_read() -> None:
    body = (
        "for (int k = 0; k < 8; k++) y[i][k] = x[i][k] * 3; for (int k = 0; k < 8; k++) s[k] += y[i][7 - k];"
    )
    scop = without_local_arrays(read(PROGRAM % body))
    assert any(access.array == "y" for s in scop.statements for access in s.reads)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("program", [PROGRAM, LIVING, DOWNWARDS], ids=["local", "upwards", "downwards"])
def test_the_numbers_are_those_of_c(program: str, name: str) -> None:
    source = program % BODIES[name]
    for n in (0, 1, 2, 5):
        numbers = np.random.default_rng(n)
        shapes = {"x": (n, 8), "y": (n, 8), "s": (8,)}
        shapes |= {} if program == PROGRAM else {"t": (8,)}
        arrays = {array: numbers.integers(0, 99, shape, np.uint32) for array, shape in shapes.items()}
        expected = call(source, "kernel", {"n": n, **arrays})
        made = transformed(source)
        given = {b.name: arrays[b.name] for b in made.buffers if b.role in (Role.INPUT, Role.UPDATED)}
        for array, values in {**arrays, **evaluate_host(made, {"n": n}, given)}.items():
            np.testing.assert_array_equal(values, expected[array])
