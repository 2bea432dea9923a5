"""Box hulls at affine functions that no constraint shows."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.box_hull import box_hull

IMPLIED = {
    "two digits": ("[x, y] -> { S[i] : 0 <= i < 64 and i mod 4 = y and 4 * x <= i < 4 * x + 4 }", (1,)),
    "blocks in blocks": ("[x, y] -> { S[i] : x = i // 8 and y = (i mod 8) // 2 and 0 <= i < 64 }", (2,)),
    "beside a dimension": (
        "[x, y] -> { S[i, j] : 0 <= i < 64 and i mod 4 = y and x = i // 4 and i <= j < i + 3 }",
        (1, 3),
    ),
}


@pytest.mark.parametrize("name", IMPLIED)
def test_digits_leave_one_value(name: str) -> None:
    text, size = IMPLIED[name]
    points = isl.Set(text)
    found, plain = box_hull(points, implied=True), box_hull(points)
    assert found is not None and found.size == size
    assert plain is None or plain.size > size
    assert points.is_subset(found.as_set().intersect_params(points.params()))


def test_what_is_implied_must_halve_the_size() -> None:
    points = isl.Set("[x] -> { S[i] : (i - x) mod 4 = 0 and 0 <= x < 4 and 0 <= i < 16 }")
    found, plain = box_hull(points, implied=True), box_hull(points)
    assert found is not None and plain is not None and found.size == plain.size
