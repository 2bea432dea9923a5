"""Empty sets, sets without dimensions, several disjuncts, existentials: the functions at the edges."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.bounds import (
    box_between,
    constant_point,
    elementwise_maximum,
    elementwise_minimum,
    extent_between,
    is_dense_box,
    is_independent_of,
)
from polyloom.polyhedra.box_hull import box_hull
from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.enumeration import enumerate_sizes
from polyloom.polyhedra.functions import function_of
from polyloom.polyhedra.text.documents import point_text

POINT = "[n] -> { S[] : 0 <= n < 5 }"


def test_a_set_without_dimensions_is_a_dense_box_where_it_is_not_empty() -> None:
    points = isl.Set(POINT)
    low, high = elementwise_minimum(points), elementwise_maximum(points)
    assert low.is_equal(points) and high.is_equal(points)
    assert extent_between(low, high).is_equal(points)
    assert box_between(low, high).is_equal(points)
    assert is_dense_box(points, low, high)
    assert constant_point(low) == ()
    assert is_independent_of(low, ["n"])


def test_the_box_between_bounds_holds_where_the_bounds_do() -> None:
    points = isl.Set("[n] -> { S[i] : 0 <= i < n <= 4 }")
    box = box_between(elementwise_minimum(points), elementwise_maximum(points))
    assert box.is_equal(points)


def test_the_hull_of_a_set_without_dimensions_has_no_sizes() -> None:
    hull = box_hull(isl.Set(POINT))
    assert hull is not None
    assert hull.size == ()
    assert hull.as_set().intersect_params(isl.Set(POINT).params()).is_equal(isl.Set(POINT))


def test_an_empty_set_has_no_hull_and_no_constant_point() -> None:
    nothing = isl.Set("[n] -> { S[i, j] : false }")
    assert box_hull(nothing) is None
    assert constant_point(elementwise_minimum(nothing)) is None


def test_compression_of_a_point_has_no_dimensions() -> None:
    compression = variable_compression(isl.Set("[n] -> { S[n, 2n + 1] : 0 <= n < 5 }"))
    assert compression.compressed.is_equal(isl.Set("[n] -> { [] : 0 <= n < 5 }"))
    assert isl.Map.from_multi_aff(compression.map).is_equal(isl.Map("[n] -> { [] -> S[n, 2n + 1] }"))


@pytest.mark.parametrize(
    "text",
    [
        "{ S[i] : 0 <= i < 3 or 7 <= i < 9 }",
        "{ S[i, j] : (i = 0 and 0 <= j < 3) or (j = 5 and 1 <= i < 4) }",
        "{ S[i, j] : exists a : i = 3a and j = 2a + 1 and 0 <= a < 5 }",
        "[n] -> { S[i, j] : exists a : i + j = 4a + n and 0 <= i, j < 6 and 0 <= n < 4 }",
        "[n] -> { S[i, j] : (i + j = n or i - j = n) and 0 <= i, j < 6 and 0 <= n < 6 }",
        "[m, n] -> { S[i, j, k] : 2i + 3j = n and k = m - i and 0 <= i, j < 6 and 0 <= m, n < 20 }",
    ],
)
def test_compression_loses_no_point_and_maps_no_two_to_one(text: str) -> None:
    points = isl.Set(text)
    compression = variable_compression(points)
    forth = isl.Map.from_multi_aff(compression.map)
    assert forth.is_injective()
    assert compression.compressed.apply(forth).is_equal(points)


def test_parameters_in_another_order_give_the_same_box() -> None:
    one = isl.Set("[PE_X, PE_Y, n] -> { S[i] : 4PE_X + n <= i < 4PE_X + n + 4 and 0 <= PE_X, PE_Y, n < 3 }")
    other = isl.Set("[n, PE_Y, PE_X] -> { S[i] : 4PE_X + n <= i < 4PE_X + n + 4 and 0 <= PE_X, PE_Y, n < 3 }")
    hulls = box_hull(one), box_hull(other)
    assert hulls[0] is not None and hulls[1] is not None
    assert hulls[0].size == hulls[1].size == (4,)
    assert hulls[0].as_set().is_equal(hulls[1].as_set())


def test_the_hull_of_several_disjuncts_spans_all_of_them() -> None:
    hull = box_hull(isl.Set("[n] -> { S[i] : n <= i < n + 2 or n + 5 <= i < n + 6 }"))
    assert hull is not None
    assert hull.size == (6,)


def test_sizes_of_a_set_without_dimensions_have_one_identifier() -> None:
    enumeration = enumerate_sizes(isl.Set(POINT), ["n"], [])
    assert enumeration is not None
    assert enumeration.extents == ()
    assert enumeration.identifiers.is_equal(isl.Set("{ S[] }"))


def test_a_point_under_strides_and_bounds_is_one() -> None:
    rest = (
        "i0 mod 2 = 0 and i1 mod 3 = 0 and 0 <= i0 <= 2 and i0 - 3 <= i1 < i0 and 0 <= i1 <= min(6, 7i0 - 14)"
    )
    assert constant_point(isl.Set(f"{{ x[i0, i1, i2 = 84 - 42i0 + 6i1] : {rest} }}")) == (2, 0, 0)
    assert constant_point(isl.Set(f"{{ x[i0, i1, i2] : {rest} and 0 <= i2 <= 1 }}")) is None


OF_SEVERAL_PIECES = (
    "[p, q] -> { S[x0, x1, x2 = -1 - p + q - x0 + x1] : (-1 - p + 3q + x0 + 2x1) mod 6 = 0 "
    "and -1 <= p <= 2 and -1 <= q <= 2 and 0 <= x0 <= 4 and x1 > p - q + x0 and 0 <= x1 <= 4 "
    "and x1 <= 5 + p - q + x0 }"
)
"""Of its maximum isl's conversion to a function loses a whole piece, the first time that it is asked."""


def test_a_point_of_several_pieces_has_a_value_wherever_it_has_one() -> None:
    highest = elementwise_maximum(isl.Set(OF_SEVERAL_PIECES))
    assert isl.Set.from_pw_multi_aff(function_of(highest)).is_equal(highest)


def test_the_text_of_a_point_of_several_pieces_is_read_as_it() -> None:
    highest = elementwise_maximum(isl.Set(OF_SEVERAL_PIECES))
    assert isl.Set(point_text(highest)).is_equal(highest)
