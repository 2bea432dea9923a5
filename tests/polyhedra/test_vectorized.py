"""isl functions and sets on NumPy arrays, against isl point by point."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest

from polyloom.polyhedra.vectorized import contains, evaluate_aff, evaluate_function


@pytest.mark.parametrize(
    "text",
    [
        "{ S[i, j] : 0 <= i < 4 and i <= j < 5 }",
        "{ S[i, j] : (i + j) mod 3 = 1 }",
        "{ S[i, j] : exists a, b : i = 2a + b and j = 3a - b and 0 <= b < 2 }",
        "{ S[i, j] : i = 1 or j = floor((i + 4)/3) }",
        "[n] -> { S[i, j] : i + 2j = n }",
        "{ S[i, j] : false }",
    ],
)
def test_contains(text: str) -> None:
    points = isl.Set(text)
    i, j = np.mgrid[-3:7, -3:7].astype(np.int64)
    found = contains(points, [i, j], {"n": np.int64(4) + 0 * i})
    fixed = points.intersect_params(isl.Set("[n] -> { : n = 4 }")).project_out_all_params()
    for a, b, inside in zip(i.ravel(), j.ravel(), found.ravel(), strict=True):
        assert inside == isl.Set(f"{{ S[{a}, {b}] }}").is_subset(fixed)


def test_a_function_with_floors_and_parameters() -> None:
    i = np.arange(-7, 8, dtype=np.int64)
    aff = isl.Aff("[n] -> { S[i] -> [(floor((2i + n)/3) - 4 * floor(i/5) + 7)] }")
    np.testing.assert_array_equal(
        evaluate_aff(aff, [i], {"n": np.int64(2) + 0 * i}), (2 * i + 2) // 3 - 4 * (i // 5) + 7
    )


def test_pieces_and_where_a_function_is_defined() -> None:
    function = isl.PwMultiAff("{ S[i] -> T[i, 2] : 0 <= i < 3; S[i] -> T[-i, i mod 2] : 5 <= i < 9 }")
    i = np.arange(-2, 11, dtype=np.int64)
    (first, second), defined = evaluate_function(function, [i], {})
    low, high = (i >= 0) & (i < 3), (i >= 5) & (i < 9)
    np.testing.assert_array_equal(defined, low | high)
    np.testing.assert_array_equal(first[defined], np.where(low, i, -i)[defined])
    np.testing.assert_array_equal(second[defined], np.where(low, 2, i % 2)[defined])


def test_arrays_broadcast_together() -> None:
    x, y = np.arange(3, dtype=np.int64)[:, None], np.arange(4, dtype=np.int64)[None, :]
    inside = contains(isl.Set("[p] -> { S[a] : a = p }"), [y], {"p": x})
    np.testing.assert_array_equal(inside, x == y)


def test_functions_without_variables_and_without_results() -> None:
    zero = np.zeros(5, dtype=np.int64)
    results, defined = evaluate_function(
        isl.PwMultiAff("[n] -> { S[i] -> T[] : i > n }"), [zero], {"n": zero - 1}
    )
    assert results == [] and defined.all()
