"""The same points, written so that isl has less to do with them."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.simplify import as_box, plainly, with_explicit_divs

SETS = [
    "{ [o, i] : 0 <= o <= 9 and exists (e : 4i - 8 <= e <= 30 and 0 <= e and 8*floor(e/4) <= 3 - o + 2e) }",
    "[n] -> { [i] : exists (e, f : i = 2e + 3f and 0 <= e <= f <= n) }",
    "{ [i] : 0 <= i < 9 or i = 12 }",
    "{ [i] : false }",
]


def divisions(points: isl.Set) -> int:
    return sum(int(part.dim(isl.dim_type.div)) for part in points.get_basic_sets())


@pytest.mark.parametrize("text", SETS)
def test_the_points_stay(text: str) -> None:
    assert with_explicit_divs(isl.Set(text)).is_equal(isl.Set(text))
    assert plainly(isl.Set(text)).is_equal(isl.Set(text))
    assert as_box(isl.Set(text)).is_equal(isl.Set(text))


def test_what_is_settled_does_not_grow_by_what_it_has() -> None:
    points = isl.Set(SETS[0])
    low, high = isl.Set("{ [o, i] : i <= 7 }"), isl.Set("{ [o, i] : i >= 2 }")
    plain = points.intersect(low).intersect(points.intersect(high))
    sparing = with_explicit_divs(points).intersect(low).intersect(with_explicit_divs(points).intersect(high))
    assert sparing.is_equal(plain)
    assert divisions(plain) > divisions(points) >= divisions(sparing)


def test_relations_too() -> None:
    relation = isl.Map("{ [i] -> [j] : exists (e : 3e <= i + j <= 3e + 1 and 0 <= j <= e <= 9) }")
    assert with_explicit_divs(relation).is_equal(relation)


def test_a_condition_that_always_holds_leaves_a_box_plain() -> None:
    box = isl.Set("[n] -> { [i] : 0 <= i <= 3 and exists (e : n <= 3e <= n + 2) }")
    found = plainly(box)
    assert found.is_equal(box)
    assert "exists" not in str(found) and "floor" not in str(found)
    holes = isl.Set("{ [i] : 0 <= i <= 8 and (i <= 2 or i >= 6) }")
    assert plainly(holes).is_equal(holes)


def test_parts_with_remainders_that_are_together_a_box_are_one() -> None:
    rest = "8 <= j <= 55 or (j >= 8 and j mod 8 <= 6) or (j <= 55 and j mod 8 >= 1) or 1 <= j mod 8 <= 6"
    between = isl.Set(f"{{ PE[i, j] : 0 <= i <= 9 and 0 <= j <= 63 and ({rest}) }}").coalesce()
    assert between.n_basic_set() > 1, "isl finds it out itself"
    found = as_box(between)
    assert found.n_basic_set() == 1
    assert found.is_equal(isl.Set("{ PE[i, j] : 0 <= i <= 9 and 1 <= j <= 62 }"))
    corner = isl.Set("[n] -> { [i, j] : 0 <= i, j <= n and n <= 9 and (i = 0 or j = 0) }")
    assert as_box(corner).is_equal(corner)
    endless = isl.Set("{ [i] : i >= 5 or i <= 3 }")
    assert as_box(endless).is_equal(endless)
