"""Elements around positions: what no position touches does not count, whatever it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyloom

onnx = pytest.importorskip("onnx")
helper = onnx.helper


def sampled(x: Any, grid: Any, mode: str, padding: str) -> Any:
    ends = [helper.make_tensor_value_info(n, 1, list(a.shape)) for n, a in (("x", x), ("g", grid))]
    node = helper.make_node("GridSample", ["x", "g"], ["y"], mode=mode, padding_mode=padding)
    graph = helper.make_graph([node], "g", ends, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=10)
    return np.asarray(polyloom.load(model)(x=x, g=grid))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_what_is_far_away_does_not_count(mode: str, padding: str) -> None:
    """A NaN made all results NaN, when they were products with weights that were mostly 0."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 2, 9, 9)).astype(np.float32)
    grid = (rng.random((1, 3, 4, 2)) * 0.6 - 0.9).astype(np.float32)
    wanted = sampled(x, grid, mode, padding)
    x[0, 0, 8, 8], x[0, 1, 7, 8] = np.nan, np.inf
    np.testing.assert_array_equal(sampled(x, grid, mode, padding), wanted)
    assert len(np.unique(wanted)) > 10


NAN = float("nan")


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize(
    ("mode", "padding", "wanted"),
    [
        ("bilinear", "zeros", [NAN, NAN, NAN, 0]),
        ("bilinear", "border", [5.6, 8.6, 5.6, 8.6]),
        ("bilinear", "reflection", [5.6, 5.6, 5.6, 8.6]),
        ("nearest", "zeros", [0, 0, 0, 0]),
        ("nearest", "border", [5, 8, 5, 8]),
        ("nearest", "reflection", [5, 5, 5, 8]),
        ("bicubic", "zeros", [NAN, NAN, NAN, 0]),
        ("bicubic", "border", [NAN, NAN, NAN, 8.835878]),
        ("bicubic", "reflection", [NAN, NAN, NAN, 9.023378]),
    ],
)
def test_positions_that_are_no_place(mode: str, padding: str, wanted: list[float]) -> None:
    """NaN, the infinities and a place far away are what PyTorch 2.13 makes of them on the processor."""
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    grid = np.array([[[[k, 0.1] for k in (NAN, np.inf, -np.inf, 5)]]], np.float32)
    np.testing.assert_allclose(sampled(x, grid, mode, padding).ravel(), wanted, rtol=1e-6)
