"""ONNX files through every verb: show, run, trace, simulate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_files import graph, model, node

from polyloom.cli.main import run
from polyloom.diagnostics import Source
from polyloom.frontends.lair import from_program, lower
from polyloom.frontends.lair.syntax.parse import parse
from polyloom.frontends.protobuf.counting import is_modest
from polyloom.frontends.protobuf.onnx_schema import onnx_messages
from polyloom.ir import evaluate
from polyloom.sources import load_model

W = np.asarray([[1, -2, 3], [4, 5, -6]], np.float32)


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    nodes = [node("Gemm", "in/x w", "in/s", "dense", transB=1), node("Relu", "in/s", "out:0", "act")]
    path = tmp_path / "dense.onnx"
    path.write_bytes(model(graph(nodes, {"in/x": ("batch", 3)}, ["out:0"], {"w": W})))
    return path


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "in.npz"
    np.savez(path, **{"in/x": np.asarray([[1, 2, 3], [0, -1, 2]], np.float32)})
    return path


WANTED = np.maximum(np.asarray([[1, 2, 3], [0, -1, 2]], np.float32) @ W.T, 0)


def shown(capsys: Any, *arguments: str, status: int = 0) -> Any:
    assert run([*arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_show(dense: Path, capsys: Any) -> None:
    document = shown(capsys, "show", str(dense), "-D", "batch=2")
    assert document["nodes"] == [
        {"node": "dense", "op": "Gemm", "statements": ["dense"], "instances": 12, "became": "1 statement"},
        {"node": "act", "op": "Relu", "statements": ["act"], "instances": 4, "became": "1 statement"},
    ]
    assert document["constants"] == ["w"]
    assert document["names"] == {"in_x": "in/x", "in_s": "in/s", "out_0": "out:0"}
    assert run(["show", str(dense), "-D", "batch=2"]) == 0
    assert "2 statements, 16 instances, 6 weights" in capsys.readouterr().out


def test_show_as_lair_is_the_same_program(dense: Path, capsys: Any) -> None:
    assert run(["show", str(dense), "-D", "batch=2", "--as", "lair"]) == 0
    text = capsys.readouterr().out
    assert "  all (i0, i1, i2) in (2, 2, 3)\n    in_s[i0][i1] += in_x[i0][i2] * w[i1][i2]\n" in text
    program = load_model(dense, {"batch": "2"}).program
    again = lower(parse(Source("t", text)), None, {})
    assert from_program(again) == text
    arrays = {"in_x": np.ones((2, 3), np.float32), "w": W}
    np.testing.assert_array_equal(evaluate(program, arrays)["out_0"], evaluate(again, arrays)["out_0"])


def test_run_takes_the_sizes_from_the_inputs(dense: Path, inputs: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out.npz"
    arguments = ["run", str(dense), "--inputs", str(inputs), "--outputs", str(out), "--check"]
    assert shown(capsys, *arguments)["check"]["passed"]
    np.testing.assert_array_equal(np.load(out)["out:0"], WANTED)


def test_trace_names_the_first_tensor_that_differs(
    dense: Path, inputs: Path, tmp_path: Path, capsys: Any
) -> None:
    all_of_it = tmp_path / "all.npz"
    assert run(["trace", str(dense), "--inputs", str(inputs), "-o", str(all_of_it)]) == 0
    tensors = dict(np.load(all_of_it))
    assert set(tensors) == {"in/x", "in/s", "out:0"}
    np.testing.assert_array_equal(tensors["out:0"], WANTED)
    capsys.readouterr()
    other = tmp_path / "other.npz"
    np.savez(other, **{"in/s": tensors["in/s"], "out:0": WANTED + 1})
    compared = ["trace", str(dense), "--inputs", str(inputs), "--compare", str(other)]
    assert run(compared) == 1
    assert "`out:0` is the first tensor that differs" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.ci
def test_simulate_places_a_model_by_itself(dense: Path, tmp_path: Path, inputs: Path, capsys: Any) -> None:
    out = tmp_path / "out.npz"
    sizes = ["-D", "batch=2", "--inputs", str(inputs), "--outputs", str(out), "--check"]
    assert shown(capsys, "simulate", str(dense), *sizes)["check"]["passed"]
    np.testing.assert_array_equal(np.load(out)["out:0"], WANTED)


def test_an_open_dimension_is_one_diagnostic(dense: Path, capsys: Any) -> None:
    assert run(["show", str(dense)]) == 3
    err = capsys.readouterr().err
    assert "note: `in/x` has the shape [batch, 3]" in err
    assert "help: give it a size: `-D batch=8`" in err
    assert run(["show", str(dense), "-D", "batch=two"]) == 1


@pytest.mark.parametrize("most", [10, 1000])
def test_fields_are_counted_without_making_messages(most: int) -> None:
    descriptor = onnx_messages()["ModelProto"].DESCRIPTOR
    data = model(graph([node("Relu", "x", "y")] * 20, {"x": (3,)}, ["y"]))
    assert is_modest(descriptor, data, most) == (most == 1000)
    assert is_modest(descriptor, data[:-3], 1000)
    assert not is_modest(descriptor, b"\x0a\x00" * 11, 10)
