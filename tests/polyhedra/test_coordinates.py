"""Other coordinates for a set, and a set as a few boxes: bijections and partitions, of the sets given."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.polyhedra.bounds import elementwise_maximum, elementwise_minimum, first_point, is_dense_box
from polyloom.polyhedra.coordinates import other_bases, without_constants
from polyloom.polyhedra.lattice import determinant, inverse
from polyloom.polyhedra.pieces import few_boxes


def is_box(points: isl.Set) -> bool:
    return is_dense_box(points, elementwise_minimum(points), elementwise_maximum(points))


def test_a_dimension_with_one_value_goes_away() -> None:
    """The compressed set (34) of Example 5.7: i1 is floor((3 - index - 2 PE_Y) / 4)."""
    points = isl.Set(
        "[index_0, index, PE_Y] -> { [i0 = 0:3, i1] : i1 = floor((3 - index - 2 PE_Y)/4) and "
        "0 <= index_0 <= 3 and 0 <= index <= 1 and 0 <= PE_Y <= 3 and -7 + index_0 <= 4 i1 <= index_0 }"
    )
    embedding = without_constants(points)
    assert embedding is not None and embedding.dim(isl.dim_type.in_) == 1
    smaller = points.preimage_multi_aff(embedding)
    assert smaller.apply(isl.Map.from_multi_aff(embedding)).is_equal(points)


def test_all_dimensions_may_go_away_and_none() -> None:
    embedding = without_constants(isl.Set("[n] -> { [i = 3, j = n] }"))
    assert embedding is not None and embedding.dim(isl.dim_type.in_) == 0
    assert without_constants(isl.Set("[n] -> { [i = 0:3, j = n:n + 1] }")) is None


@pytest.mark.parametrize(
    "text",
    [
        "[n] -> { [i, j] : n <= i < n + 4 and i <= j < i + 3 }",
        "[n] -> { [i, j] : 0 <= i < 4 and 0 <= j + 2 i - n < 3 }",
        "[n] -> { [i, j, k] : n <= i < n + 4 and i <= j < i + 3 and -2 <= k - j - i <= 5 }",
    ],
)
def test_a_parallelogram_is_a_box_in_another_basis(text: str) -> None:
    points = isl.Set(text)
    assert not is_box(points)
    assert any(is_box(points.preimage_multi_aff(basis)) for basis in other_bases(points))


def test_a_triangle_is_a_box_in_no_basis() -> None:
    points = isl.Set("{ [i, j] : 0 <= i and 0 <= j and i + j <= 3 }")
    assert not any(is_box(points.preimage_multi_aff(basis)) for basis in other_bases(points))


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=3, max_size=3), st.integers(1, 4))
def test_other_bases_are_bijections(rows: list[tuple[int, ...]], extent: int) -> None:
    bounds = [f"0 <= {' + '.join(f'{c} x{k}' for k, c in enumerate(row))} < {extent}" for row in rows]
    points = isl.Set(f"{{ [x0, x1, x2] : {' and '.join(bounds)} and -9 <= x0, x1, x2 <= 9 }}")
    for basis in other_bases(points):
        relation = isl.Map.from_multi_aff(basis)
        assert relation.is_bijective()
        moved = points.preimage_multi_aff(basis)
        assert moved.apply(relation).is_equal(points)


@given(st.lists(st.tuples(*[st.integers(-4, 4)] * 3), min_size=3, max_size=3))
def test_the_inverse_of_a_unimodular_matrix(rows: list[tuple[int, ...]]) -> None:
    matrix = tuple(rows)
    if abs(determinant(matrix)) == 1:
        other = inverse(matrix)
        product = [
            [sum(a * b for a, b in zip(r, c, strict=True)) for c in zip(*other, strict=True)] for r in matrix
        ]
        assert product == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("[n] -> { [i, j] : (0 <= i < 2 or 5 <= i < 9) and n <= j < n + 8 }", {2}),
        ("[n] -> { [i, j] : 0 <= i < 3 and i <= j < n }", {3}),
        ("{ [i, j] : 0 <= i < 2 and 0 <= j < 2 and i + j <= 1 }", {2}),
        ("{ [i, j] : 0 <= i and 0 <= j and i + j <= 9 }", set()),
    ],
)
def test_few_boxes_are_a_partition(text: str, counts: set[int]) -> None:
    points = isl.Set(text)
    ways = list(few_boxes(points, 4))
    assert {len(parts) for parts in ways} == counts
    for parts in ways:
        together = parts[0]
        for part in parts[1:]:
            assert together.is_disjoint(part)
            together = together.union(part)
        assert all(map(is_box, parts)) and together.is_equal(points)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("{ [i, j] : 3 <= i <= 5 and (i + j) mod 4 = 1 and -6 <= j <= 9 }", "{ [3, -6] }"),
        ("{ [i, j] : i = 7 and 0 <= j <= 2; [i, j] : i = 4 and 2 <= 2j <= 9 }", "{ [4, 1] }"),
        ("{ [i, j] : 0 <= i <= 3 and exists e : j = 3e and i < e <= i + 1 }", "{ [0, 3] }"),
        ("{ [] }", "{ [] }"),
        ("{ [i, j] : 1 = 0 }", "{ [i, j] : 1 = 0 }"),
    ],
)
def test_the_first_point(text: str, first: str) -> None:
    assert first_point(isl.Set(text)).is_equal(isl.Set(first))
