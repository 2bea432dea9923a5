"""Folders of programs, run by their own commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyloom.csl.runner.scripts import Outcome, Result, Script, find_scripts, judge, run_scripts
from polyloom.diagnostics import PolyloomError
from polyloom.programs import Ended


def test_scripts_are_found_and_replaced(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "commands_wse2.sh").write_text("cslc layout.csl\n")
    (tmp_path / "a" / "commands_wse3.sh").write_text("%run --arch\n")
    (tmp_path / "a" / "commands_none.sh").write_text("echo cslc\n")
    assert [str(s.path) for s in find_scripts(tmp_path)] == ["a/commands_wse2.sh"]
    found = find_scripts(tmp_path, "wse3", [("%run", "cs_python run.py")])
    assert [s.text for s in found] == ["cs_python run.py --arch\n"]
    with pytest.raises(PolyloomError) as fault:
        find_scripts(tmp_path, "wse9")
    assert fault.value.diagnostics[0].code == "csl-test-nothing"


@pytest.mark.parametrize(
    ("status", "err", "calls", "outcome", "reason"),
    [
        (0, "", ["cslc:0", "cs_python:0"], Outcome.PASSED, ""),
        (0, "", ["cslc:0"], Outcome.FAILED, "it ran no host program"),
        (0, "", ["cslc:1", "cs_python:0"], Outcome.FAILED, "it went on after cslc had status 1"),
        (1, "error[csl-x]: no such thing\n --> a", ["cslc:1"], Outcome.REFUSED, "no such thing [csl-x]"),
        (3, "error[y]: cannot", ["cslc:0", "cs_python:3"], Outcome.REFUSED, "cannot [y]"),
        (1, "error[csl-run-x]: stuck", ["cslc:0", "cs_python:1"], Outcome.STOPPED, "stuck [csl-run-x]"),
        (1, "error[file-missing]: none", ["cslc:0", "cs_python:1"], Outcome.FAILED, "none [file-missing]"),
        (
            1,
            "Trace\nAssertionError: \nNot equal\n x: 1",
            ["cslc:0", "cs_python:1"],
            Outcome.FAILED,
            "AssertionError: Not equal",
        ),
        (70, "polyloom: a fault", ["cslc:70"], Outcome.FAILED, "polyloom: a fault"),
        (2, "", [], Outcome.FAILED, "it ended with status 2"),
    ],
)
def test_verdicts(status: int, err: str, calls: list[str], outcome: Outcome, reason: str) -> None:
    assert judge(Ended(status, "", err), calls) == (outcome, reason)


@pytest.mark.slow
@pytest.mark.ci
def test_each_runs_in_a_copy(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "run.py").write_text("import sys\nopen('made', 'w')\nsys.exit(int(sys.argv[1]))\n")
    scripts = [
        Script(Path("one/commands_a.sh"), "set -e\ncs_python run.py 0\n"),
        Script(Path("one/commands_b.sh"), "set -e\ncs_python run.py 1\n"),
        Script(Path("one/commands_c.sh"), "sleep 30\n"),
    ]
    seen: list[Result] = []
    results = list(run_scripts(tmp_path, scripts[:2], seconds=60, jobs=2, seen=seen.append))
    results += run_scripts(tmp_path, scripts[2:], seconds=1, jobs=1, seen=seen.append)
    assert [r.outcome for r in results] == [Outcome.PASSED, Outcome.FAILED, Outcome.TIMED_OUT]
    assert len(seen) == 3
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["one", "run.py"]
