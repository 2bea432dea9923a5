"""``explain`` of a model: each layer under a map of its own; of other programs with a folder of maps."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from command_line import Captured, document
from test_layers import MAPS, NET

import polyloom
from polyloom.api import layers
from polyloom.cli.main import run
from polyloom.diagnostics import Refusal
from polyloom.wafer.placement.choose import Choice


@pytest.fixture
def net(tmp_path: Path) -> list[str]:
    (tmp_path / "net.lair").write_text(NET)
    (tmp_path / "maps").mkdir()
    for name, text in MAPS.items():
        (tmp_path / "maps" / f"{name}.map").write_text(text)
    return ["explain", str(tmp_path / "net.lair"), "--jobs", "1", "--map", str(tmp_path / "maps")]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx = pytest.importorskip("onnx")
    kind = onnx.TensorProto.FLOAT
    nodes = [
        onnx.helper.make_node(op, [x], [y], name=op) for op, x, y in [("Relu", "x", "h"), ("Exp", "h", "y")]
    ]
    ends = [[onnx.helper.make_tensor_value_info(name, kind, [2, 3])] for name in "xy"]
    path = tmp_path / "two.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph(nodes, "two", *ends)), path)
    return path


def test_a_folder_of_maps(capsys: Captured, net: list[str], tmp_path: Path) -> None:
    found = document(capsys, net)
    assert [layer["name"] for layer in found["layers"]] == list(MAPS)
    assert [layer["size"]["given"] for layer in found["layers"]][:2] == [
        "{ PE[0:1, 0:0] }",
        "{ PE[0:0, 0:2] }",
    ]
    (alone,) = (layer for layer in found["layers"] if layer["name"] == "g")
    single = tmp_path / "g.lair"
    single.write_text(NET.split("graph")[0])
    layer_map = MAPS["g"].replace("g[", "ff[")
    wanted = polyloom.explain(
        polyloom.read_program(str(single), "ff", {"T": "float16", "M": 3, "N": 6}), layer_map
    )
    simd = wanted.json()["tasks"][0]["simd"]
    in_net = {"W": "B", "x": "h", "y": "g"}
    for operand in (o for cost in simd["costs"] for o in cost["operands"]):
        operand["tensor"] = in_net.get(operand["tensor"], operand["tensor"])
    assert alone["tasks"][0]["simd"] == simd


def deadly(task: layers._Task) -> Choice | Refusal:
    """Choose a map; nobody survives one of the layers."""
    if task.program.name == "g":
        os.kill(os.getpid(), signal.SIGKILL)
    return layers._chosen(task)


@pytest.mark.slow
@pytest.mark.ci
def test_a_death_in_a_layer_does_not_stop_the_others(
    capsys: Captured, net: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "_chosen", deadly)
    found = document(capsys, [*net, "--jobs", "2"], 1)
    assert [layer.get("refused") for layer in found["layers"]] == [None, ["a task was given up"], None]


@pytest.mark.slow
@pytest.mark.ci
def test_a_refused_layer_is_named_after_the_others(capsys: Captured, net: list[str], tmp_path: Path) -> None:
    (tmp_path / "maps" / "g.map").write_text("size: { PE[2, 3] }\ncompute_map: { g[i, j] -> PE[7, i] }\n")
    found = document(capsys, net, 1)
    assert [("refused" in layer) for layer in found["layers"]] == [False, True, False]
    assert run(net) == 1
    out, err = capsys.readouterr()
    assert "Layer h" in out and "refused: " in out and "Layer double" in out
    assert "error[map-" in err and "in the layer `g`" in err


@pytest.mark.slow
@pytest.mark.ci
def test_a_model_is_explained_layer_by_layer(capsys: Captured, model: Path, tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    found = document(capsys, ["explain", str(model), "--write-map", str(maps)])
    names = [layer["name"] for layer in found["layers"]]
    assert len(names) == 2 and sorted(p.stem for p in maps.iterdir()) == sorted(names)
    assert [(maps / f"{layer['name']}.map").read_text() for layer in found["layers"]] == [
        layer["choice"]["map"] for layer in found["layers"]
    ]
    as_one = document(capsys, ["explain", str(model), "--size", "1x1"])
    assert len(as_one["placement"]) == 2
    loaded = polyloom.load(model)
    explained = loaded.explain()
    assert isinstance(explained, polyloom.LayersExplanation) and explained.json() == found
    assert str(explained).count("Layer ") == 2
    assert (loaded(np.full((2, 3), -1, np.float32)) == 1).all()
