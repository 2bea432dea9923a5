"""What a model's results are compared with: its framework, or the statements as imported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_files import graph, model, node

from polyloom.cli.main import run
from polyloom.oracle import model_reference as references
from polyloom.oracle.model_reference import AS_IMPORTED, ModelReference
from polyloom.sources import load_model

W = np.asarray([[1, -2, 3], [4, 5, -6]], np.float32)
X = np.asarray([[1, 2, 3], [0, -1, 2]], np.float32)


def written(path: Path, last: str, weights: np.ndarray = W) -> Path:
    nodes = [node("Gemm", "in/x w", "in/s", "dense", transB=1), node(last, "in/s", "out:0", "act")]
    path.write_bytes(model(graph(nodes, {"in/x": (2, 3)}, ["out:0"], {"w": weights})))
    return path


def expected(read: Path, opened: Path, **others: np.ndarray) -> Any:
    """Return what a reference expects of one file where its framework opens another."""
    imported = load_model(read)
    return ModelReference(imported, opened, None, "onnx")({}, imported.inputs({"in/x": X, **others}))


def test_onnxruntime_computes_what_the_file_says(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = written(tmp_path / "a.onnx", "Relu")
    found = expected(path, path)
    assert found.by.startswith("onnxruntime ") and found.reading_checked and found.bounds == 2
    assert np.array_equal(found.arrays["out_0"], np.maximum(X @ W.T, 0))


def test_a_file_that_is_read_wrongly_shows(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    read, opened = written(tmp_path / "a.onnx", "Relu"), written(tmp_path / "b.onnx", "Neg")
    assert np.array_equal(expected(read, opened).arrays["out_0"], -(X @ W.T))


def test_without_a_framework_the_statements_as_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(folder: Path) -> Any:
        job = json.loads((folder / "job.json").read_text())
        assert job["kind"] == "onnx" and job["inputs"] == ["in/x"]
        raise references._Unanswered("onnxruntime is not installed")

    monkeypatch.setattr(references, "_asked", missing)
    path = written(tmp_path / "a.onnx", "Relu")
    found = expected(path, path)
    assert (found.by, found.reading_checked, found.bounds) == (AS_IMPORTED, False, 1)
    assert found.notes == ("onnxruntime is not installed",)
    assert np.array_equal(found.arrays["out_0"], np.maximum(X @ W.T, 0))


def test_weights_that_the_file_has_not_are_said(tmp_path: Path) -> None:
    path = written(tmp_path / "a.onnx", "Relu")
    found = expected(path, path, w=W + 1)
    assert not found.reading_checked and "weights were given (w)" in found.notes[0]


def test_a_model_that_its_framework_refuses(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    read, opened = written(tmp_path / "a.onnx", "Relu"), tmp_path / "b.onnx"
    opened.write_bytes(b"not a model")
    found = expected(read, opened)
    assert found.by == AS_IMPORTED and "does not run the model" in found.notes[0]


@pytest.mark.slow
@pytest.mark.ci
def test_torch_computes_what_the_file_says(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dense = torch.nn.Linear(3, 2)

        def forward(self, x: Any, scale: Any) -> Any:
            y = self.dense(x) * scale
            return {"sum": y.sum(1), "y": y}

    made = Two().eval()
    x, scale = torch.from_numpy(X), torch.tensor([2.0, 3.0])
    path = tmp_path / "two.pt2"
    torch.export.save(torch.export.export(made, (x,), {"scale": scale}), path)
    imported = load_model(path)
    inputs = imported.inputs({"x": X, "scale": scale.numpy()})
    found = ModelReference(imported, path, None, "onnx")({}, inputs)
    assert found.by.startswith("torch ") and found.reading_checked and not found.notes
    wanted = {name: value.detach().numpy() for name, value in made(x, scale=scale).items()}
    for name, given in imported.outputs(found.arrays).items():
        assert np.allclose(given, wanted[name])


@pytest.mark.slow
@pytest.mark.ci
def test_run_says_which_framework_it_was(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("onnxruntime")
    path = written(tmp_path / "a.onnx", "Relu")
    assert run(["run", str(path), "--check", "--json"]) == 0
    check = json.loads(capsys.readouterr().out)["check"]
    assert check["reference"].startswith("onnxruntime ") and check["reading_checked"]
    assert check["reals"]["passed"]
