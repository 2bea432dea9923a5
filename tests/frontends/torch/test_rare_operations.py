"""Operations that few models have, and those of truth values and scalars: what PyTorch computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_special_numbers import INF, NAN, computed

X = np.array([[1, 5, 3], [4, 2, 6]], np.float32)


@pytest.mark.parametrize(
    ("op", "arguments", "places"),
    [
        ("max", {"dim": 0}, True),
        ("min", {"dim": -1, "keepdim": True}, True),
        ("median", {"dim": 0}, True),
        ("kthvalue", {"k": 1}, True),
        ("topk", {"k": 1, "dim": -1}, True),
        ("sort", {"dim": 0, "descending": True}, True),
        ("cummax", {"dim": 0}, True),
        ("cummin", {"dim": -1}, True),
        ("argmax", {"dim": 0}, False),
        ("argmin", {"dim": -1, "keepdim": True}, False),
        ("argsort", {"dim": 0}, False),
    ],
)
def test_a_scalar_is_picked_along_an_axis(op: str, arguments: dict[str, Any], places: bool) -> None:
    x = {"self": np.array(7, np.float32)}
    found = computed(op, x, arguments, *(["float32", "int64"] if places else ["int64"]))
    assert [v.tolist() for v in found] == ([7, 0] if places else [0])
    assert all(v.shape == () for v in found)


def test_extremes_of_truth_values() -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    both = {"self": a, "other": b}
    for larger, smaller in (("maximum", "minimum"), ("max", "min")):
        assert computed(larger, both, {}, "bool")[0].tolist() == [0, 1, 1, 1]
        assert computed(smaller, both, {}, "bool")[0].tolist() == [0, 0, 0, 1]
    for op, wanted in (("amax", True), ("amin", False)):
        assert computed(op, {"self": a}, {"dim": (0,)}, "bool")[0].tolist() is wanted


def test_the_number_where_the_other_is_none() -> None:
    both = {
        "self": np.array([NAN, 1, NAN, 2, -INF], np.float32),
        "other": np.array([3, NAN, NAN, 5, 0], np.float32),
    }
    np.testing.assert_array_equal(computed("fmax", both, {}, "float32")[0], [3, 1, NAN, 5, 0])
    np.testing.assert_array_equal(computed("fmin", both, {}, "float32")[0], [3, 1, NAN, 2, -INF])


def test_products_added_to_nothing() -> None:
    matrices = {"self": np.full((2, 2), NAN, np.float32), "mat1": X, "mat2": X.T.copy()}
    found = computed("addmm", matrices, {"beta": 0, "alpha": 2}, "float32")[0]
    np.testing.assert_array_equal(found, 2 * X @ X.T)


@pytest.mark.parametrize("padding", [False, True])
def test_means_with_a_divisor_of_their_own(padding: bool) -> None:
    window = {"kernel_size": (2, 2), "stride": (1, 1), "divisor_override": 8, "count_include_pad": padding}
    found = computed("avg_pool2d", {"self": X.reshape(1, 1, 2, 3)}, window, "float32")[0]
    assert found.tolist() == [[[[1.5, 2]]]]


@pytest.mark.parametrize(
    ("reduce", "own", "alone"),
    [
        ("amax", [[4, 5, 6], [4, 2, 6]], [[4, 5, 6], [4, 2, 6]]),
        ("amin", [[1, 2, 3], [4, 2, 6]], [[1, 2, 3], [4, 2, 6]]),
        ("prod", [[4, 50, 54], [4, 2, 6]], [[4, 10, 18], [4, 2, 6]]),
        ("mean", [[2, 4, 4], [4, 2, 6]], [[2.5, 3.5, 4.5], [4, 2, 6]]),
    ],
)
def test_slices_combined_at_positions(reduce: str, own: list[Any], alone: list[Any]) -> None:
    tensors = {"self": X, "index": np.array([0, 0]), "source": X}
    for include, wanted in ((True, own), (False, alone)):
        found = computed(
            "index_reduce", tensors, {"dim": 0, "reduce": reduce, "include_self": include}, "float32"
        )
        np.testing.assert_array_equal(found[0], wanted)
