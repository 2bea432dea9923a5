"""What isl may spend is limited by a count of its own operations."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl
import pytest

from polyloom.polyhedra.effort import TooHardError, at_most


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


def test_little_work_is_done() -> None:
    with at_most(100_000):
        assert not isl.Set("{ [i] : 0 <= i < 4 }").is_empty()


def test_mistakes_stay_what_they_are() -> None:
    with pytest.raises(isl.Error), at_most(100_000):
        isl.Set("{ [i : }")
