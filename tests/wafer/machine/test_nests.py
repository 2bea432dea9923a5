"""Index sequences as nests: the nest visits them all, in their order, or there is none."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.polyhedra.bounds import constant_point
from polyloom.polyhedra.functions import coefficients as matrix
from polyloom.wafer.machine.descriptor_nests import Nest, find_nest, linear_function
from random_tests import tried


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("{ index[i, j] : 0 <= i < 3 and 0 <= j < 4 }", (3, 4)),
        ("{ index[j] : j mod 2 = 1 and 0 <= j < 10 }", (5,)),
        ("{ index[i, 7] : 2 <= i < 5 }", (3,)),
        ("{ index[i, i + 3] : 0 <= i < 4 }", (4,)),
        ("[PE_X] -> { index[i] : 4PE_X <= i < 4PE_X + 4 and 0 <= PE_X < 3 }", (4,)),
        ("{ index[5, 6] }", ()),
        ("{ index[a, b, c, d] : 0 <= a, b, c, d < 2 }", (2, 2, 2, 2)),
    ],
)
def test_sequences_that_are_nests(text: str, size: tuple[int, ...]) -> None:
    indices = isl.Set(text)
    nest = find_nest(indices, ())
    assert nest is not None
    assert constant_point(nest.size) == size
    visited = indices.apply(isl.Map.from_multi_aff(nest.order).reverse())
    assert visited.apply(isl.Map.from_multi_aff(nest.order)).is_equal(indices)


@pytest.mark.parametrize(
    "text",
    [
        "{ index[i, j] : 0 <= i < 3 and 0 <= j <= i }",
        "{ index[i] : 0 <= i < 3 or 6 <= i < 9 }",
        "{ index[a, b, c, d, e] : 0 <= a, b, c, d, e < 2 }",
        "[o0] -> { index[i] : 0 <= i <= o0 < 3 }",
    ],
)
def test_sequences_that_are_none(text: str) -> None:
    assert find_nest(isl.Set(text), ("o0",)) is None


def test_a_size_may_depend_on_what_does_not_vary() -> None:
    indices = isl.Set("[PE_X] -> { index[i] : 0 <= i <= PE_X < 3 and PE_X >= 0 }")
    assert find_nest(indices, ()) is not None
    assert find_nest(indices, ("PE_X",)) is None


def test_an_access_through_a_nest() -> None:
    nest = find_nest(isl.Set("{ index[j] : j mod 2 = 1 and 0 <= j < 10 }"), ())
    assert nest is not None
    access = nest.access(isl.MultiAff("{ index[k] -> y_local[3k, 1] }"))
    assert isl.Map.from_multi_aff(access).is_equal(isl.Map("{ [i] -> y_local[6i + 3, 1] }"))


def test_an_access_that_is_whole_on_the_nest_only() -> None:
    nest = find_nest(isl.Set("{ index[j] : j mod 2 = 0 and 0 <= j < 8 }"), ())
    function = linear_function(isl.Map("{ index[i] -> y[j] : 2j = i and 0 <= i < 8 }"))
    assert nest is not None and function is not None
    assert isl.Map.from_multi_aff(nest.access(function)).is_equal(isl.Map("{ [i] -> y[i] }"))


@pytest.mark.parametrize(
    ("text", "linear"),
    [
        ("{ index[i] -> y[2i + 1] : 0 <= i < 4 }", True),
        ("[n] -> { index[i] -> y[i + floor(n/2)] : 0 <= i < 4 }", True),
        ("{ index[i] -> y[j] : 2j = i and 0 <= i < 8 }", True),
        (
            "[p, q] -> { index[i, j] -> y[a, b] : 0 <= p < 4 and 12b = -2q + i + 12j - a and"
            " (-2q + i - a) mod 24 = 0 and 0 <= q <= 143 and 0 <= j <= 28 and a >= -22 + i and a >= 0"
            " and -72 - 2q + i + 12j <= a <= -2q + i + 12j and a <= 6 and a <= i }",
            True,
        ),
        ("{ index[i] -> y[floor(i/2)] : 0 <= i < 8 }", False),
        ("{ index[i] -> y[i] : 0 <= i < 4; index[i] -> y[i + 3] : 4 <= i < 8 }", False),
    ],
)
def test_linear_functions(text: str, linear: bool) -> None:
    relation = isl.Map(text)
    function = linear_function(relation)
    assert (function is not None) == linear
    if function is not None:
        assert relation.is_subset(isl.Map.from_multi_aff(function))


@given(
    rows=st.lists(st.tuples(*[st.integers(-2, 3)] * 2, st.integers(-3, 3)), min_size=1, max_size=3),
    extents=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
@tried(60)
def test_a_nest_runs_through_the_indices_in_their_order(
    rows: list[tuple[int, int, int]], extents: tuple[int, int]
) -> None:
    texts = ", ".join(f"{a}i + {b}j + {c}" for a, b, c in rows)
    box = isl.Set(f"{{ [i, j] : 0 <= i < {extents[0]} and 0 <= j < {extents[1]} }}")
    indices = box.apply(isl.Map(f"{{ [i, j] -> index[{texts}] }}"))
    nest = find_nest(indices, ())
    if nest is None:
        return
    points = itertools.product(*map(range, *_corners(nest)))
    visited = [tuple(_at(row, point) for row in _rows(nest)) for point in points]
    assert visited == sorted(set(visited)), "in order, each once"
    assert set(visited) == {
        tuple(_at(row, p) for row in rows) for p in itertools.product(*map(range, extents))
    }


def _corners(nest: Nest) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first point, and the one behind the last."""
    start, size = constant_point(nest.start), constant_point(nest.size)
    assert start is not None and size is not None
    return start, tuple(s + n for s, n in zip(start, size, strict=True))


def _rows(nest: Nest) -> list[tuple[int, ...]]:
    """Return the coefficients and the constant of each index."""
    functions = [nest.order.get_at(k) for k in range(nest.order.dim(isl.dim_type.out))]
    return [
        (*coefficients, f.get_constant_val().to_python())
        for coefficients, f in zip(matrix(nest.order), functions, strict=True)
    ]


def _at(row: Sequence[int], point: Sequence[int]) -> int:
    return sum(c * p for c, p in zip(row, (*point, 1), strict=True))
