"""Straightening and elimination are bijections onto the given set; boxes hold all points."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.polyhedra.elimination import eliminate
from polyloom.polyhedra.loops.affine_expressions import affine_value
from polyloom.polyhedra.loops.tree import Name, Operation
from polyloom.polyhedra.rectangularise import NoBox, straighten
from random_tests import tried

CONTEXT = isl.Set("[n, w] -> { : }")


def check_bijection(points: isl.Set) -> None:
    reduced = eliminate(points)
    assert isl.Map.from_multi_aff(reduced.map).is_injective()
    assert reduced.points.apply(isl.Map.from_multi_aff(reduced.map)).is_equal(points)
    box = straighten(reduced.points, CONTEXT)
    coordinates = isl.Map.from_multi_aff(box.coordinates)
    assert coordinates.is_injective()
    assert box.points.apply(coordinates).is_equal(reduced.points)
    assert box.points.is_subset(box.rectangle())


@pytest.mark.parametrize(
    "text",
    [
        "S[i, j] : 0 <= i < n and i <= j < i + 5",
        "S[i, j] : 3 <= i < n and i + 2 <= j < i + 5",
        "S[i, j] : 1 <= i < n - 1 and 1 <= j <= n - 2",
        "S[t, i, j] : 4t + 2i + j = w and 0 <= t < 9 and 0 < i < n - 1 and 0 < j < n - 1",
        "S[i] : 0 <= i < n and i mod 3 = 1",
    ],
)
def test_parallelograms_and_strides_become_full_boxes_or_boxes_with_a_mask(text: str) -> None:
    check_bijection(isl.Set(f"[n, w] -> {{ {text} }}"))


def test_a_parallelogram_is_a_full_box() -> None:
    box = straighten(
        isl.Set("[n, m] -> { [i, j] : 0 <= i < n and i <= j < i + m }"), isl.Set("[n, m] -> { : }")
    )
    assert box.points.is_equal(isl.Set("[n, m] -> { [i, j] : 0 <= i < n and 0 <= j < m }"))
    assert box.points.is_equal(box.rectangle())


def test_a_set_without_a_bound_has_no_box() -> None:
    with pytest.raises(NoBox):
        straighten(isl.Set("{ [i] : i >= 0 }"), isl.Set("{ : }"))


COEFFICIENTS = st.integers(-2, 2)


@given(
    st.lists(st.tuples(COEFFICIENTS, COEFFICIENTS, COEFFICIENTS, st.integers(-4, 4)), max_size=3), st.data()
)
@tried(60)
def test_random_sets(rows: list[tuple[int, int, int, int]], data: st.DataObject) -> None:
    sign = data.draw(st.sampled_from([">= 0", "= 0"]))
    extra = "".join(f" and {a}i + {b}j + {c}w + {d} {sign}" for a, b, c, d in rows[:1])
    extra += "".join(f" and {a}i + {b}j + {c}w + {d} >= 0" for a, b, c, d in rows[1:])
    points = isl.Set(f"[n, w] -> {{ S[i, j] : 0 <= i < n and -3 <= j < 6{extra} }}")
    if not points.is_empty():
        check_bijection(points)


def test_floors_are_written_out() -> None:
    aff = isl.MultiAff("[n] -> { [i] -> [floor((i + n) / 2)] }").get_at(0)
    value = affine_value(aff, (Name("i"),))
    assert isinstance(value, Operation) and value.operator == "floor"
