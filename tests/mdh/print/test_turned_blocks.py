"""Blocks that are turned in registers: the same values, and only where nothing stored is loaded so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from homs import F32, at, buffer, hom_of, made_up, matmul
from homs import program as program_of
from scheduled_trees import compare, copy, tree, under
from test_c_source import assert_same

import polyloom
from polyloom.ir.expressions import Binary, BinaryOp, Read
from polyloom.ir.host import Role, View
from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.schedule.schedules import Caching
from polyloom.mdh.tree.nodes import Compute, Function, Kind, Load, Parameter, Store, counted
from polyloom.mdh.tree.registers import final
from polyloom.polyhedra.loops.tree import Name, Number, sum_of

TYPES = [e for e in ElementType if e not in (ElementType.FLOAT16, ElementType.BOOL)]
COLUMN, LANE, ROW = Name("c"), Name("l"), Name("i")


def turning(kind: ElementType, width: int, columns: int, **changes: object) -> Function:
    """Return ``b[c][i + l] = a[i + l][c] + s[i + l]`` for ``columns`` c, blocks of ``width`` rows."""
    row = sum_of([(1, ROW), (1, LANE)])
    value = Binary(BinaryOp.ADD, Read(0, kind), Read(1, kind))
    source, target = (str(changes.get(name, name)) for name in "ab")
    loads = Load(source, (row, COLUMN)), Load("s", (row,))
    store = Store(target, (COLUMN, row), Compute(value, loads))
    vectors = counted("l", Number(width), (store,), kind=Kind.VECTOR)
    inner = counted("c", Number(columns), (vectors,))
    rows = 2 * width
    sizes = {"a": (rows, columns + 3), "b": (columns, rows), "s": (rows,)}
    if source == target:
        sizes = {"s": (rows,), source: (rows + columns, rows + columns)}
    parameters = tuple(
        Parameter(
            name=name,
            type=kind,
            shape=tuple(map(Number, shape)),
            constant=name != target,
            alone=bool(changes.get("alone", True)),
        )
        for name, shape in sizes.items()
    )
    body = (counted("i", Number(rows), (inner,), step=width),)
    return Function(name="turning", parameters=parameters, integers=(), body=body, contracted=False)


def arrays(function: Function) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    found = {}
    for p in function.parameters:
        shape = tuple(n.value for n in p.shape if isinstance(n, Number))
        found[p.name] = rng.integers(0, 100, shape).astype(p.type.dtype)
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_all_types_and_widths(kind: ElementType) -> None:
    for size in (16, 32):
        width = size // kind.size
        function = turning(kind, width, 2 * width)
        assert "turned0[1]" in c_source(function)
        assert_same(function, arrays(function))


@pytest.mark.parametrize(("columns", "changes"), [(12, {}), (8, {"a": "b"}), (8, {"alone": False})], ids=str)
def test_loops_that_stay(columns: int, changes: dict[str, object]) -> None:
    """No whole blocks; the array is stored, too; the arrays may be one."""
    function = turning(ElementType.FLOAT32, 8, columns, **changes)
    assert "turned" not in c_source(function).replace("turning", "")
    assert_same(function, arrays(function))


@pytest.mark.parametrize("real", ["unsigned char", "short", "float", "double"])
def test_copies_with_axes_in_another_order(real: str, tmp_path: Path) -> None:
    """Sizes that are no multiples of blocks, and a scalar function behind the read."""
    text = f"""void f(int n, int m, {real} a[n][3][m], {real} b[m][3][n], {real} s[n]) {{
    for (int j = 0; j < m; j++) for (int k = 0; k < 3; k++) for (int i = 0; i < n; i++)
        b[j][k][i] = a[i][k][j] + s[i]; }}"""
    path = tmp_path / "f.c"
    path.write_text(text)
    n, m = 203, 150
    rng = np.random.default_rng(2)
    kind = {"unsigned char": "u1", "short": "i2", "float": "f4", "double": "f8"}[real]
    a, s = (rng.integers(0, 50, shape).astype(kind) for shape in ((n, 3, m), (n,)))
    b = np.zeros((m, 3, n), kind)
    polyloom.load(str(path), device="native")(n, m, a, b, s)
    np.testing.assert_array_equal(b, (a + s[:, None, None]).transpose(2, 1, 0))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("rows", "depth", "tile", "width", "panel"),
    [(32, 32, 2, 8, True), (32, 32, 1, 8, False), (53, 41, 3, 4, True), (53, 41, 3, 4, False)],
)
def test_copies_of_cache_tiles(rows: int, depth: int, tile: int, width: int, panel: bool) -> None:
    """Columns and rows that are no whole blocks, too: those left are copied one by one."""
    program = matmul(rows, 9, depth)
    side = tile * width
    schedule = under(
        program,
        local=(side, 0, 16),
        private=(tile, 2, 2),
        vector=0,
        width=width,
        inputs=(copy(1, 0, panel=panel), Caching()),
    )
    compare(program, schedule, {})
    function = final(tree(program, schedule))
    assert f"turned_float32x{width}" in c_source(function)
    assert_same(function, made_up(program, {}, 0))


def test_copies_along_a_diagonal() -> None:
    """Both axes of the block go along one dimension: ``C[i][j] = sum of A[i][i + k] * B[k][j]``."""
    whole = matmul(40, 9, 50)
    hom = replace(hom_of(whole), inputs=(View("A", (at(1, 0, 0), at(1, 0, 1))), hom_of(whole).inputs[1]))
    sizes = {"A": (40, 89), "B": (50, 9), "C": (40, 9)}
    roles = {"C": Role.OUTPUT}
    program = program_of(
        hom, *(buffer(n, F32, shape, roles.get(n, Role.INPUT)) for n, shape in sizes.items())
    )
    inputs = (copy(1, 0), Caching())
    compare(program, under(program, local=(20, 0, 25), vector=0, width=4, inputs=inputs), {})
