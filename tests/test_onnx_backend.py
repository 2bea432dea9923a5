"""``polyloom.onnx_backend``: onnx's own runner over it, and the interface that it has."""

from __future__ import annotations

import subprocess
import sys
import unittest
from typing import Any

import numpy as np
import pytest

import polyloom
from samples import LATER

onnx = pytest.importorskip("onnx")
backend = pytest.importorskip("polyloom.onnx_backend")
runner = pytest.importorskip("onnx_runner")
helper = onnx.helper


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("part", "most_skipped"),
    [
        ("relu", 0),
        ("nonzero", 1),
        *(
            pytest.param(part, 0, marks=LATER)
            for part in ("test_matmul_", "test_transpose_default", "reduce_sum_keep")
        ),
    ],
)
def test_onnx_tests_pass(part: str, most_skipped: int) -> None:
    result = unittest.TestResult()
    runner.tests(part).run(result)
    assert result.failures == result.errors == []
    assert len(result.skipped) <= most_skipped < result.testsRun + most_skipped


@pytest.mark.slow
@pytest.mark.ci
def test_it_is_there_without_an_import_of_its_own() -> None:
    code = "import polyloom; polyloom.onnx_backend.prepare"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.ci
def test_a_wrong_backend_fails_them(monkeypatch: pytest.MonkeyPatch) -> None:
    right = backend.PreparedModel.run

    def wrong(self: Any, inputs: Any, **options: Any) -> Any:
        return tuple(a + 1 for a in right(self, inputs, **options))

    monkeypatch.setattr(backend.PreparedModel, "run", wrong)
    result = unittest.TestResult()
    runner.tests("relu").run(result)
    assert len(result.failures) == result.testsRun > 0


def reshaping() -> Any:
    """Return a model whose input says the shape of its result."""
    ends = [helper.make_tensor_value_info("x", 1, [6]), helper.make_tensor_value_info("shape", 7, [2])]
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", ends, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_operands_that_say_shapes_are_taken_from_each_call() -> None:
    prepared = backend.prepare(reshaping())
    x = np.arange(6, dtype=np.float32)
    for shape in ((2, 3), (3, 2), (2, 3)):
        found = prepared.run([x, np.array(shape)])
        np.testing.assert_array_equal(found[0], x.reshape(shape))
        np.testing.assert_array_equal(found["y"], x.reshape(shape))
    np.testing.assert_array_equal(prepared.run({"shape": np.array([1, 6]), "x": x}).y, x.reshape(1, 6))


def test_a_node_runs_alone() -> None:
    node = helper.make_node("Add", ["a", "b"], ["c"])
    a = np.ones(3, np.float32)
    np.testing.assert_array_equal(backend.run_node(node, [a, a])[0], a + a)
    assert backend.supports_device("CPU:0") and not backend.supports_device("CUDA")


def test_what_has_no_affine_form_is_refused_and_counts_as_skipped() -> None:
    node = helper.make_node("NonZero", ["x"], ["y"])
    with pytest.raises(polyloom.Unsupported, match="model-inexpressible") as refused:
        backend.run_node(node, [np.ones(3, np.float32)])
    assert isinstance(refused.value, unittest.SkipTest)
    sequence = helper.make_tensor_sequence_value_info("s", 1, None)
    graph = helper.make_graph(
        [helper.make_node("SequenceLength", ["s"], ["n"])],
        "g",
        [sequence],
        [helper.make_tensor_value_info("n", 7, [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert not backend.is_compatible(model)
    with pytest.raises(polyloom.Unsupported, match="onnx-type"):
        backend.prepare(model)
