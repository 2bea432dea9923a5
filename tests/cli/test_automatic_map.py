"""The verbs of the wafer without a map: --size, --write-map, chosen.map, what explain shows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CONV, Captured, document

from polyloom.cli.main import run


def success(capsys: Captured, arguments: list[str]) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_a_written_map_gives_the_same_again(capsys: Captured, tmp_path: Path) -> None:
    path = tmp_path / "conv.map"
    first = document(capsys, ["explain", *CONV, "--size", "1x2", "--write-map", str(path)])
    assert first["choice"]["map"] == path.read_text()
    assert first["choice"]["candidates"][0]["map"] == path.read_text()
    second = document(capsys, ["explain", *CONV, "--map", str(path)])
    assert "choice" not in second
    assert {**first, "choice": None} == {**second, "choice": None}


def test_explain_shows_what_was_compared(capsys: Captured) -> None:
    out = success(capsys, ["explain", *CONV, "--size", "1x2"])
    assert "size: { PE[1, 2] }" in out
    assert "`x` streams; `W` is resident" in out
    assert " mappings were compared" in out


def test_several_tensors_stream_or_are_resident(capsys: Captured, tmp_path: Path) -> None:
    layer = tmp_path / "layer.lair"
    layer.write_text(
        "lair S(): float16 a[4], float16 b[4], float16 c, float16 d -> float16 y[4]\n"
        "{ all (i) in (4) y[i] = a[i] * b[i] * c * d }"
    )
    out = success(capsys, ["explain", str(layer), "--size", "1x1"])
    assert "`a`, `b` stream; `c`, `d` are resident" in out


def test_compile_writes_the_map(capsys: Captured, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    success(capsys, ["compile", *CONV, "--target", "wafer", "--size", "1x2", "-o", str(folder)])
    assert "compute_map" in (folder / "chosen.map").read_text()
    assert "chosen.map" in json.loads((folder / "manifest.json").read_text())["files"]


@pytest.mark.slow
@pytest.mark.ci
def test_simulate_without_a_map(capsys: Captured) -> None:
    assert document(capsys, ["simulate", *CONV, "--size", "2x1", "--check"])["check"]["passed"]
