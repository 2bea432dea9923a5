"""C programs with structures, pointers, functions and other forms: what gcc gives, or a refusal."""

from __future__ import annotations

from collections import Counter

import pytest
from cases import Forms

SEED = 1060


@pytest.mark.slow
@pytest.mark.ci
def test_forms_are_right_or_refused() -> None:
    outcomes = list(Forms().judged(range(SEED, SEED + 12)))
    assert [f"seed {o.seed}: {o}" for o in outcomes if o.status in ("wrong", "fault")] == []
    assert Counter(o.status for o in outcomes)["right"] >= 6
