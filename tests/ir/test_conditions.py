"""Conditions on iterators with known ranges: nothing changes for any point, and what is decided is gone."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.ir.conditions import decided, ranges_of
from polyloom.ir.integers import holds, integer
from polyloom.mdh.tree.ranges import end_of
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


@given(conditions())
def test_what_ends_a_loop_holds_as_far_as_its_end(condition: IntExpression) -> None:
    end = end_of(condition, "i")
    for i, j, n in product(range(-9, 10), range(3), (-4, 0, 3)) if end is not None else ():
        names = {"j": j, "n": n}
        assert holds(condition, {"i": i, **names}) == (i < integer(end, names)), (i, names)


@pytest.mark.parametrize(
    ("sign", "left", "right", "end"),
    [
        ("<", sum_of(((1, ROW), (4, COLUMN))), N, sum_of(((1, N), (-4, COLUMN)))),
        (">=", sum_of(((1, N), (-1, ROW))), Number(3), sum_of(((1, N), (1, Number(-2))))),
        ("<", sum_of(((2, ROW), (4, COLUMN))), N, None),
        ("<", N, ROW, None),
        ("!=", ROW, N, None),
        ("<", ROW, Operation("/", (ROW, Number(2))), None),
    ],
)
def test_where_loops_end(
    sign: str, left: IntExpression, right: IntExpression, end: IntExpression | None
) -> None:
    assert end_of(Operation(sign, (left, right)), "i") == end


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
