"""What isl may spend is limited by a count of its own operations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import islpy as isl
import pytest

from polyloom.polyhedra.effort import TooHardError, apart, at_most, keeping_answers, remembered, spent


def much_work() -> isl.Set:
    points = isl.Set("{ [i, j] : 0 <= i, j < 100 and exists k : 3k = 2i + j }")
    for n in range(2, 40):
        points = points.subtract(isl.Set(f"{{ [i, j] : i mod {n} = 1 and j mod {n + 1} = 0 }}"))
    return points


@pytest.mark.parametrize("operations", [100, 1000, 10000, 30000])
def test_too_much_work_is_given_up(operations: int) -> None:
    with pytest.raises(TooHardError), at_most(operations):
        much_work()
    assert isl.Set("{ [i] : 0 <= i < 4 }").count_val().to_python() == 4, "isl works as before"


def _spend_all() -> None:
    """Use up what isl may spend, and go on as if nothing had happened."""
    with suppress(isl.Error):
        much_work()


def test_what_isl_prints_without_operations_left_is_not_used() -> None:
    value = isl.Val(12)
    with pytest.raises(TooHardError), at_most(1000):
        _spend_all()
        value.to_python()
    with pytest.raises(TooHardError), at_most(1000):
        _spend_all()
        str(value)


@pytest.mark.slow
@pytest.mark.ci
def test_a_task_apart_has_what_it_says_and_costs_others_nothing() -> None:
    with at_most(30_000):
        before = spent()
        with apart(), at_most(3_000_000):
            much_work()
        assert before <= spent() < before + 1000
        with pytest.raises(TooHardError), at_most(2_000):
            much_work()
        with apart(), pytest.raises(TooHardError), at_most(2_000):
            much_work()
        assert not isl.Set("{ [i] : 0 <= i < 4 }").is_empty()
    with pytest.raises(TooHardError), at_most(30_000):
        with apart(), at_most(3_000_000):
            much_work()
        much_work()


def test_little_work_is_done() -> None:
    with at_most(100_000):
        assert not isl.Set("{ [i] : 0 <= i < 4 }").is_empty()


def test_mistakes_stay_what_they_are() -> None:
    with pytest.raises(isl.Error), at_most(100_000):
        isl.Set("{ [i : }")


def _asking() -> tuple[Callable[[isl.Set], isl.Set], list[isl.Set]]:
    """Return a question that is remembered, and what isl was asked."""
    asked: list[isl.Set] = []

    @remembered
    def least(points: isl.Set) -> isl.Set:
        asked.append(points)
        return points.lexmin().coalesce()

    return least, asked


def _points(n: int) -> isl.Set:
    return isl.Set(f"[n] -> {{ [i, j] : 0 <= i < n + {n} and 0 <= j <= i and (i + j) mod 3 = 1 }}")


def test_a_known_answer_is_not_asked_for_again_and_counts_as_before() -> None:
    least, asked = _asking()
    spent_in_all = []
    for _ in range(3):
        with at_most(10_000_000), keeping_answers():
            assert all(least(_points(n % 7)).is_equal(_points(n % 7).lexmin()) for n in range(20))
            spent_in_all.append(spent())
    assert len(asked) == 7
    assert max(spent_in_all) - min(spent_in_all) < 0.01 * spent_in_all[0]


def test_what_is_given_up_on_does_not_depend_on_known_answers() -> None:
    least, asked = _asking()
    with at_most(10_000_000), keeping_answers():
        least(_points(5))
        needed = spent()
    for share in (0.5, 0.9):
        with pytest.raises(TooHardError), at_most(int(share * needed)), keeping_answers():
            least(_points(5))
    with at_most(2 * needed), keeping_answers():
        least(_points(5))
    assert len(asked) == 1


def test_answers_are_kept_inside_the_scope_only() -> None:
    least, asked = _asking()
    with at_most(10_000_000):
        for _ in range(3):
            least(_points(2))
    assert len(asked) == 3


def test_scopes_inside_end_where_known_answers_have_used_them_up() -> None:
    least, _ = _asking()
    operations = 100_000
    with at_most(10_000_000), keeping_answers():
        least(_points(3))
        with pytest.raises(TooHardError), at_most(operations):
            for _ in range(operations):
                least(_points(3))
        least(_points(3))
