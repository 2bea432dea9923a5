"""Conditions on iterators with known ranges: nothing changes for any point, and what is decided is gone."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.ir.conditions import decided, ranges_of
from polyloom.ir.integers import holds
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

ROW, COLUMN, N = Name("i"), Name("j"), Name("n")
EXTENTS = {"i": 4, "j": 3}
RANGES = ranges_of(tuple(EXTENTS), tuple(map(Number, EXTENTS.values())))
COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def conditions() -> st.SearchStrategy[IntExpression]:
    factor = st.integers(-2, 2)
    sums = st.builds(
        lambda a, b, c, d: sum_of(((a, ROW), (b, COLUMN), (c, N), (1, Number(d)))),
        factor,
        factor,
        st.sampled_from([0, 0, 0, 1]),
        st.integers(-9, 9),
    )
    quotients = st.builds(lambda a, b: Operation("/", (a, Number(b))), sums, st.sampled_from([2, 3]))
    values = st.one_of(sums, quotients)
    compared = st.builds(lambda o, a, b: Operation(o, (a, b)), st.sampled_from(COMPARED), values, values)

    def grown(inner: st.SearchStrategy[IntExpression]) -> st.SearchStrategy[IntExpression]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.builds(Operation, st.sampled_from(["and", "or"]), several),
            st.builds(lambda a: Operation("not", (a,)), inner),
        )

    return st.recursive(compared, grown, max_leaves=5)


@given(conditions(), st.integers(-4, 4))
def test_a_condition_holds_where_it_held(condition: IntExpression, n: int) -> None:
    known = decided(condition, RANGES)
    for i, j in product(*map(range, EXTENTS.values())):
        names = {"i": i, "j": j, "n": n}
        assert holds(known, names) == holds(condition, names), names


@pytest.mark.parametrize("operator", COMPARED)
@pytest.mark.parametrize("other", range(-2, 9))
def test_a_comparison_that_every_point_decides_alike_is_decided(operator: str, other: int) -> None:
    value = sum_of(((1, ROW), (1, COLUMN)))
    condition = Operation(operator, (value, Number(other)))
    points = [{"i": i, "j": j} for i, j in product(*map(range, EXTENTS.values()))]
    found = {holds(condition, names) for names in points}
    known = decided(condition, RANGES)
    assert known == (Number(int(found.pop())) if len(found) == 1 else condition)


def test_what_is_not_known_stays() -> None:
    known = Operation("<=", (ROW, Number(3)))
    open_ = Operation("<", (ROW, N))
    assert decided(Operation("and", (known, open_)), RANGES) == open_
    assert decided(Operation("or", (known, open_)), RANGES) == Number(1)
    assert decided(open_, RANGES) == open_
    assert ranges_of(("i", "j"), (Number(0), N)) == {}
