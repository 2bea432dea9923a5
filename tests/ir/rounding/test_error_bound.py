"""The bound of ``--check``: n * eps * sum of |terms|, and no correct evaluation beyond it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.diagnostics import Source
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir import Program, error_bound, evaluate
from polyloom.ir.verification.comparison import first_difference
from random_tests import tried
from strategies import data, programs


def program(text: str, **defines: str) -> Program:
    return lower(parse(Source("test.lair", text)), None, defines)


UNDERFLOW = 1e-4

FF = "lair ff<T>(): T W[8][300], T x[300] -> T y[8] { all (i, j) in (8, 300) y[i] += W[i][j] * x[j] }"


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_one_product_per_term(kind: str) -> None:
    node = program(FF, T=kind)
    inputs = data(node, 1)
    terms = np.abs(inputs["W"].astype(float) * inputs["x"].astype(float))
    expected = 300 * np.finfo(kind).eps * terms.sum(1)
    assert np.allclose(error_bound(node, inputs)["y"], expected, rtol=2 * np.finfo(kind).eps)


def test_overlapping_writes_count_their_own_terms() -> None:
    node = program(
        "lair t(): float32 d[4], float32 W[3] -> float32 x[8]{ all (w, r) in (4, 3) x[w + r] += d[w] * W[r] }"
    )
    bound = error_bound(node, {"d": np.ones(4, "float32"), "W": np.ones(3, "float32")})["x"]
    count = np.array([1, 2, 3, 3, 2, 1, 0, 0])
    assert np.allclose(bound, count * np.finfo("float32").eps * count, rtol=1e-6)


def test_integers_are_exact() -> None:
    node = program(FF, T="int32")
    assert not error_bound(node, data(node, 2))["y"].any()


def test_errors_reach_later_statements() -> None:
    node = program(
        "lair n(): float32 x[100] -> float32 s, float32 y[100]"
        "{ all (i) in (100) s += x[i] all (i) in (100) y[i] = x[i] - s }"
    )
    bound = error_bound(node, data(node, 3))
    assert (bound["y"] >= bound["s"]).all()


def test_doubtful_comparisons_count_the_difference_of_both_sides() -> None:
    node = program(
        "lair n(): float32 x[3] -> float32 y[3]"
        "{ all (i) in (3) h[i] = x[i] * 3 all (i) in (3) y[i] = h[i] > 3 ? 100 : h[i] }"
    )
    bound = error_bound(node, {"x": np.array([1, 2, 0.5], "float32")})["y"]
    assert bound[0] > 90
    assert bound[1] < 1e-4
    assert bound[2] < 1e-4


def _in_float64(program: Program, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    from strategies import as_float64

    wide, arrays = as_float64(program, inputs)
    return evaluate(wide, arrays)


@tried(60)
@given(programs(), st.integers(0, 2**32))
def test_evaluation_in_float64_lies_within_the_bound(made: Program, seed: int) -> None:
    """Programs of floats only; what overflows, underflows or divides by zero aside."""
    if not all(t.type.is_float for t in made.tensors):
        return
    inputs = data(made, seed)
    found, exact, bound = evaluate(made, inputs), _in_float64(made, inputs), error_bound(made, inputs)
    for name, array in found.items():
        proper = np.isfinite(array) & np.isfinite(exact[name]) & (np.abs(exact[name]) < 60000)
        difference = np.abs(array[proper].astype(float) - exact[name][proper])
        assert (difference <= bound[name][proper] + UNDERFLOW).all(), name


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = exp(x[i] * 0.3) / (1 + exp(x[i] * 0.3))",
        "y[i] = rsqrt(x[i] * x[i] + 0.5) * tanh(x[i] + 0.1)",
        "y[i] = log(x[i] * x[i] + 2) - sqrt(x[i] * x[i] + 2)",
        "y[i] = sigmoid(x[i] * 1.7) + erf(x[i] * 0.3) * pow(abs(x[i]) + 1.3, 1.5)",
        "y[i] = max(x[i] * 0.7, 0.1 * x[i]) - min(x[i] * 1.1, x[i] * 0.9)",
    ],
)
def test_functions_within_the_bound(body: str) -> None:
    node = program(f"lair f(): float32 x[400] -> float32 y[400] {{ all (i) in (400) {body} }}")
    inputs = data(node, 4)
    difference = np.abs(evaluate(node, inputs)["y"] - _in_float64(node, inputs)["y"])
    bound = error_bound(node, inputs)["y"]
    assert (difference <= bound).all()
    assert (bound < 1e-3).all()


def test_integers_that_no_double_holds_are_told_apart() -> None:
    wanted, found = np.array([2**53]), np.array([2**53 + 1])
    difference = first_difference({"y": wanted}, {}, {"y": found})
    assert difference is not None
    assert difference.max_error == float("inf")
