"""Where output goes: a reader that leaves, a disk that is full, a terminal without colours."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path

import click
import pytest
from command_line import CONV, MAPPED

from polyloom.cli.command import polyloom as command
from polyloom.cli.main import run
from polyloom.report import progress

COMMAND = [sys.executable, "-P", "-m", "polyloom"]
VERBS = [
    ["show", *CONV],
    ["explain", *MAPPED],
    ["explain", *MAPPED, "--json"],
    pytest.param(["devices"], marks=[pytest.mark.slow, pytest.mark.ci]),
    pytest.param(["trace", *CONV], marks=[pytest.mark.slow, pytest.mark.ci]),
]


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("arguments", VERBS)
def test_a_reader_that_has_seen_enough(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*COMMAND, *arguments], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.slow
@pytest.mark.ci
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


EXAMPLES = Path(__file__).parents[2] / "examples"
ALL_VERBS = {
    "bench": ["nowhere.c"],
    "check": ["nowhere.csl"],
    "compile": [*CONV, "--size", "1x2", "--target", "wafer", "-o", "out"],
    "cs-python": ["nowhere.py"],
    "csl-test": ["nowhere"],
    "cslc": ["nowhere.csl", "-o", "new"],
    "devices": [],
    "docs": [],
    "examples": [],
    "explain": MAPPED,
    "report": ["nowhere.html", "nowhere.html", "-o", "both.html"],
    "run": [str(EXAMPLES / "axpy.lair"), "-D", "N=4", "--check"],
    "show": [str(EXAMPLES / "c" / "gemm.c"), "--as", "mdh"],
    "simulate": ["nowhere.lair"],
    "trace": CONV,
    "tune": [str(EXAMPLES / "axpy.lair"), "--device", "no such device"],
}
"""Of each verb something short: what it prints, or a diagnostic."""

ESCAPE, COLOUR = "\x1b", re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")


class Written(StringIO):
    """Text on a terminal, or on none."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: terminal  # type: ignore[method-assign]


def test_every_verb_is_looked_at() -> None:
    assert ALL_VERBS.keys() == set(command.list_commands(click.Context(command)))


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_no_verb_colours_what_is_no_terminal_or_shall_have_none(
    verb: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("COLORTERM", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    said = said_by(verb, False, monkeypatch)
    assert said and ESCAPE not in said
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv(name, value)
        said = said_by(verb, True, monkeypatch)
        assert said and ESCAPE not in said


@pytest.mark.parametrize("value", ["1", ""])
def test_a_line_that_changes_is_none_without_escapes(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", value)
    monkeypatch.setattr(progress, "SHORT_DELAY", 0.01)
    monkeypatch.setattr(progress, "DELAY", 0.02)
    monkeypatch.setattr(sys, "stderr", err := Written(True))
    with progress.status_line("working"), progress.layer_status(2) as show:
        time.sleep(0.3)
        if show is not None:
            show("conv")
    assert (ESCAPE in err.getvalue()) is (value == "")
    assert "working" in err.getvalue() or value == ""


def said_by(verb: str, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    out, err = Written(terminal), Written(terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    run([verb, *ALL_VERBS[verb]])
    return out.getvalue() + err.getvalue()


def test_a_terminal_is_coloured_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert COLOUR.search(said_by("bench", True, monkeypatch))
