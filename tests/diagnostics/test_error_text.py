"""An error as text is what the command line prints, also after a way through another process."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import PolyloomError, Unsupported, error, render

WRONG = "lair f(): float16 x[4] -> float16 y[4] {\n  all (i) in (4) y[i] = x[2 * i]\n}\n"


def test_str_is_what_the_command_line_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.lair"
    path.write_text(WRONG)
    with pytest.raises(PolyloomError) as caught:
        polyloom.read_program(path)
    assert run(["show", str(path)]) == 1
    assert capsys.readouterr().err == f"{caught.value}\n"
    assert f"{path}:2:" in str(caught.value) and "^^" in str(caught.value) and "help: " in str(caught.value)


def test_several_diagnostics_have_a_blank_line_between_them() -> None:
    first, second = error("a-b", "first", helps=["do it"]), error("c-d", "second")
    fault = PolyloomError(first, second)
    assert str(fault) == f"{render(first)}\n\n{render(second)}"
    assert repr(fault) == "PolyloomError(a-b: first; c-d: second)"
    assert fault._render_traceback_() == str(fault).split("\n")


def test_an_error_can_be_sent_to_another_process() -> None:
    fault = pickle.loads(pickle.dumps(Unsupported(error("a-b", "first"))))
    assert type(fault) is Unsupported and fault.diagnostics[0].code == "a-b"
