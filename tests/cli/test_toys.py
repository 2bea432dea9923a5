"""A target, a machine and a front end are each added in one place: toys, used through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CONV, MAPPED, Captured, document, failure

import polyloom
from polyloom.cli.main import run
from polyloom.diagnostics import Diagnostic, PolyloomError, Source, error
from polyloom.frontends.lair import lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.ir.program import Program
from polyloom.sources import Reading, load_tensors
from polyloom.sources.front_end import LayerFrontEnd
from polyloom.sources.table import FRONT_ENDS
from polyloom.targets import TARGETS, Compiled, Job, Option, Target
from polyloom.wafer.machine import model


def listing(job: Job) -> Compiled:
    """Compile for a machine that only reads the names of statements."""
    program = load_tensors(job.source, job.reading).program

    def write(folder: Path) -> tuple[str, ...]:
        folder.mkdir()
        names = [getattr(s.name, job.option("case"))() for s in program.statements]
        (folder / "names.txt").write_text("\n".join(names))
        return ("names.txt",)

    return Compiled(write)


def test_a_toy_target(capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arguments = ["compile", *CONV, "--target", "toy", "--case", "lower", "-o", str(tmp_path / "out")]
    assert "--case" in failure(capsys, arguments, 2)
    assert "'toy' is not one of" in failure(capsys, [a for a in arguments if a not in ("--case", "lower")], 2)
    case = Option("case", "Of the names.", ("lower", "upper"), "upper")
    monkeypatch.setitem(TARGETS, "toy", Target("toy", "names of statements", listing, (case,)))
    assert run(arguments) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}: names.txt\n"
    assert (tmp_path / "out" / "names.txt").read_text() == "c"
    assert run(["compile", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "|toy" in shown and "--case" in shown


@pytest.fixture
def toy_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A CS-2 whose SIMD instructions start slowly, beside the others in a folder of its own."""
    folder = tmp_path / "machines"
    folder.mkdir()
    for name in model.machines():
        (folder / f"{name}.json").write_text((model.FOLDER / f"{name}.json").read_text())
    toy = json.loads((folder / "cs2.json").read_text()) | {"name": "toy", "title": "Toy"}
    toy["simd_launch"] = {"value": 100, "estimate": "a toy"}
    (folder / "toy.json").write_text(json.dumps(toy))
    monkeypatch.setattr(model, "FOLDER", folder)
    yield "toy"


def test_a_toy_machine(capsys: Captured, toy_machine: str) -> None:
    slow = document(capsys, ["simulate", *MAPPED, "--check", "--machine", toy_machine])
    fast = document(capsys, ["simulate", *MAPPED, "--check", "--machine", "cs2"])
    assert slow["machine"] == "toy" and slow["check"]["passed"]
    assert slow["cycles"] > fast["cycles"] + 100
    assert run(["simulate", "--help"]) == 0
    assert "cs1|cs2|cs3|toy" in capsys.readouterr().out.replace("\n", "")


def read_doubles(source: Source, reading: Reading) -> tuple[Program, tuple[Diagnostic, ...]]:
    """``double x 4``: y = x + x."""
    word, name, size = source.text.split()
    if word != "double":
        raise PolyloomError(error("toy-word", f"`{word}` is no word", helps=["write `double x 4`"]))
    body = f"{{ all (i) in ({size}) y[i] = {name}[i] + {name}[i] }}"
    text = f"lair doubled(): float32 {name}[{size}] -> float32 y[{size}] {body}"
    return lower(parse(Source(source.name, text)), None, {}), ()


def test_a_toy_front_end(capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.doubles"
    path.write_text("double x 4")
    assert "error[source-unknown]" in failure(capsys, ["show", str(path)], 1)
    front = LayerFrontEnd(
        name="doubles",
        called="a file of doubles NAME.doubles",
        endings=(".doubles",),
        options=frozenset(),
        is_text=lambda text: text.startswith("double "),
        read=read_doubles,
    )
    monkeypatch.setattr("polyloom.sources.table.FRONT_ENDS", [*FRONT_ENDS, front])
    assert document(capsys, ["show", str(path)])["name"] == "doubled"
    assert document(capsys, ["run", str(path), "--check"])["check"]["passed"]
    assert document(capsys, ["simulate", str(path), "--size", "2x1", "--check"])["check"]["passed"]
    assert repr(polyloom.load(path)) == "<doubled(x: float32[4]) -> y: float32[4]>"
    path.write_text("treble x 4")
    assert "error[toy-word]" in failure(capsys, ["show", str(path)], 1)
    (tmp_path / "b.other").write_text("")
    assert "NAME.doubles" in failure(capsys, ["show", str(tmp_path / "b.other")], 1)
