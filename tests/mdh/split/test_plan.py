"""Shares of places by their costs: nothing is lost, the last is done as early as can be, and what pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.mdh.split.plan import Cost, divide, line, measured

COSTS = st.builds(Cost, st.floats(0, 1), st.floats(1e-6, 1e-2))


def test_equal_places_get_equal_rows_and_a_slow_one_none() -> None:
    plan = divide(100, [("a", Cost(0, 1e-3)), ("b", Cost(0, 1e-3)), ("c", Cost(9, 1e-3))])
    assert [(s.place, s.first, s.rows) for s in plan.shares] == [("a", 0, 50), ("b", 50, 50), ("c", 100, 0)]
    odd = divide(13, [(str(k), Cost(0, 1e-3)) for k in range(4)])
    assert sorted(s.rows for s in odd.shares) == [3, 3, 3, 4]
    assert plan.seconds == pytest.approx(0.05) and plan.alone == ("a", pytest.approx(0.1))


def test_it_pays_from_where_the_fixed_costs_are_made_up_for() -> None:
    far = Cost(1.0, 1e-3)
    plan = divide(10, [("here", Cost(0, 1e-3)), ("there", far)])
    assert plan.pays_from is not None and 1000 < plan.pays_from <= 1536
    assert [s.rows for s in plan.shares] == [10, 0]
    assert divide(10, [("here", Cost(0, 1e-3)), ("there", Cost(0, 10.0))]).pays_from is None
    assert divide(10, [("here", Cost(0, 1e-3))]).pays_from is None


def test_what_was_measured_says_whether_it_pays() -> None:
    here = Cost(0, 1e-3)
    plan = divide(100, [("here", here), ("there", here)])
    assert plan.pays_from == 2
    assert measured(plan, 0.05, 0.1).pays_from == 2
    assert measured(plan, 0.06, 0.1).pays_from == 24  # 10 ms a call, and half a millisecond a row saved
    assert measured(plan, 0.25, 0.1).pays_from == 512
    assert measured(plan, 0.052, 0.05).pays_from is None  # alone is faster than was expected


def test_a_line_through_two_measurements() -> None:
    assert line((10, 2.0), (20, 3.0)) == Cost(pytest.approx(1.0), pytest.approx(0.1))
    assert line((10, 3.0), (20, 3.0)).row > 0
    assert line((10, 5.0), (20, 3.0)).fixed >= 0


@given(st.integers(1, 5000), st.lists(COSTS, min_size=1, max_size=4))
def test_every_row_is_done_once_and_no_move_of_a_row_helps(rows: int, costs: list[Cost]) -> None:
    plan = divide(rows, [(str(k), cost) for k, cost in enumerate(costs)])
    at = 0
    for share in plan.shares:
        assert share.first == at and share.rows >= 0
        at += share.rows
    assert at == rows
    last = max(plan.shares, key=lambda s: s.seconds)
    for other in plan.shares:
        if other is not last:
            assert other.cost.seconds(other.rows + 1) >= last.seconds - last.cost.row - 1e-9
