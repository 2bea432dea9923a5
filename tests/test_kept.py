"""Functions of models kept for other processes: found again, and only where all is as it was."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyloom
from polyloom.frontends.graph.model import Graph, Node
from polyloom.function import kept
from polyloom.function.container import Container
from polyloom.function.kept_graphs import graph_place
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.tuning import choose as choose_tuned

WEIGHTS = np.random.default_rng(0).integers(-4, 5, (64, 48)).astype(np.float32)
ROWS = np.random.default_rng(1).integers(-4, 5, (3, 64)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep everything, in a folder of the test's own; what others tune meanwhile changes nothing."""
    monkeypatch.setattr(kept, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(choose_tuned, "default_path", lambda: tmp_path / "nothing tuned")
    yield tmp_path / "cache" / "functions"


def model(path: Path, weights: Any = WEIGHTS, rows: int | str = 3, *, external: bool = False) -> Path:
    """Write a product with weights, and with weights that are transposed at import."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 64])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = helper.make_graph([node], "product", [x], [y], [numpy_helper.from_array(weights, "w")])
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(found, path, save_as_external_data=external, location="weights", size_threshold=0)
    return path


def is_kept(function: Any) -> bool:
    return isinstance(function, kept._KeptFunction)


def called(path: Path | bytes, weights: Any = WEIGHTS, **options: Any) -> Any:
    function = polyloom.load(path, **options)
    np.testing.assert_array_equal(function(ROWS), ROWS @ weights)
    return function


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("external", [False, True])
def test_another_load_reads_nothing(tmp_path: Path, folder: Path, external: bool) -> None:
    path = model(tmp_path / "m.onnx", external=external)
    first = called(path)
    second = called(path)
    assert not is_kept(first) and is_kept(second)
    assert "loaded" not in second.__dict__
    assert repr(second) == repr(first)
    (file,) = folder.glob("*.function")
    container = Container(file)
    assert list(container.manifest["kept"]["weights"].values()) == [
        [int(external), pytest.approx(64, abs=10_000), "float32", [64, 48]]
    ]
    assert not [name for name in container.manifest["members"] if name.startswith("weights/")]
    # what was not kept is made of the source
    assert second.run(ROWS, check=True).passed
    assert second.program.inputs == first.program.inputs
    second.save(tmp_path / "saved")
    called(tmp_path / "saved")


def test_bytes_and_weights_that_stand_nowhere(tmp_path: Path, folder: Path) -> None:
    path = model(tmp_path / "m.onnx")
    message = onnx.load(path)
    message.graph.initializer[0].CopyFrom(numpy_helper.from_array(WEIGHTS.astype(np.float64), "half"))
    message.graph.node.insert(0, helper.make_node("Cast", ["half"], ["w"], to=TensorProto.FLOAT))
    content = message.SerializeToString()
    called(content)
    assert is_kept(called(content))
    (file,) = folder.glob("*.function")
    assert not Container(file).manifest["kept"]["weights"]


@pytest.mark.slow
@pytest.mark.ci
def test_what_is_not_the_same_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model(tmp_path / "m.onnx")
    called(path)
    assert is_kept(called(path))
    assert not is_kept(called(path, threads=3))
    assert not is_kept(called(path, check=True))
    assert not is_kept(called(model(tmp_path / "other.onnx", 2 * WEIGHTS), 2 * WEIGHTS))
    database = tmp_path / "tuned"
    database.write_bytes(b"")
    assert not is_kept(polyloom.load(path, database=database))
    monkeypatch.setattr(kept, "_version", lambda: "another version")
    assert not is_kept(called(path))


def test_files_beside_the_model_count(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", external=True)
    called(path)
    other = WEIGHTS[::-1].copy()
    data = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(data.replace(WEIGHTS.tobytes(), other.tobytes()))
    assert not is_kept(called(path, other))
    assert is_kept(called(path, other))


def test_open_sizes_are_kept_each(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx", rows="n")
    called(path)
    function = called(path)
    assert is_kept(function.for_arrays({"x": ROWS}))
    assert not is_kept(function.for_arrays({"x": ROWS[:2]}))


@pytest.mark.slow
@pytest.mark.ci
def test_a_damaged_file_is_as_none(tmp_path: Path, folder: Path) -> None:
    path = model(tmp_path / "m.onnx")
    called(path)
    (file,) = folder.glob("*.function")
    whole = file.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        assert not is_kept(polyloom.load(path))
    for at in range(0, len(whole), len(whole) // 20):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        called(path)
    file.write_bytes(whole)
    assert is_kept(called(path))


def test_a_source_that_changed_is_not_taken_for_it(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    called(path)
    function = called(path)
    assert is_kept(function)
    model(path, 2 * WEIGHTS)
    np.testing.assert_array_equal(function(ROWS), ROWS @ WEIGHTS)
    with pytest.raises(polyloom.PolyloomError, match="source-changed"):
        _ = function.program
    called(path, 2 * WEIGHTS)


@pytest.mark.slow
@pytest.mark.ci
def test_tuning_takes_effect_at_once(tmp_path: Path) -> None:
    path = model(tmp_path / "m.onnx")
    called(path)
    function = called(path)
    function.tune(0.2, evaluations=1, database=tmp_path / "tuned")
    assert function.compiled is function._whole
    np.testing.assert_array_equal(function(ROWS), ROWS @ WEIGHTS)


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(kept, "cache_folder", lambda: tmp_path / "file")
    called(model(tmp_path / "m.onnx"))


def test_old_and_large_files_go(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    for k, days in enumerate((1, 2, 40)):
        (folder / f"{k}.function").write_bytes(bytes(100))
        os.utime(folder / f"{k}.function", (time.time() - days * 86400,) * 2)
    monkeypatch.setattr(kept, "ALL_KEPT", 150)
    called(model(tmp_path / "m.onnx"))
    assert {p.name for p in folder.iterdir()} & {"0.function", "1.function", "2.function"} == {"0.function"}


@pytest.mark.slow
@pytest.mark.ci
def test_other_processes_find_it(tmp_path: Path) -> None:
    """Two at a time make it, one after them finds it."""
    path = model(tmp_path / "m.onnx")
    program = (
        "import sys, numpy, polyloom\n"
        "from polyloom.function import kept\n"
        "kept.WORTH_SECONDS = 0.0\n"
        "f = polyloom.load(sys.argv[1])\n"
        "x = numpy.ones((3, 64), numpy.float32)\n"
        "assert (f(x) == x @ numpy.load(sys.argv[2])).all()\n"
        "print(type(f).__name__)\n"
    )
    np.save(tmp_path / "w.npy", WEIGHTS)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "home")}
    words = [sys.executable, "-c", program, str(path), str(tmp_path / "w.npy")]

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)

    for process in [started(), started()]:
        assert process.communicate()[0] and process.returncode == 0
    assert started().communicate()[0].strip() == "_KeptFunction"


def test_weights_that_begin_alike_are_told_apart() -> None:
    weights = {name: np.arange(5000, dtype=np.float32) for name in "abc"}
    weights["b"][-1], weights["c"][2000] = -1, -1
    content = b"".join([b"abc", *(weights[name].tobytes() for name in "cab")])
    places = kept._places(weights, [b"", content])
    assert {name: at for name, (_, at, _, _) in places.items()} == {"a": 20003, "b": 40003, "c": 3}
    found = kept._found(places, [b"", content])
    assert all(np.array_equal(found[name], weights[name]) for name in "abc")


LONG = np.zeros(2000)
CHANGED = np.where(np.arange(2000) == 1000, 1.0, LONG)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LONG, CHANGED),
        (np.array([0.1]), np.array([np.nextafter(0.1, 1)])),
        (Graph("g", (), (), (), {"w": LONG}), Graph("g", (), (), (), {"w": CHANGED})),
        (("ab", "c"), ("a", "bc")),
        (1, True),
        (1, 1.0),
    ],
    ids=["in the middle", "last bit", "of a body", "texts", "truth", "float"],
)
def test_graphs_that_differ_in_any_bit_are_kept_apart(
    one: Any, other: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("polyloom.function.kept_graphs.cache_folder", lambda: tmp_path)
    processor = opened(choose(None))
    assert isinstance(processor, NativeDevice)

    def place(attribute: Any) -> Path | None:
        node = Node("n", "op", ("x",), ("y",), {"a": attribute})
        return graph_place(Graph("f", (node,), (), ()), processor)

    assert place(one) == place(one) != place(other)
