"""A C function under a LAIR map: the verbs of the wafer read it as they read a layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Captured, document, failure, run

from polyloom import read_program
from polyloom.scop import transform

LAYER = """
#define M 32
void layer(int n, float y[M], float W[M][n], float x[n])
{
    for (int i = 0; i < M; i++) {
        y[i] = 0;
        for (int j = 0; j < n; j++)
            ff: y[i] += W[i][j] * x[j];
    }
}
"""
MAP = """
size: { PE[4, 4] }
compute_map: { ff[i, j] -> PE[j//4, i//8] }
iport_map: { x[i=0:15] -> [PE[i//4, -1] -> index[i%4]] }
oport_map: { y[i=0:31] -> [PE[4, i//8] -> index[i%8]] }
"""


@pytest.fixture
def layer(tmp_path: Path) -> list[str]:
    (tmp_path / "layer.c").write_text(LAYER)
    (tmp_path / "layer.map").write_text(MAP)
    return [str(tmp_path / "layer.c"), "--param", "n=16"]


@pytest.mark.slow
@pytest.mark.ci
def test_simulate(layer: list[str], capsys: Captured, tmp_path: Path) -> None:
    place = ["--map", str(tmp_path / "layer.map")]
    found = document(capsys, ["simulate", *layer, *place, "--check", "--outputs", str(tmp_path / "y.npz")])
    assert found["check"]["passed"] and found["check"]["reading_checked"]
    assert found["check"]["reference"].startswith("the C program, built by ")
    assert np.load(tmp_path / "y.npz")["y"].shape == (32,)
    explained = document(capsys, ["explain", *layer, *place])
    assert "ff" in {t["statement"] for t in explained["tasks"]}


def test_compile_for_the_wafer(layer: list[str], tmp_path: Path) -> None:
    place = ["--map", str(tmp_path / "layer.map"), "-o", str(tmp_path / "out")]
    assert run(["compile", *layer, "--target", "wafer", *place]) == 0
    assert (tmp_path / "out" / "manifest.json").exists()


def test_show_as_lair_and_back(layer: list[str], capsys: Captured) -> None:
    shown = document(capsys, ["show", *layer, "--as", "lair"])
    text = shown["lair"]
    assert [s["name"] for s in shown["statements"]] == ["ff"]
    assert read_program(text, "layer").statements == read_program(layer[0], parameters={"n": 16}).statements


def test_trace(layer: list[str], capsys: Captured) -> None:
    assert run(["trace", *layer]) == 0
    assert "y       output  float32  32" in capsys.readouterr().out


def test_sizes_must_be_known(layer: list[str], capsys: Captured) -> None:
    assert "error[parameter-missing]" in failure(capsys, ["trace", layer[0]], 1)
    assert "error[parameter-unknown]" in failure(capsys, ["trace", *layer, "--param", "k=1"], 1)


def test_what_is_no_tensor_program_says_why(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "scan.c").write_text("void f(int x[9]) { for (int i = 1; i < 9; i++) x[i] += x[i - 1]; }")
    text = failure(capsys, ["trace", str(tmp_path / "scan.c")], 3)
    assert "this is no tensor program" in text
    assert "scan.c:1:" in text


def test_functions_that_the_machine_lacks_are_named(tmp_path: Path, capsys: Captured) -> None:
    source = "void ff(float y[4], float x[4]) { for (int i = 0; i < 4; i++) ff: y[i] = fmodf(x[i], 3); }"
    (tmp_path / "wave.c").write_text(f"#include <math.h>\n{source}\n")
    (tmp_path / "wave.map").write_text(
        "size: { PE[1, 1] }\ncompute_map: { ff[i] -> PE[0, 0] }\n"
        "iport_map: { x[i=0:3] -> [PE[-1, 0] -> index[i]] }\n"
        "oport_map: { y[i=0:3] -> [PE[1, 0] -> index[i]] }\n"
    )
    arguments = ["simulate", str(tmp_path / "wave.c"), "--map", str(tmp_path / "wave.map")]
    assert "the machine does not compute `%`" in failure(capsys, arguments, 3)


@pytest.mark.slow
@pytest.mark.ci
def test_the_check_sees_a_wrong_order(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = "for (int i = 0; i < 8; i++) y[i] = 2 * y[i]; for (int i = 0; i < 8; i++) y[i] += x[i];"
    (tmp_path / "two.c").write_text(f"void two(float y[8], float x[8]) {{ {loops} }}")
    command = ["simulate", str(tmp_path / "two.c"), "--check"]
    assert document(capsys, command)["check"]["passed"]
    whole = transform.arrange
    monkeypatch.setattr(transform, "arrange", lambda *arguments: tuple(reversed(whole(*arguments))))
    assert run(command) == 1
    text = capsys.readouterr().err
    assert "error[check-mismatch]" in text and "the C program, built by" in text


def test_a_number_that_is_no_size_is_named_as_data(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "scale.c").write_text(
        "void f(int n, float t, float x[n]) { for (int i = 0; i < n; i++) x[i] *= t; }"
    )
    text = failure(capsys, ["trace", str(tmp_path / "scale.c"), "--param", "n=3", "--param", "t=1"], 1)
    assert "has no parameter `t`" in text and "in `--inputs`, as an array of rank 0" in text
