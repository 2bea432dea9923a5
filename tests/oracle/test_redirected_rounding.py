"""A factorisation without pivots, too large for bounds of its elements: other orders pass, faults do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyloom.ir.evaluation.random_inputs import SCALES, random_reals
from polyloom.ir.rounding.redirected import spread
from polyloom.ir.verification.comparison import Verdict
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import Expected
from polyloom.oracle.c_compiler import find_c_compiler
from polyloom.sources import LoadedHost, Reading, load_host_programs

pytestmark = pytest.mark.skipif(find_c_compiler() is None, reason="there is no C compiler")

Matrix = npt.NDArray[np.float64]
Dot = Callable[[Matrix, Matrix], Any]
LU = Path(__file__).parents[2] / "benchmarks/loops/lu.c"
N = 100
SEEDS = range(3)


@cache
def lu() -> LoadedHost:
    (found,) = load_host_programs(LU, Reading())
    return found


def made_up(seed: int, scale: int = 0) -> Matrix:
    made = random_reals(lu().program, SCALES[scale], seed, parameters={"n": N})
    assert made is not None
    return np.asarray(made["A"])


def expected(matrix: Matrix) -> Expected:
    reference = lu().reference
    assert reference is not None
    return reference({"n": N}, {"A": matrix})


@pytest.fixture(autouse=True)
def too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyloom.ir.verification.host_results.host_error_bound", lambda *_: None)


def verdict(matrix: Matrix, wanted: Expected, found: Matrix) -> Verdict:
    return check_run(lu().program, {"n": N}, {"A": matrix}, wanted, {"A": found}, made_up=False)


def factors(matrix: Matrix, dot: Dot = np.dot, *, upper_first: bool = False) -> Matrix:
    """Return L and U by rows; ``upper_first``: each row's U before its L, which is wrong."""
    a = matrix.copy()
    with np.errstate(all="ignore"):
        for r in range(len(a)):
            for c in [*range(r, N), *range(r)] if upper_first else range(N):
                k = min(r, c)
                a[r, c] -= dot(a[r, :k], a[:k, c])
                if c < r:
                    a[r, c] /= a[c, c]
    return a


ORDERS: dict[str, Dot] = {
    "in pairs": lambda x, y: np.add.reduce(np.ascontiguousarray(x * y)),
    "backwards": lambda x, y: np.add.accumulate(np.append(0, (x * y)[::-1]))[-1],
    "more digits": lambda x, y: float(np.sum(x.astype(np.longdouble) * y)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_other_orders_are_right(order: str) -> None:
    for seed in SEEDS:
        matrix = made_up(seed)
        wanted = expected(matrix)
        found = verdict(matrix, wanted, factors(matrix, ORDERS[order]))
        assert found.passed and found.coarse and found.max_error <= 0.5, found.mismatches
        assert found.tight > 0.99, "bounds are of use"


def test_without_it_they_would_fail() -> None:
    """Where this passes the matrices amplify too little for a test."""
    matrix = made_up(0)
    wanted = replace(expected(matrix), rounded_elsewhere=None)
    found = [verdict(matrix, wanted, factors(matrix, dot)) for dot in ORDERS.values()]
    assert not any(v.passed or v.redirected for v in found)
    assert "the reference moves with its rounding" in verdict(matrix, expected(matrix), factors(matrix)).says


def one_element(a: Matrix) -> Matrix:
    a[N // 2, N // 3] *= 1.001
    return a


FAULTS: dict[str, Callable[[Matrix], Matrix]] = {
    "an element": lambda m: one_element(factors(m)),
    "a missing update": lambda m: factors(m, lambda x, y: np.dot(x[: N - 2], y[: N - 2])),
    "an update too many": lambda m: factors(m, lambda x, y: np.dot(x, y) + x[-1:].sum() * y[-1:].sum()),
    "another order of loops": lambda m: factors(m, upper_first=True),
    "float in place of double": lambda m: factors(m, lambda x, y: np.float32(np.dot(x, y))),
    "a row that was forgotten": lambda m: np.concatenate([factors(m)[:-1], m[-1:]]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str) -> None:
    for seed in SEEDS:
        matrix = made_up(seed)
        assert not verdict(matrix, expected(matrix), FAULTS[fault](matrix)).passed


def test_what_is_no_number_hides_nothing() -> None:
    matrix = made_up(0)
    matrix[3, :] = matrix[2, :] * 2  # a pivot is zero, and all behind it no number
    wanted = expected(matrix)
    right = wanted.arrays["A"]
    assert not np.isfinite(right[-1, -1])
    verdict_of_right = verdict(matrix, wanted, right.copy())
    assert verdict_of_right.passed and verdict_of_right.tight < 0.5, "it says how little that is"
    for value in (np.nan, np.inf, 1.0):
        wrong = right.copy()
        wrong[1, 1] = value
        assert not verdict(matrix, wanted, wrong).passed
    assert not verdict(matrix, wanted, np.nan_to_num(right)).passed


def test_what_is_exact_does_not_move() -> None:
    whole = np.random.default_rng(0).integers(-9, 9, (4, 5)).astype(float)
    sums = {"s": whole.cumsum(axis=1)}
    assert not spread(sums, [sums, {"s": sums["s"].copy()}])["s"].any()


def test_neighbours_and_infinities() -> None:
    moved = spread({"s": np.zeros(6)}, [{"s": np.array([0, 0, 1, 0, 0, np.inf])}])["s"] / 64
    assert moved.tolist() == [0, 1, 1, 1, 0, np.inf]
