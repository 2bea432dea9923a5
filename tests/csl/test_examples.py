"""The programs of examples/csl, by their own commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.csl.runner.scripts import Outcome, find_scripts, run_script

EXAMPLES = Path(__file__).parents[2] / "examples" / "csl"


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("script", find_scripts(EXAMPLES), ids=lambda script: str(script.path))
def test_example(script: object) -> None:
    from polyloom.csl.runner.scripts import Script

    assert isinstance(script, Script)
    result = run_script(EXAMPLES, script, seconds=300)
    assert result.outcome is Outcome.PASSED, result.output
