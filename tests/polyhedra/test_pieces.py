"""Points in pieces: what is made of them takes as many steps as there are pieces."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.bounds import (
    box_between,
    elementwise_maximum,
    elementwise_minimum,
    extent_between,
    is_dense_box,
)
from polyloom.polyhedra.effort import at_most, spent
from polyloom.polyhedra.text.points import sample_of

FOUR = isl.Set(
    "[p, q] -> { S[i, j, k, l] : exists (e : 0 <= p, q < 12 and 3e <= p + 2q < 3e + 2"
    " and 0, 3p - 4q - e <= i <= 2p, 20 and 0, 3p - 5q - e <= j <= 2p + q, 21"
    " and 0, 3p - 6q - e <= k <= 2p + 2q, 22 and 0, 3p - 7q - e <= l <= 2p + 3q, 23) }"
)


def test_dimensions_do_not_multiply_the_pieces_of_each_other() -> None:
    low, high = elementwise_minimum(FOUR), elementwise_maximum(FOUR)
    with at_most(20_000):
        box = box_between(low, high)
    pairs = low.n_basic_set() * high.n_basic_set()
    with at_most(50_000 + 1_000 * pairs):
        size = extent_between(low, high)
    assert box.is_equal(FOUR)
    assert is_dense_box(FOUR, low, high)
    assert size.params().is_equal(FOUR.params())


def test_a_size_is_found_without_the_remainders_of_both_ends() -> None:
    """Rows by their remainder, columns in tiles that do not divide: the ends have both, the size none."""
    points = isl.Set(
        "[x, y] -> { S[h, w] : exists t : w - 18 <= 19t <= w and y = h + 112t"
        " and 0 <= h, w < 112 and 0 <= x < 64 }"
    )
    low, high = elementwise_minimum(points), elementwise_maximum(points)
    with at_most(10_000):
        size = extent_between(low, high)
    wanted = "{ S[1, 19] : 0 <= y < 560; S[1, 17] : 560 <= y < 672 }"
    assert size.is_equal(isl.Set(f"[x, y] -> {wanted}").intersect_params(points.params()))


def test_pairs_of_pieces_are_counted() -> None:
    low, high = elementwise_minimum(FOUR), elementwise_maximum(FOUR)
    with at_most(10**9):
        before = spent()
        extent_between(low, high)
        assert spent() - before > 1_000 * (low.n_basic_set() * high.n_basic_set() - 1) > 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{ ff[i, j] : 3 < i < 9 and i <= j < 12 }", "ff[4, 4]"),
        ("[p, q] -> { ff[i, j] : 2 <= p, q < 5 and p <= i < 7 and j = i + q }", "ff[2, 4]"),
        ("[p] -> { y[] : 0 <= p < 4 }", "y[]"),
        ("[p] -> { [PE[x, y] -> a[i]] : 0 <= x, y, i < 3 and x + y > p > 0 }", "[PE[0, 2] -> a[0]]"),
        ("{ ff[i] : i >= 5 }", "ff[5]"),
    ],
)
def test_the_sample_is_the_first_point(text: str, found: str) -> None:
    assert sample_of(isl.Set(text)) == found


def test_a_sample_where_isl_fails() -> None:
    """isl's ``lexmin`` ends in an error on this set; a message is no reason to end with it."""
    points = isl.Set(
        "[P] -> { S[i, j, k, l] : (i - P) mod 3 = 0 and (i - P + 3k) mod 12 = 0 and 0 <= P <= 47"
        " and 0 <= j <= 2 and -i - 3k <= 12l <= 11 - i - 3k and ((i >= 3 and k >= 0 and 3k <= 11 - i)"
        " or (i < 0 and k <= 3 and 3k >= -i)) }"
    )
    with pytest.raises(isl.Error):
        points.lexmin()
    assert sample_of(points).startswith("S[")
