"""Rows of which most vectors lie in lines of 64 bytes, by where arrays begin in the first call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.host import HostProgram, MdHom
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import tree_of
from polyloom.mdh.schedule.schedules import Schedule, plain_schedule
from polyloom.mdh.tree.nodes import ZERO, Code, Compute, For, Kind, LetInteger, Store
from polyloom.mdh.tree.rewrite import blocks
from polyloom.polyhedra.loops.tree import Number
from polyloom.scop.transform import host_program

N = 128
HEAD = f"void f(int n, double A[n][{N}], double B[n][{N}], double C[n][{N + 3}], float x[n][{N}])"
ROWS = "for (int i = 1; i < n - 1; i++) for (int j = {0}; j < {1}; j++)"
HEAT = f"{ROWS.format(1, N - 1)} B[i][j] = A[i][j] + A[i - 1][j] + A[i + 1][j] + A[i][j - 1] + A[i][j + 1];"
STEP = f"{ROWS.format('t + 1', 'N - t - 1')} B[i][j] = A[i][j] + A[i - 1][j] + A[i][j - 1] + A[i][j + 1];"
PARTS = f"for (int t = 0; t < 20; t++) {{ {STEP} {STEP.translate(str.maketrans('AB', 'BA'))} }}"
"""Rows that begin and end elsewhere in each step."""
OTHERS = {
    "rows that begin apart": f"{ROWS.format(1, N - 1)} C[i][j] = C[i][j] + 2 * C[i - 1][N + 2 - j];",
    "a short row": f"{ROWS.format(1, 20)} B[i][j] = 2 * A[i][j] + A[i - 1][j];",
    "a sum": f"for (int j = 0; j < {N - 1}; j++) for (int i = 0; i < n; i++) B[0][j] += A[i][j];",
}


def in_vectors(hom: MdHom, around: HostProgram, device: DeviceModel) -> Schedule:
    """Return a schedule with vectors of eight along the last dimension."""
    del around, device
    count = len(hom.extents)
    plain = plain_schedule(count, len(hom.inputs))
    last = max(d for d, o in enumerate(hom.combine) if o.combiner is None)
    return replace(plain, private=tuple(2 if d == last else 1 for d in range(count)), vector=last, width=8)


def stores(body: str, behind: int | None, **host: int) -> list[tuple[int, int]]:
    """Return of each store in vectors how many lanes it has, and where in a row its first one lies.

    ``host``: where host loops are; every other loop is at its first iteration.
    """
    text = f"{HEAD} {{\n{body.replace('N', str(N))}\n}}\n"
    program = specialise(host_program(next(iter(read_c(Source("f.c", text))))).program, {"n": 30})
    program = replace(program, buffers=tuple(replace(b, behind=behind) for b in program.buffers))
    tree = tree_of(program, in_vectors, choose("native", threads=1))
    return list(_stores(tree.body, host))


def _stores(code: Code, starts: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Yield them, at the first iteration of the loops around."""
    for statement in code:
        if isinstance(statement, LetInteger):
            starts = {**starts, statement.name: integer(statement.value, starts)}
        if isinstance(statement, For) and (statement.iterator not in starts or statement.start != ZERO):
            starts = {**starts, statement.iterator: integer(statement.start, starts)}
        if isinstance(statement, For) and statement.kind is Kind.VECTOR:
            assert isinstance(statement.end, Number)
            for store in statement.body:
                assert isinstance(store, Store)
                last = store.subscripts[-1]
                assert not isinstance(last, Compute)
                yield statement.end.value, integer(last, starts)
        else:
            for block in blocks(statement):
                yield from _stores(block, starts)


@pytest.mark.parametrize("behind", [0, 8, 16, 24, 40, 56])
def test_most_vectors_lie_in_lines(behind: int) -> None:
    """The rows of a stencil begin one element behind the start of the array's rows."""
    whole = [first for lanes, first in stores(HEAT, behind) if lanes == 8]
    assert whole
    assert all((behind // 8 + first) % 8 == 0 for first in whole)


@pytest.mark.parametrize("behind", [0, 16, 40])
@pytest.mark.parametrize("t", [0, 3, 6, 13])
def test_most_vectors_of_rows_that_begin_anywhere_lie_in_lines(t: int, behind: int) -> None:
    whole = [first for lanes, first in stores(PARTS, behind, t=t) if lanes == 8]
    assert whole
    assert all((behind // 8 + first) % 8 == 0 for first in whole)
    assert {first % 8 for lanes, first in stores(PARTS, None, t=t) if lanes == 8} == {(t + 1) % 8}


@pytest.mark.parametrize("form", OTHERS)
def test_other_rows_stay(form: str) -> None:
    assert stores(OTHERS[form], 16) == stores(OTHERS[form], None)


def test_it_is_not_known_where_arrays_begin() -> None:
    assert {first % 8 for lanes, first in stores(HEAT, None) if lanes == 8} == {1}


@pytest.mark.parametrize("behind", [0, 16, 24, 56])
def test_arrays_that_begin_elsewhere_in_later_calls(tmp_path: Path, behind: int) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"{HEAD} {{\n{HEAT}\n}}\n")
    made = polyloom.compile(path, device="native", threads=2, check=True)
    rng, n = np.random.default_rng(3), 200
    shapes = {"A": (n, N), "B": (n, N), "C": (n, N + 3)}
    for begin in (behind, 8, 0, 40):
        rooms = {name: np.empty(8 * shape[0] * shape[1] + 128, np.uint8) for name, shape in shapes.items()}
        arrays = {}
        for name, room in rooms.items():
            first = (begin - room.ctypes.data) % 64
            arrays[name] = room[first : first + room.size - 128].view(np.float64).reshape(shapes[name])
            arrays[name][...] = rng.standard_normal(shapes[name])
        made(n=n, **arrays, x=np.zeros((n, N), np.float32))
