"""CSL programs with random changes: diagnostics, never a traceback."""

from __future__ import annotations

import bent_csl
import pytest


def test_the_programs_themselves_are_right() -> None:
    assert len(bent_csl.originals()) == 2
    assert [bent_csl.judge(files) for files in bent_csl.originals()] == ["", ""]


@pytest.mark.parametrize("seed", range(12))
def test_bent_programs(seed: int) -> None:
    found = bent_csl.judge(bent_csl.bent(seed))
    assert found == "" or found.startswith("csl-")
