"""Norms of every order, distances, small systems, padding that cuts, running extremes of truths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_special_numbers import INF, computed

R = np.random.default_rng(4)
X = np.array([[3, -4, 0], [1, 2, -2]], np.float32)


@pytest.mark.parametrize(
    ("order", "wanted"), [(0, [2, 3]), (-1, [0, 0.5]), (0.5, [(3**0.5 + 2) ** 2, (1 + 2 * 2**0.5) ** 2])]
)
def test_a_norm_of_any_order(order: float, wanted: list[float]) -> None:
    found = computed("linalg_vector_norm", {"self": X}, {"ord": order, "dim": (1,)}, "float32")[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_distances() -> None:
    x = R.integers(-5, 5, (4, 3)).astype(np.float32)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for op in ("pdist", "_pdist_forward"):
        found = computed(op, {"self": x}, {"p": 1.0}, "float32")[0]
        np.testing.assert_array_equal(found, [np.abs(x[i] - x[j]).sum() for i, j in pairs])
    found = computed("dist", {"self": x, "other": x[0]}, {"p": INF}, "float32")[0]
    assert found == np.abs(x - x[0]).max()


@pytest.mark.parametrize("left", [True, False])
def test_small_systems_of_equations(left: bool) -> None:
    a = R.normal(size=(2, 3, 3)).astype(np.float32) + 2 * np.eye(3, dtype=np.float32)
    y = R.normal(size=(2, 3, 2) if left else (2, 2, 3)).astype(np.float32)
    (found,) = computed("_linalg_solve_ex", {"A": a, "B": y}, {"left": left}, "float32")
    np.testing.assert_allclose(a @ found if left else found @ a, y, atol=1e-4)


def test_a_system_with_one_right_side() -> None:
    a, y = np.array([[2, 1], [1, 3]], np.float32), np.array([3, 4], np.float32)
    np.testing.assert_allclose(computed("_linalg_solve_ex", {"A": a, "B": y}, {}, "float32")[0], [1, 1])


@pytest.mark.parametrize(("mode", "wanted"), [("replicate", [1, 2, 3, 3, 3]), ("reflect", [1, 2, 3, 2, 1])])
def test_padding_that_cuts(mode: str, wanted: list[float]) -> None:
    x = np.arange(4, dtype=np.float32).reshape(1, 1, 4)
    found = computed("pad", {"self": x}, {"pad": (-1, 2), "mode": mode}, "float32")[0]
    assert found.ravel().tolist() == wanted


def test_the_gradient_of_padding_that_cuts() -> None:
    given = {
        "grad_output": np.array([[[1, 2, 3, 4, 5]]], np.float32),
        "self": np.zeros((1, 1, 4), np.float32),
    }
    found = computed("replication_pad1d_backward", given, {"padding": (-1, 2)}, "float32")[0]
    assert found.ravel().tolist() == [0, 1, 2, 3 + 4 + 5]


@pytest.mark.parametrize(
    ("op", "values", "places"),
    [("cummax", [0, 1, 1, 1], [0, 1, 1, 3]), ("cummin", [0, 0, 0, 0], [0, 0, 2, 2])],
)
def test_running_extremes_of_truths(op: str, values: list[int], places: list[int]) -> None:
    x = np.array([0, 1, 0, 1], np.bool_)
    found = computed(op, {"self": x}, {"dim": 0}, "bool", "int64")
    assert [v.tolist() for v in found] == [values, places]


@pytest.mark.parametrize("op", ["median", "nanmedian"])
def test_the_middle_of_nothing(op: str) -> None:
    assert np.isnan(computed(op, {"self": np.zeros((0, 3), np.float32)}, {}, "float32")[0])


def test_unpooling_of_volumes() -> None:
    x, places = np.array([5, 7], np.float32).reshape(1, 2, 1, 1, 1), np.array([3, 6]).reshape(1, 2, 1, 1, 1)
    arguments: dict[str, Any] = {"output_size": (2, 2, 2), "stride": (2, 2, 2), "padding": (0, 0, 0)}
    (found,) = computed("max_unpool3d", {"self": x, "indices": places}, arguments, "float32")
    assert found.reshape(2, 8).tolist() == [[0, 0, 0, 5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 7, 0]]
