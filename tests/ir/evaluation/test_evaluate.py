"""The evaluator against nested loops, bit for bit, and against hand-written NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from naive import naive
from polyloom.diagnostics import PolyloomError, Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, evaluate, verify
from random_tests import tried
from strategies import data, programs


def program(text: str, **defines: str) -> Program:
    return lower(parse(Source("test.lair", text)), None, defines)


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name in found:
        assert found[name].dtype == expected[name].dtype
        assert np.array_equal(found[name], expected[name], equal_nan=found[name].dtype.kind == "f"), name


@tried(200)
@given(programs(guarded=True), st.integers(0, 2**32))
def test_random_programs_agree_with_nested_loops(program: Program, seed: int) -> None:
    verify(program)
    inputs = data(program, seed)
    try:
        expected = naive(program, inputs)
    except OverflowError:
        reject()
    assert_same(evaluate(program, inputs), expected)


FLOATS = ["float16", "float32"]
ALL_TYPES = [*FLOATS, "int16", "int32"]


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_convolution(kind: str) -> None:
    node = program(
        "lair c<T>(): T x[3][9][8], T W[4][3][3][2] -> T y[4][7][7]"
        "{ all (k, c, h, w, r, s) in (4, 3, 7, 7, 3, 2) y[k][h][w] += x[c][h + r][w + s] * W[k][c][r][s] }",
        T=kind,
    )
    rng = np.random.default_rng(1)
    x, W = rng.integers(-4, 5, (3, 9, 8)), rng.integers(-4, 5, (4, 3, 3, 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))
    y = evaluate(node, {"x": x.astype(kind), "W": W.astype(kind)})["y"]
    assert np.array_equal(y, np.einsum("chwrs,kcrs->khw", windows, W))
    assert y.dtype == kind


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_transposed_convolution_with_stride(kind: str) -> None:
    node = program(
        "lair t<T>(): T dy[3][4], T W[5][5] -> T dx[9][11]"
        "{ all (a, b, r, s) in (3, 4, 5, 5) dx[2*a + r][2*b + s] += dy[a][b] * W[r][s] }",
        T=kind,
    )
    rng = np.random.default_rng(2)
    dy, W = rng.integers(-4, 5, (3, 4)), rng.integers(-4, 5, (5, 5))
    expected = np.zeros((9, 11), int)
    for a in range(3):
        for b in range(4):
            expected[2 * a : 2 * a + 5, 2 * b : 2 * b + 5] += dy[a, b] * W
    assert np.array_equal(evaluate(node, {"dy": dy.astype(kind), "W": W.astype(kind)})["dx"], expected)


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_matrix_product(kind: str) -> None:
    node = program(
        "lair m<T>(): T a[5][6], T b[6][7] -> T c[5][7]"
        "{ all (i, j, k) in (5, 7, 6) c[i][j] += a[i][k] * b[k][j] }",
        T=kind,
    )
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 10, (5, 6)), rng.integers(-9, 10, (6, 7))
    assert np.array_equal(evaluate(node, {"a": a.astype(kind), "b": b.astype(kind)})["c"], a @ b)


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_max_pooling_and_minimum(kind: str) -> None:
    node = program(
        "lair p<T>(): T x[3][8] -> T y[3][4], T z[3]"
        "{ all (c, w, r) in (3, 4, 2) y[c][w] max= x[c][2*w + r] all (c, w) in (3, 4) z[c] min= y[c][w] }",
        T=kind,
    )
    x = np.random.default_rng(4).integers(-99, -1, (3, 8))
    found = evaluate(node, {"x": x.astype(kind)})
    assert np.array_equal(found["y"], x.reshape(3, 4, 2).max(2))
    assert np.array_equal(found["z"], x.reshape(3, 4, 2).max(2).min(1))


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize(("sign", "start"), [("+=", 0), ("*=", 1), ("max=", "low"), ("min=", "high")])
def test_unwritten_elements_hold_the_neutral_element(kind: str, sign: str, start: int | str) -> None:
    node = program(f"lair p<T>(): T x[2] -> T y[5] {{ all (i) in (2) y[2*i + 1] {sign} x[i] }}", T=kind)
    limits = {"low": -np.inf, "high": np.inf}
    if kind.startswith("int"):
        limits = {"low": np.iinfo(kind).min, "high": np.iinfo(kind).max}
    y = evaluate(node, {"x": np.array([3, 4], kind)})["y"]
    expected = limits.get(str(start), start)
    assert [*y[[1, 3]]] == [3, 4]
    assert all(y[k] == expected for k in (0, 2, 4))


def test_float16_accumulates_one_term_after_another() -> None:
    """2048 + 1 + 1 is 2048 in float16: a wider accumulator, or pairs, would give 2050."""
    node = program("lair s(): float16 x[4000] -> float16 y { all (i) in (4000) y += x[i] }")
    x = np.ones(4000, "float16")
    assert evaluate(node, {"x": x})["y"] == 2048


def test_order_of_terms_is_lexicographic_where_indices_overlap() -> None:
    """dx[w + r]: the terms of an element come with w rising, so with r falling."""
    node = program(
        "lair t(): float32 dy[50], float32 W[3] -> float32 dx[52]"
        "{ all (w, r) in (50, 3) dx[w + r] += dy[w] * W[r] }"
    )
    inputs = data(node, 5)
    assert_same(evaluate(node, inputs), naive(node, inputs))


def test_integers_wrap_and_divide_towards_zero() -> None:
    node = program(
        "lair i(): int16 a[6], int16 b[6] -> int16 p[6], int16 q[6], int16 w[6]"
        "{ all (i) in (6) p[i] = a[i] * b[i] all (i) in (6) q[i] = a[i] / b[i]"
        "  all (i) in (6) w[i] = pow(a[i], b[i]) }"
    )
    a = np.array([-7, 7, 300, -32768, 5, -1], "int16")
    b = np.array([2, -2, 300, -1, 0, -3], "int16")
    found = evaluate(node, {"a": a, "b": b})
    assert found["p"].tolist() == [-14, -14, 24464, -32768, 0, 3]
    assert found["q"].tolist() == [-3, -3, 1, -32768, 0, 0]
    assert found["w"].tolist() == [49, 0, naive(node, {"a": a, "b": b})["w"][2], 0, 1, -1]


def test_float_functions_are_rounded_once() -> None:
    names = ["exp", "log", "rsqrt", "tanh", "sigmoid", "erf", "sqrt"]
    outputs = ", ".join(f"T {n}_y[500]" for n in names)
    body = " ".join(f"all (i) in (500) {n}_y[i] = {n}(x[i])" for n in names)
    for kind in FLOATS:
        node = program(f"lair f<T>(): T x[500] -> {outputs} {{ {body} }}", T=kind)
        x = np.random.default_rng(6).uniform(0.01, 8, 500).astype(kind)
        assert_same(evaluate(node, {"x": x}), naive(node, {"x": x}))


def test_nan_propagates_through_max_and_min() -> None:
    node = program(
        "lair f(): float32 x[3] -> float32 y, float32 z[3]"
        "{ all (i) in (3) y max= x[i] all (i) in (3) z[i] = min(x[i], 0) }"
    )
    found = evaluate(node, {"x": np.array([1, np.nan, 2], "float32")})
    assert np.isnan(found["y"])
    assert np.isnan(found["z"][1])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"x": None}, "input-missing"),
        ({"x": np.zeros(5, "float16")}, "input-shape"),
        ({"x": np.zeros(4, "float32")}, "input-type"),
        ({"z": np.zeros(4, "float16")}, "input-unknown"),
    ],
)
def test_inputs_are_checked(change: dict[str, np.ndarray | None], code: str) -> None:
    node = program("lair f(): float16 x[4] -> float16 y[4] { all (i) in (4) y[i] = x[i] }")
    inputs = {"x": np.zeros(4, "float16"), **change}
    with pytest.raises(PolyloomError) as caught:
        evaluate(node, {k: v for k, v in inputs.items() if v is not None})
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_large_layers_are_swept_in_bounded_boxes() -> None:
    from polyloom.ir.evaluation.boxes import LARGEST_BOX, steps

    node = program(
        "lair c(): float16 dy[64][56][56], float16 W[64][64][3][3] -> float16 dx[64][58][58]"
        "{ all (k, c, h, w, r, s) in (64, 64, 56, 56, 3, 3)"
        "  dx[c][h + r][w + s] += dy[k][h][w] * W[k][c][r][s] }"
    )
    (statement,) = node.statements
    points = 0
    rows = [index.coefficients for index in statement.write.affine]
    for step in steps(tuple(map(range, statement.domain)), rows):
        size = int(np.prod([len(r) for r in step.box]))
        assert size <= LARGEST_BOX
        points += size
    assert points == np.prod(statement.domain)
