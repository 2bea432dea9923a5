"""Histograms, what comes most often, elements put at places by data or masks, and scalars among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_special_numbers import INF, NAN, computed

R = np.random.default_rng(3)


@pytest.mark.parametrize("ends", [{"min": -2, "max": 3}, {}])
def test_a_histogram(ends: dict[str, int]) -> None:
    x = np.array([-2, -1, 0, 0.5, 3, 2.999, 1, 7, -9], np.float32)
    x = np.append(x, [NAN, INF]).astype(np.float32) if ends else x
    (found,) = computed("histc", {"self": x}, {"bins": 4, **ends}, "float32")
    low, high = (-2, 3) if ends else (-9, 7)
    assert found.tolist() == np.histogram(x[np.isfinite(x)], 4, (low, high))[0].tolist()


def test_a_histogram_of_one_number() -> None:
    (found,) = computed("histc", {"self": np.full(5, 2, np.float32)}, {"bins": 3}, "float32")
    assert found.tolist() == [0, 5, 0]


@pytest.mark.parametrize("kind", ["int64", "float32", "bool"])
def test_what_comes_most_often(kind: str) -> None:
    x = R.integers(0, 2 if kind == "bool" else 4, (6, 7)).astype(kind)
    values, places = computed("mode", {"self": x}, {"dim": 1}, kind, "int64")
    for row, value, place in zip(x.tolist(), values, places, strict=True):
        most = max(map(row.count, row))
        assert value == min(v for v in row if row.count(v) == most)
        assert place == max(k for k, v in enumerate(row) if v == value)


def test_the_middle_of_the_numbers() -> None:
    x = np.array([[NAN, 3, 1, NAN, 2], [5, 4, NAN, NAN, 1], [7, 1, 3, NAN, 5]], np.float32)
    values, places = computed("nanmedian", {"self": x}, {"dim": 1, "keepdim": True}, "float32", "int64")
    assert values.tolist() == [[2], [4], [3]]
    assert places.tolist() == [[4], [1], [2]]
    assert computed("nanmedian", {"self": x}, {}, "float32")[0] == 3
    assert np.isnan(computed("nanmedian", {"self": x[:, 3]}, {}, "float32")[0])


def test_the_first_none() -> None:
    found = computed("topk", {"self": np.ones((2, 3), np.float32)}, {"k": 0}, "float32", "int64")
    assert [v.shape for v in found] == [(2, 0), (2, 0)]


def test_rows_in_an_order_of_their_own() -> None:
    rows, order = np.array([3, 1, 2], np.float32), np.array([1, 2, 0])
    given = {"sorted_sequence": rows, "self": np.array([0, 2.5, 9], np.float32), "sorter": order}
    assert computed("searchsorted", given, {}, "int64")[0].tolist() == [0, 2, 3]


@pytest.mark.parametrize(("name", "wanted"), [("add", [1, 12, 303]), ("multiply", [1, 20, 30000])])
def test_a_scatter_that_is_a_reduction(name: str, wanted: list[float]) -> None:
    given = {"self": np.array([1, 2, 3], np.float32), "index": np.array([1, 2, 2])}
    given["src"] = np.array([10, 100, 100], np.float32)
    wanted[2] = 203 if name == "add" else wanted[2]
    assert computed("scatter", given, {"dim": 0, "reduce": name}, "float32")[0].tolist() == wanted


def test_numbers_where_a_mask_is_true() -> None:
    x, mask = np.zeros((3, 4), np.float32), R.random((3, 4)) < 0.5
    source = np.arange(1, 20, dtype=np.float32)
    wanted = x.copy()
    wanted[mask] = source[: mask.sum()]
    given = {"self": x, "mask": mask, "source": source}
    np.testing.assert_array_equal(computed("masked_scatter", given, {}, "float32")[0], wanted)


def test_the_gradient_of_numbers_under_a_mask() -> None:
    mask, dy = R.random((3, 4)) < 0.5, R.integers(-9, 9, (3, 4)).astype(np.float32)
    given = {"grad_output": dy, "mask": mask}
    found = computed("masked_scatter_backward", given, {"sizes": (2, 7)}, "float32")[0]
    wanted = np.zeros(14)
    wanted[: mask.sum()] = dy[mask]
    np.testing.assert_array_equal(found.ravel(), wanted)


@pytest.mark.parametrize("accumulate", [False, True])
def test_numbers_put_among_all(accumulate: bool) -> None:
    x, wanted = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(12, dtype=np.float32)
    given = {"self": x, "index": np.array([[1, 5, -1]]), "source": np.array([[50, 60, 70]], np.float32)}
    wanted[[1, 5, -1]] = [51, 65, 81] if accumulate else [50, 60, 70]
    found = computed("put", given, {"accumulate": accumulate}, "float32")[0]
    np.testing.assert_array_equal(found, wanted.reshape(3, 4))


def test_words_that_do_not_count() -> None:
    rows = R.integers(-9, 9, (4, 3)).astype(np.float32)
    words, offsets = np.array([1, 2, 2, 3, 1, 1]), np.array([0, 2, 4])
    bags = [[2], [2, 3], []]
    for mode, combined in enumerate((np.sum, np.mean, np.max)):
        wanted = [combined(rows[bag], 0) if bag else np.zeros(3) for bag in bags]
        given = {"weight": rows, "indices": words, "offsets": offsets}
        found = computed("embedding_bag", given, {"mode": mode, "padding_idx": 1}, "float32")[0]
        np.testing.assert_array_equal(found, wanted)


SCALARS: list[tuple[str, dict[str, Any], dict[str, Any], float]] = [
    ("index_select", {"index": np.array([0])}, {"dim": 0}, 7),
    ("gather", {"index": np.array(0)}, {"dim": -1}, 7),
    ("scatter", {"index": np.array(0), "src": np.array(3, np.float32)}, {"dim": 0}, 3),
    ("scatter_add", {"index": np.array(0), "src": np.array(3, np.float32)}, {"dim": 0}, 10),
    ("index_add", {"index": np.array([0]), "source": np.array([3], np.float32)}, {"dim": 0}, 10),
    ("index_copy", {"index": np.array([0]), "source": np.array([3], np.float32)}, {"dim": 0}, 3),
    (
        "scatter_reduce",
        {"index": np.array(0), "src": np.array(9, np.float32)},
        {"dim": 0, "reduce": "amax"},
        9,
    ),
]


@pytest.mark.parametrize(("op", "tensors", "arguments", "wanted"), SCALARS, ids=[row[0] for row in SCALARS])
def test_a_scalar_is_a_row_of_one(
    op: str, tensors: dict[str, Any], arguments: dict[str, Any], wanted: float
) -> None:
    (found,) = computed(op, {"self": np.array(7, np.float32), **tensors}, arguments, "float32")
    assert found.shape == () and found == wanted


def test_a_slice_at_a_place_that_is_data() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for place in (2, -1):
        given = {"self": x, "index": np.array(place)}
        np.testing.assert_array_equal(computed("select", given, {"dim": 1}, "float32")[0], x[:, place])


def test_places_in_a_triangle() -> None:
    for op, numpy in (("tril_indices", np.tril_indices), ("triu_indices", np.triu_indices)):
        found = computed(op, {}, {"row": 3, "col": 4, "offset": 1}, "int64")[0]
        np.testing.assert_array_equal(found, numpy(3, 1, 4))


def test_variances_of_too_few_elements() -> None:
    x = np.array([[1], [2]], np.float32)
    assert np.isnan(computed("var", {"self": x}, {"dim": (1,), "correction": 1}, "float32")[0]).all()
    wide = np.array([[1, 3], [2, 2]], np.float32)
    found = computed("std", {"self": wide}, {"dim": (1,), "correction": 5}, "float32")[0]
    np.testing.assert_array_equal(found, [INF, NAN])
    found = computed("var", {"self": wide}, {"dim": (1,), "correction": 0.5}, "float32")[0]
    np.testing.assert_allclose(found, [2 / 1.5, 0])


def test_arithmetic_of_truth_values() -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    both = {"self": a, "other": b}
    for op, wanted in (("add", a | b), ("fmax", a | b), ("fmin", a & b)):
        np.testing.assert_array_equal(computed(op, both, {}, "bool")[0], wanted)
    for op, wanted in (("sign", a), ("sgn", a), ("isfinite", a | True), ("isinf", a & False)):
        np.testing.assert_array_equal(computed(op, {"self": a}, {}, "bool")[0], wanted)
    assert not computed("signbit", {"self": a}, {}, "bool")[0].any()
