"""Kernels in GPU form on Oclgrind: no race between work-items, nothing out of bounds, nothing uninitialised.

PoCL runs the work-items of a group in turn, so that a missing barrier is not seen there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from oclgrind_driver import driver

HERE = Path(__file__).parents[1]
SEEDS = 4
WRONG = "left out: "


pytestmark = [
    pytest.mark.slow,
    pytest.mark.ci,
    pytest.mark.skipif(
        driver() is None, reason="Oclgrind is not installed (Debian: apt-get install oclgrind)"
    ),
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Run all cases in one child process, whose only driver is Oclgrind."""
    folder = tmp_path_factory.mktemp("oclgrind")
    (folder / "vendors").mkdir()
    (folder / "vendors" / "oclgrind.icd").write_text(f"{driver()}\n")
    log = folder / "log.txt"
    environment = os.environ | {
        "OCL_ICD_VENDORS": str(folder / "vendors"),
        "OCLGRIND_BUILD_OPTIONS": "-cl-opt-disable",  # it does not interpret all that an optimiser makes
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_MAX_ERRORS": "1000000",
        "OCLGRIND_LOG": str(log),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "POLYLOOM_TEST_DEVICE": "oclgrind",
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    command = [sys.executable, str(HERE / "oclgrind_cases.py"), str(log), str(SEEDS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["case"]: line for line in lines}


def test_nothing_is_complained_of(reports: dict[str, dict[str, str]]) -> None:
    right = {name: report for name, report in reports.items() if not name.startswith(WRONG)}
    assert len(right) > 90
    bad = [
        f"{name}: {report['failure']}\n{report['complaints'][:1500]}"
        for name, report in right.items()
        if report["failure"] or report["complaints"]
    ]
    assert not bad, f"{len(bad)} of {len(right)}\n" + "\n\n".join(bad[:10])


def test_what_is_wrong_on_purpose_is_complained_of(reports: dict[str, dict[str, str]]) -> None:
    wrong = {name: report["complaints"] for name, report in reports.items() if name.startswith(WRONG)}
    assert "race" in wrong["left out: the barrier behind copies"]
    assert "race" in wrong["left out: the barriers of two stages"]
    assert "Invalid" in wrong["left out: the end of a work-group"]
