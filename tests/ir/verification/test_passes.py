"""A program that a pass has broken is a fault of Polyloom, and is never run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_verify_host import BROKEN, GOOD

from polyloom.cli.main import run
from polyloom.ir import InvalidProgram
from polyloom.ir.host import HostProgram
from polyloom.ir.verification.passes import _Switch, after_pass, at_the_end, is_on, verified
from polyloom.scop import transform

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("fault", BROKEN)
def test_the_pass_is_named(fault: str) -> None:
    with pytest.raises(InvalidProgram, match=f"after fusion: .*{fault}"):
        after_pass("fusion", BROKEN[fault])


def test_only_the_end_is_looked_at_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Switch, "on", False)
    broken = next(iter(BROKEN.values()))
    assert after_pass("fusion", broken) is broken
    with pytest.raises(InvalidProgram):
        at_the_end("fusion", broken)
    with verified():
        assert is_on()
    assert not is_on()
    assert at_the_end("fusion", GOOD) is GOOD


def _without_buffers(program: HostProgram) -> HostProgram:
    return replace(program, buffers=())


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("verb", ["run", "explain"])
def test_a_broken_program_is_never_run(
    verb: str, debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The front end's passes lose all buffers, those of the sequential form too."""
    before, sequential = transform.with_unique_names, transform.serial_program
    monkeypatch.setattr(_Switch, "on", False)
    monkeypatch.setattr(transform, "with_unique_names", lambda p: _without_buffers(before(p)))
    monkeypatch.setattr(transform, "serial_program", lambda scop: _without_buffers(sequential(scop)))
    options = ["--debug"] if debug else []
    assert run([*options, verb, str(EXAMPLES / "c" / "gemm.c")]) == 70
    said = capsys.readouterr()
    assert "fault of Polyloom" in said.err
    assert said.out == ""
    assert ("after emission" in said.err) is debug
