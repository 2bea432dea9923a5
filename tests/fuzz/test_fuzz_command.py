"""Fuzzing: a few seeds of each kind, and that a fault is found, made smaller and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import run

from samples import LATER

HERE = Path(__file__).parent


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("c", 12),
        ("native", 3),
        ("native-homs", 5),
        ("lair", 4),
        ("models", 20),
        ("graphs", 4),
        ("files", 40),
        ("csl", 50),
        ("python", 5),
        ("bent-models", 40),
    ],
)
def test_some_seeds_of_each_kind(kind: str, count: int, tmp_path: Path) -> None:
    done = fuzz("--kinds", kind, "--count", str(count), "--from", "1", "--found", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{kind}: {count} cases: " in done.stdout
    assert f"next seed {count + 1}" in done.stdout


@pytest.mark.slow
@pytest.mark.ci
def test_a_fault_is_found_made_smaller_and_kept(tmp_path: Path) -> None:
    done = fuzz(
        "--kinds", "broken", "--count", "1", "--from", "2", "--found", str(tmp_path), "--shrink", "10"
    )
    assert done.returncode == 1, done.stdout
    folder = min(tmp_path.iterdir(), key=lambda kept: int(kept.name.partition("-")[2]))
    about = json.loads((folder / "case.json").read_text())
    assert about["status"] == "wrong"
    small, whole = (folder / "program.c").read_text(), (folder / "program.c.whole").read_text()
    assert "--" in small
    assert len(small) < len(whole)
    again = fuzz("--again", str(folder))
    assert again.returncode == 1
    assert again.stdout.startswith("wrong: b")


@pytest.mark.slow
@pytest.mark.ci
def test_a_case_that_ends_its_process_is_a_case(tmp_path: Path) -> None:
    done = fuzz("--kinds", "nothing", "--count", "2", "--from", "7", "--found", str(tmp_path))
    assert done.returncode == 1
    assert "nothing: 2 cases: 2 fault; next seed 9" in done.stdout
    assert "KeyError" in done.stdout


@pytest.mark.parametrize(
    ("then", "lines"),
    [pytest.param("while True: pass", "56", marks=LATER), ("time.sleep(2.5); print(7)", "567")],
)
def test_what_works_too_long_hangs_and_what_waits_does_not(
    then: str, lines: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LIMIT", 1.0)
    text = f"import time\nprint(5); print(6, flush=True)\n{then}"
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE) as child:
        assert b"".join(run._lines(child)).decode() == lines
        child.kill()
