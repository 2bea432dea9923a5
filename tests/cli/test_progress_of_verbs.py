"""Verbs that take long say so on a terminal, and print nothing meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from polyloom.cli import loading
from polyloom.cli.main import run
from polyloom.cli.verbs import check, cslc, show, trace
from polyloom.cli.verbs import compile as compile_verb
from polyloom.cli.verbs import explain as explain_verb
from polyloom.report import progress

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACES = (check, compile_verb, cslc, explain_verb, loading, progress, show, trace)
CONV = str(EXAMPLES / "conv1d.lair")
LAYOUT = str(EXAMPLES / "csl" / "axpy" / "layout.csl")
PARAMS = "--params=width:2,height:1,n:4"
MAP = ["--map", str(EXAMPLES / "conv1d.map")]


SMALL = [f"--param={name}=8" for name in "nmk"]
GEMM = str(EXAMPLES / "c" / "gemm.c")
READING, MAPPING = "reading conv1d.lair", "choosing a map"
RUNNING = "building the program, which is kept, and running it"
LOOPS = "looking at the loops of gemm.c"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", CONV, *MAP], [READING, MAPPING, "compiling conv1d.lair"]),
        (["explain", GEMM], [LOOPS]),
        (["explain", LAYOUT, PARAMS], ["compiling layout.csl"]),
        (
            ["compile", CONV, "--size", "1x2", "--target", "wafer", "-o", "out"],
            ["compiling conv1d.lair for wafer"],
        ),
        (["show", CONV], [READING]),
        (["show", GEMM], [LOOPS]),
        (["trace", CONV], [READING, "evaluating conv1d.lair"]),
        (["check", LAYOUT, PARAMS], ["checking layout.csl"]),
        (
            ["cslc", LAYOUT, PARAMS, "--memcpy", "--fabric-offsets=4,1", "--fabric-dims=20,20", "--verbose"],
            ["compiling layout.csl"],
        ),
        (
            ["run", GEMM, *SMALL, "--report", "run.html"],
            ["reading gemm.c", "choosing schedules", RUNNING, "writing run.html"],
        ),
        (["bench", GEMM, *SMALL, "--rounds", "1"], [LOOPS, "building gemm.c, and running it"]),
        (["simulate", CONV, *MAP, "--report", "layer.html"], [READING, MAPPING, "writing layer.html"]),
        (["simulate", CONV, "--per-layer", "--report", "all.html"], [READING, "writing all.html"]),
        (
            ["simulate", CONV, "--one-wafer", "--invocations", "1", "--report", "net.html"],
            [READING, "writing net.html"],
        ),
        (
            ["tune", GEMM, *SMALL, "--budget", "20", "--evaluations", "1", "--database", "tuned.sqlite"],
            ["reading gemm.c", "building what was found", "comparing gemm with its reference"],
        ),
    ],
    ids=lambda value: "-".join(value[:1]) if isinstance(value, list) else None,
)
def test_what_is_done_is_said(
    arguments: list[str],
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert said_by(arguments, monkeypatch, capsys, tmp_path) == words
    assert capsys.readouterr().out


def test_a_page_of_two_runs_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for page in ("a.html", "b.html"):
        assert run(["simulate", CONV, *MAP, "--report", str(tmp_path / page)]) == 0
    arguments = ["report", "a.html", "b.html", "-o", "both.html"]
    assert said_by(arguments, monkeypatch, capsys, tmp_path) == ["writing both.html"]


def said_by(
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> list[str]:
    """Return what a verb says while it works; nothing is printed meanwhile, and no two things are said."""
    said: list[str] = []
    inside = False

    @contextmanager
    def noting(text: str) -> Iterator[None]:
        nonlocal inside
        assert not inside
        inside = True
        before = capsys.readouterr()
        yield
        assert capsys.readouterr() == ("", "")
        print(before.out)
        inside = False
        said.append(text)

    monkeypatch.chdir(tmp_path)
    for place in PLACES:
        monkeypatch.setattr(place, "status_line", noting)
    assert run(arguments) == 0
    return said
