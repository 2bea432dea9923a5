"""``simulate --one-wafer``: floor plan, tables and document of a network, and what does not go with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.test_layers import Captured, document, failure, run
from wafer.network.networks import MAPS, MLP


@pytest.fixture
def net(tmp_path: Path) -> list[str]:
    (tmp_path / "mlp.lair").write_text(MLP)
    (tmp_path / "maps").mkdir()
    for name, text in MAPS.items():
        (tmp_path / "maps" / f"{name}.map").write_text(text)
    return ["simulate", str(tmp_path / "mlp.lair"), "--one-wafer", "--map", str(tmp_path / "maps")]


@pytest.mark.slow
@pytest.mark.ci
def test_a_floor_plan_and_tables(capsys: Captured, net: list[str], tmp_path: Path) -> None:
    page, arrays, maps = (tmp_path / name for name in ("r.html", "o.npz", "written"))
    files = ["--report", str(page), "--outputs", str(arrays), "--write-map", str(maps)]
    assert run([*net, "--check", "--invocations", "3", *files]) == 0
    out = capsys.readouterr().out
    assert "AA" in out and "BB" in out
    assert "passed: each sample beside the evaluator" in out
    assert "samples a second at 0.85 GHz" in out
    assert "<svg" in page.read_text()
    assert np.load(arrays)["y"].shape == (3, 6)
    assert {path.stem: path.read_text() for path in maps.iterdir()} == MAPS


@pytest.mark.slow
@pytest.mark.ci
def test_the_document_of_a_network(capsys: Captured, net: list[str]) -> None:
    found = document(capsys, [*net, "--check", "--json"])
    assert found["samples"] == 4 and found["check"]["passed"]
    assert [layer["name"] for layer in found["layers"]] == ["s", "y"]
    assert [stream["tensor"] for stream in found["streams"]] == ["x", "h", "y"]
    assert found["finished"] == sorted(found["finished"]) and found["finished"][-1] <= found["cycles"]


OTHERS = [["--trace", "t"], ["--density", "0.5"], ["--simd", "off"], ["--per-layer"]]


@pytest.mark.parametrize("option", OTHERS)
def test_options_that_do_not_go_with_it(capsys: Captured, net: list[str], option: list[str]) -> None:
    assert f"{option[0]}` does not go with `--one-wafer`" in failure(capsys, [*net, *option], 2)


def test_pes_are_of_a_network(capsys: Captured, net: list[str]) -> None:
    assert "`--pes` is of `--one-wafer`" in failure(capsys, [*net[:2], "--pes", "4"], 2)
    assert "network-pes" in failure(capsys, [*net, "--pes", "4"], 3)
