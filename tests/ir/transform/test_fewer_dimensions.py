"""md_homs over fewer dimensions: the same results in the same memory, and the dimensions that are left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c_host_programs import host_programs_of
from md_homs import Case, md_homs
from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Binary, BinaryOp, Convert, Iterator
from polyloom.ir.host import Buffer, HostProgram, MdHom, Role
from polyloom.ir.program import Program
from polyloom.ir.transform.flatten_dimensions import with_fewer_dimensions, with_longer_rows
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import leaves_in
from random_tests import tried
from strategies import data, programs

EQUATION = "y[i][j][k][m] = x[i][j][k][m]"
SHAPES = {
    "map": ("float32 x[2][3][4] -> float32 y[2][3][4]", "(2, 3, 4)", "y[i][j][k] = x[i][j][k]", [24]),
    "one point": ("float32 x[1][3][1] -> float32 y[1][3]", "(1, 3, 1)", "y[i][j] += x[i][j][k]", [3, 1]),
    "only one point": ("float32 x[1] -> float32 y[1][1][1]", "(1, 1, 1)", "y[i][j][k] = x[i]", [1]),
    "channels": (
        "float32 x[2][3][4], float32 s[2] -> float32 y[2][3][4]",
        "(2, 3, 4)",
        "y[i][j][k] = x[i][j][k] * s[i]",
        [2, 12],
    ),
    "rows that stick out": (
        "float32 x[2][3][5] -> float32 y[2][3][4]",
        "(2, 3, 4)",
        "y[i][j][k] = x[i][j][k]",
        [6, 4],
    ),
    "turned": ("float32 x[3][2] -> float32 y[2][3]", "(2, 3)", "y[i][j] = x[j][i]", [2, 3]),
    "turned twice": ("float32 x[3][2] -> float32 y[3][2]", "(2, 3)", "y[j][i] = x[j][i]", [6]),
    "written out": ("float32 x[6] -> float32 y[2][3]", "(2, 3)", "y[i][j] = x[3 * i + j]", [6]),
    "backwards": ("float32 x[2][3] -> float32 y[6]", "(2, 3)", "y[5 - 3 * i - j] = x[i][j]", [6]),
    "sum of all": ("float32 x[2][3][4] -> float32 y[1]", "(2, 3, 4)", "y[0] += x[i][j][k]", [24]),
    "mean of images": ("float32 x[5][3][4] -> float32 y[5]", "(5, 3, 4)", "y[i] += x[i][j][k]", [5, 12]),
    "kept and lost": ("float32 x[2][3] -> float32 y[2]", "(2, 3)", "y[i] += x[i][j]", [2, 3]),
}


def layer(views: str, domain: str, equation: str) -> Program:
    names = ", ".join("ijkm"[: domain.count(",") + 1])
    return lower(parse(Source("t.lair", f"lair n(): {views} {{ all ({names}) in {domain} {equation} }}")))


def flat(program: HostProgram) -> HostProgram:
    """Return a program of one md_hom over fewer dimensions, with other shapes of its buffers."""
    (node,) = program.body
    assert isinstance(node, MdHom)
    hom, buffers = with_fewer_dimensions(node, {b.name: b for b in program.buffers})
    return replace(program, buffers=tuple(buffers.get(b.name, b) for b in program.buffers), body=(hom,))


def run_flat(program: HostProgram, inputs: dict[str, Any]) -> dict[str, Any]:
    """Run over fewer dimensions on the same memory."""
    changed = flat(program)
    given = {n: np.ascontiguousarray(a).reshape(shape_of(changed.buffer(n), {})) for n, a in inputs.items()}
    found = evaluate_host(changed, {}, given)
    return {n: a.reshape(shape_of(program.buffer(n), {})) for n, a in found.items()}


def assert_left(host: HostProgram, expected: list[int], inputs: dict[str, Any]) -> None:
    (node,) = flat(host).body
    assert isinstance(node, MdHom)
    assert [getattr(extent, "value", None) for extent in node.extents] == expected
    wanted = evaluate_host(host, {}, inputs)
    for name, array in run_flat(host, inputs).items():
        assert np.array_equal(array, wanted[name])


@pytest.mark.parametrize("case", SHAPES)
def test_dimensions_that_are_left(case: str) -> None:
    views, domain, equation, expected = SHAPES[case]
    program = layer(views, domain, equation)
    assert_left(host_program(program), expected, data(program, 3, integers=True))


@pytest.mark.parametrize(
    ("rows", "other", "expected"), [(4, "z[i + 2][j]", [6]), (2, "z[i][0]", [2, 3]), (2, "z[1][2]", [6])]
)
def test_two_views_of_one_array(rows: int, other: str, expected: list[int]) -> None:
    views = f"float32 x[{rows}][3], float32 z[{rows}][3] -> float32 y[2][3]"
    host = host_program(layer(views, "(2, 3)", f"y[i][j] = x[i][j] - {other}"))
    (node,) = host.body
    assert isinstance(node, MdHom)
    one = replace(node, inputs=tuple(replace(view, buffer="x") for view in node.inputs))
    host = replace(host, body=(one,), buffers=tuple(b for b in host.buffers if b.name != "z"))
    assert_left(host, expected, {"x": np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)})


def test_a_dimension_whose_iterator_is_a_value_stays() -> None:
    host = host_program(layer("float32 x[4][1][3][2] -> float32 y[4][1][3][2]", "(4, 1, 3, 2)", EQUATION))
    (node,) = host.body
    assert isinstance(node, MdHom)
    kind = ElementType.FLOAT32
    term = Binary(BinaryOp.ADD, node.terms[0], Convert(kind, Iterator(2, ElementType.INT64)))
    host = replace(host, body=(replace(node, terms=(term,)),))
    inputs = {"x": np.arange(24, dtype=np.float32).reshape(4, 1, 3, 2)}
    assert_left(host, [4, 3, 2], inputs)


@tried(150)
@given(programs(guarded=True), st.integers(0, 2**32))
def test_random_statements_keep_their_meaning(program: Program, seed: int) -> None:
    host = host_program(program)
    arrays = dict(data(program, seed, integers=True))
    for node in host.body:
        if isinstance(node, MdHom):
            used = {view.buffer for view in (*node.inputs, *node.outputs)}
            buffers = tuple(
                Buffer(name=b.name, type=b.type, shape=b.shape, role=Role.UPDATED)
                for b in host.buffers
                if b.name in used
            )
            alone = HostProgram(name="alone", parameters=(), buffers=buffers, body=(node,))
            given = {b.name: arrays.get(b.name, np.ones(shape_of(b, {}), b.type.dtype)) for b in buffers}
            wanted = evaluate_host(alone, {}, given)
            found = run_flat(alone, given)
            assert all(
                np.array_equal(found[n], wanted[n], equal_nan=found[n].dtype.kind == "f") for n in wanted
            )
            arrays |= wanted


@tried(150)
@given(md_homs(extras=True), st.integers(0, 2**32))
def test_random_md_homs_keep_their_meaning(case: Case, seed: int) -> None:
    inputs = case.data(seed)
    wanted = evaluate_host(case.program, {}, inputs)
    found = run_flat(case.program, inputs)
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


PIXELS = "int h, int w, const int s[h][w][3], const int g[3], int d[h][w][3], int t[h][w]"
EACH = "for (int y = 1; y < h; y++) for (int x = 0; x + 1 < w; x++) for (int c = 0; c < 3; c++)"
OPEN = {
    "a map": (f"{EACH} d[y][x][c] = s[y][x][c] * 2;", [2]),
    "a window": (
        f"{EACH} {{ int a = 0; for (int k = 0; k < 2; k++) a += s[y - k][x + k][c]; d[y][x][c] = a; }}",
        [3],
    ),
    "a factor of each channel": (f"{EACH} d[y][x][c] = s[y][x][c] * g[c];", [3]),
    "read by pixels, too": (
        f"{EACH} d[y][x][c] = s[y][x][c] * 2;"
        " for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) t[y][x] = s[y][x][1];",
        [3, 2],
    ),
    "two channels of three": (f"{EACH.replace('c < 3', 'c < 2')} d[y][x][c] = s[y][x][c] * 2;", [3]),
}


@pytest.mark.parametrize("name", OPEN)
def test_channels_are_parts_of_rows_of_any_length(name: str) -> None:
    body, dimensions = OPEN[name]
    (program,) = host_programs_of(f"void f({PIXELS}) {{\n#pragma scop\n{body}\n#pragma endscop\n}}")
    made = with_longer_rows(program)
    assert [len(node.extents) for node in leaves_in(made.body) if isinstance(node, MdHom)] == dimensions
    rng = np.random.default_rng(3)
    for h, w in ((0, 0), (1, 4), (2, 1), (5, 7)):
        sizes = {"h": h, "w": w}
        inputs = {b.name: rng.integers(-9, 9, shape_of(b, sizes), np.int32) for b in program.given}
        wanted = evaluate_host(program, sizes, inputs)
        given = {n: a.reshape(shape_of(made.buffer(n), sizes)) for n, a in inputs.items()}
        for array, values in evaluate_host(made, sizes, given).items():
            np.testing.assert_array_equal(values.reshape(wanted[array].shape), wanted[array], str((h, w)))
