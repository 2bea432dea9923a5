"""Verbs that take long say so on a terminal, and print nothing meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polyloom.cli.main import run
from polyloom.cli.verbs import check, cslc, show, trace
from polyloom.cli.verbs import compile as compile_verb
from polyloom.cli.verbs import explain as explain_verb

EXAMPLES = Path(__file__).parents[2] / "examples"
VERBS = (check, compile_verb, cslc, explain_verb, show, trace)
CONV = str(EXAMPLES / "conv1d.lair")
LAYOUT = str(EXAMPLES / "csl" / "axpy" / "layout.csl")
PARAMS = "--params=width:2,height:1,n:4"
MAP = ["--map", str(EXAMPLES / "conv1d.map")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", CONV, *MAP], "compiling conv1d.lair"),
        (["explain", str(EXAMPLES / "c/gemm.c")], "looking at the loops of gemm.c"),
        (
            ["compile", CONV, "--size", "1x2", "--target", "wafer", "-o", "out"],
            "compiling conv1d.lair for wafer",
        ),
        (["show", CONV], "reading conv1d.lair"),
        (["show", str(EXAMPLES / "c/gemm.c")], "looking at the loops of gemm.c"),
        (["trace", CONV], "evaluating conv1d.lair"),
        (["check", LAYOUT, PARAMS], "checking layout.csl"),
        (
            ["cslc", LAYOUT, PARAMS, "--memcpy", "--fabric-offsets=4,1", "--fabric-dims=20,20", "--verbose"],
            "compiling layout.csl",
        ),
    ],
)
def test_what_is_done_is_said(
    arguments: list[str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    said: list[str] = []

    @contextmanager
    def noting(text: str) -> Iterator[None]:
        capsys.readouterr()
        yield
        assert capsys.readouterr() == ("", "")
        said.append(text)

    monkeypatch.chdir(tmp_path)
    for verb in VERBS:
        monkeypatch.setattr(verb, "status_line", noting)
    assert run(arguments) == 0
    assert said == [words]
    assert capsys.readouterr().out
