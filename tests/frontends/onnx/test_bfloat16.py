"""Models with tensors of bfloat16: the bits of ml_dtypes where operations decide them, else its rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.ir.scalar_functions.evaluation import to_bfloat16

onnx = pytest.importorskip("onnx")
ml_dtypes = pytest.importorskip("ml_dtypes")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
BFLOAT16, FLOAT = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT
NARROW = ml_dtypes.bfloat16
node = helper.make_node


def model(nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], **constants: Any) -> bytes:
    """``inputs``, ``outputs``: by name the type and shape."""
    ends = [
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in part.items()]
        for part in (inputs, outputs)
    ]
    held = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", *ends, held)
    opset = [helper.make_opsetid("", 17)]
    found = helper.make_model(graph, opset_imports=opset, ir_version=9)
    onnx.checker.check_model(found)
    return bytes(found.SerializeToString())


def drawn(*shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(NARROW)


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float32)


def layer() -> tuple[bytes, Any, Any]:
    """Return a model, its weights; ties of the rounding are among its sums."""
    w, b = drawn(6, 5, seed=2), drawn(5, seed=3)
    nodes = [
        node("MatMul", ["x", "w"], ["m"]),
        node("Add", ["m", "b"], ["a"]),
        node("Relu", ["a"], ["r"]),
        node("Transpose", ["r"], ["t"], perm=[1, 0]),
        node("Mul", ["t", "t"], ["y"]),
        node("Cast", ["y"], ["z"], to=FLOAT),
    ]
    outputs = {"y": (BFLOAT16, (5, 4)), "z": (FLOAT, (5, 4))}
    return model(nodes, {"x": (BFLOAT16, (4, 6))}, outputs, w=w, b=b), w, b


def expected(x: Any, w: Any, b: Any) -> Any:
    """Return the same by ml_dtypes, which rounds each operation."""
    product = (wide(x).astype(np.float64) @ wide(w).astype(np.float64)).astype(np.float32).astype(NARROW)
    rectified = np.maximum(product + b, NARROW(0)).T
    return rectified * rectified


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("device", ["native", "cpu"])
def test_the_bits_of_ml_dtypes(device: str) -> None:
    if device == "cpu" and all(d.platform == "native" for d in polyloom.devices()):
        pytest.skip("there is no OpenCL device")
    source, w, b = layer()
    x = drawn(4, 6)
    function = polyloom.load(source, device=device)
    assert repr(function.inputs["x"]) == "bfloat16[4][6]" and function.inputs["x"].dtype == NARROW
    for _ in range(2):
        y, z = function(x)
        assert y.dtype == NARROW and z.dtype == np.float32
        assert np.array_equal(y, expected(x, w, b))
        assert np.array_equal(z, wide(y))
    assert function.run(check=True).passed


def test_what_is_given_as_float32_is_rounded() -> None:
    source, w, b = layer()
    x = np.random.default_rng(4).normal(size=(4, 6)).astype(np.float32)
    y, _ = polyloom.load(source)(x)
    assert np.array_equal(y, expected(x.astype(NARROW), w, b))


def test_it_is_saved(tmp_path: Path) -> None:
    source, w, b = layer()
    function, x = polyloom.load(source), drawn(4, 6)
    function(x)
    function.save(tmp_path / "layer.pl")
    y, _ = polyloom.load(tmp_path / "layer.pl")(x)
    assert y.dtype == NARROW and np.array_equal(y, expected(x, w, b))


def test_casts_constants_and_comparisons() -> None:
    half = numpy_helper.from_array(np.asarray([0.1, -2.7, 3.3], np.float32).astype(NARROW))
    nodes = [
        node("Constant", [], ["c"], value=half),
        node("Cast", ["x"], ["n"], to=BFLOAT16),
        node("Add", ["n", "c"], ["s"]),
        node("Greater", ["s", "n"], ["g"]),
        node("Where", ["g", "s", "n"], ["w"]),
        node("Cast", ["w"], ["y"], to=FLOAT),
        node("Add", ["x", "y"], ["z"]),
    ]
    source = model(nodes, {"x": (FLOAT, (2, 3))}, {"z": (FLOAT, (2, 3))})
    x = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
    n = x.astype(NARROW)
    s = n + np.asarray([0.1, -2.7, 3.3], np.float32).astype(NARROW)
    assert np.array_equal(polyloom.load(source)(x), x + wide(np.where(s > n, s, n)))


@pytest.mark.slow
@pytest.mark.ci
def test_a_network_within_its_rounding() -> None:
    w, v = drawn(3, 2, 3, 3, seed=6), drawn(27, 4, seed=7)
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["p"], ["f"]),
        node("MatMul", ["f", "v"], ["m"]),
        node("Softmax", ["m"], ["y"]),
    ]
    source = model(nodes, {"x": (BFLOAT16, (2, 2, 8, 8))}, {"y": (BFLOAT16, (2, 4))}, w=w, v=v)
    x = drawn(2, 2, 8, 8)
    patches = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3), (2, 3))
    c = np.einsum("nchwij,ocij->nohw", patches, wide(w)).astype(NARROW)
    p = c.reshape(2, 3, 3, 2, 3, 2).max((3, 5)).reshape(2, 27)
    m = wide((wide(p) @ wide(v)).astype(NARROW)).astype(np.float64)
    want = np.exp(m) / np.exp(m).sum(1, keepdims=True)
    y = wide(polyloom.load(source)(x))
    assert np.abs(y - want).max() < 2.0**-8 * want.max()
    assert not np.array_equal(y, want.astype(np.float32)), "a softmax of float32 is not rounded"


def test_the_rounding_of_every_kind_of_number() -> None:
    bits = np.random.default_rng(8).integers(0, 2**32, 100_000, dtype=np.uint32)
    ties = (bits & np.uint32(0xFFFF0000)) | np.uint32(0x8000)
    for a in (
        bits.view(np.float32),
        ties.view(np.float32),
        np.float32([0, -0.0, np.inf, -np.inf, np.nan, 3.4e38]),
    ):
        with np.errstate(all="ignore"):
            assert np.array_equal(to_bfloat16(a), a.astype(NARROW).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("device", ["native", "cpu"])
def test_devices_round_every_kind_of_number(device: str) -> None:
    if device == "cpu" and all(d.platform == "native" for d in polyloom.devices()):
        pytest.skip("there is no OpenCL device")
    nodes = [node("Cast", ["x"], ["n"], to=BFLOAT16), node("Cast", ["n"], ["y"], to=FLOAT)]
    source = model(nodes, {"x": (FLOAT, (8192,))}, {"y": (FLOAT, (8192,))})
    bits = np.random.default_rng(9).integers(0, 2**32, 8192, dtype=np.uint32)
    bits[:4096] = (bits[:4096] & np.uint32(0xFFFF0000)) | np.uint32(0x8000)
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        want = x.astype(NARROW).astype(np.float32)
    assert np.array_equal(polyloom.load(source, device=device)(x), want, equal_nan=True)
