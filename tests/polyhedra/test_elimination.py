"""What is left without quotients has the same points, each once; functions that are used stay linear."""

from __future__ import annotations

import islpy as isl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.polyhedra.elimination import without_quotients
from polyloom.polyhedra.functions import compose, is_linear, linear
from polyloom.polyhedra.lattice import Vector
from random_tests import tried


def left(text: str, rows: list[Vector]) -> isl.Set | None:
    """Return what is left of the points, after a check of the map."""
    points = isl.Set(text)
    found = without_quotients(points, rows)
    if found is None:
        return None
    onto = isl.Map.from_multi_aff(found.map)
    assert onto.is_injective()
    assert found.points.apply(onto).is_equal(points)
    used = linear(points.get_space(), [*rows, *[(0,) * len(rows[0])] * (len(rows[0]) - len(rows))])
    composed = isl.Map.from_multi_aff(compose(found.map, used)).as_pw_multi_aff().gist(found.points)
    assert is_linear(composed.as_multi_aff())
    return found.points


@pytest.mark.parametrize(
    ("text", "rows", "wanted"),
    [
        ("[n] -> { [b, i] : 32 b <= i < 32 b + 32 and 0 <= i < n }", [(0, 1)], "[i] : 0 <= i < n"),
        (
            "[n] -> { [b, i] : 0 <= b and 32 b + 32 <= n and 0 <= i < 32 }",
            [(32, 1)],
            "[i] : 0 <= i < 32*(n//32)",
        ),
        (
            "[n] -> { [c, b, i] : 4 b <= i < 4 b + 4 and 8 c <= 4 b < 8 c + 8 and 0 <= i < n }",
            [(0, 0, 1)],
            "[i] : 0 <= i < n",
        ),
        (
            "[n] -> { [t, b, i] : 0 <= t < 3 and 0 <= i < 4 and 0 <= 4 b + i < n }",
            [(0, 4, 1)],
            "[i, t] : 0 <= i < n and 0 <= t < 3",
        ),
        ("[n] -> { [b, i] : 32 b <= i <= 32 b + 32 and 0 <= i < n }", [(0, 1)], None),
        ("[n] -> { [b, i] : 0 <= b < n and 0 <= i < n }", [(1, 1)], None),
    ],
)
def test_loops_over_tiles_go_and_tiles_that_overlap_stay(
    text: str, rows: list[Vector], wanted: str | None
) -> None:
    found = left(text, rows)
    if wanted is None or found is None:
        assert found is None and wanted is None
    else:
        assert found.is_equal(isl.Set(f"[n] -> {{ {wanted} }}"))


@tried(60)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=2),
    width=st.integers(1, 6),
    shift=st.integers(-3, 3),
    by_place=st.booleans(),
)
def test_it_is_a_bijection(sizes: list[int], width: int, shift: int, by_place: bool) -> None:
    outer, inner = sizes
    inside = f"0 <= i < {width}" if by_place else f"{inner} b + {shift} <= i < {inner} b + {shift + width}"
    rows = [(0, inner, 1), (1, 0, 0)] if by_place else [(0, 0, 1), (1, 0, 0)]
    found = left(f"[n] -> {{ [a, b, i] : 0 <= a < n and {outer} <= b < n and {inside} }}", rows)
    assert (found is None) == (width > inner)
