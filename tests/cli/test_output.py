"""Where output goes: a reader that leaves, a disk that is full, a terminal without colours."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import CONV, MAPPED

COMMAND = [sys.executable, "-P", "-m", "polyloom"]
VERBS = [
    ["show", *CONV],
    ["explain", *MAPPED],
    ["explain", *MAPPED, "--json"],
    pytest.param(["devices"], marks=[pytest.mark.slow, pytest.mark.ci]),
    pytest.param(["trace", *CONV], marks=[pytest.mark.slow, pytest.mark.ci]),
]


@pytest.mark.parametrize("arguments", VERBS)
def test_a_reader_that_has_seen_enough(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", VERBS)
def test_a_full_disk(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error[system-refusal]: the system says: No space left on device")
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize(("value", "colours"), [("", True), ("1", False)])
def test_colours(value: str, colours: bool) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "NO_COLOR": value}
    subprocess.run([*COMMAND, "show", "nowhere.lair"], stderr=theirs, env=environment, check=False)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    assert "file-missing" in said and ("\x1b[" in said) is colours
