"""The limit on what isl spends: wherever it strikes, it is told apart from an error."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.effort import TooHardError, at_most

SET = "[a] -> { PE[a, b] : 0 <= b <= a and a <= 7 }"


@pytest.mark.parametrize("operations", [1, 2, 3, 5, 8, 13, 21, 50])
def test_a_limit_is_told_apart_wherever_it_strikes(operations: int) -> None:
    with pytest.raises(TooHardError), at_most(operations):
        for _ in range(100):
            isl.Set(SET).coalesce().lexmin()
    assert not isl.Set(SET).is_empty()


def test_an_error_within_the_limit_stays_what_it_is() -> None:
    with pytest.raises(isl.Error, match="syntax"), at_most(10**6):
        isl.Set("{ [")
