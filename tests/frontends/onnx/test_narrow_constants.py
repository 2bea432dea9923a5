"""Constants in bfloat16, float8, float4, small integers: decoded as onnx does, folded where they are cast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.frontends.onnx.narrow import BITS, decoded, stored_bytes

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
reference = pytest.importorskip("onnx.reference")


@pytest.mark.parametrize("kind", sorted(BITS))
def test_every_code_is_decoded_as_onnx_does(kind: int) -> None:
    shape = (256 * 256 if BITS[kind] == 16 else 256 * 8 // BITS[kind],)
    codes = np.arange(256 * 256, dtype="<u2") if BITS[kind] == 16 else np.arange(256, dtype=np.uint8)
    tensor = onnx.TensorProto(data_type=kind, dims=shape, raw_data=codes.tobytes())
    wanted = np.asarray(numpy_helper.to_array(tensor)).astype(np.float32)
    found = decoded(kind, codes.tobytes(), shape).astype(np.float32)
    np.testing.assert_array_equal(found, wanted)
    assert stored_bytes(kind, (3,)) == -(-3 * BITS[kind] // 8)


def model(nodes: list[Any], weights: list[Any], shape: list[int]) -> Any:
    ends = helper.make_tensor_value_info("x", 1, shape), helper.make_tensor_value_info("y", 1, None)
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def expected(given: Any, x: Any) -> Any:
    return reference.ReferenceEvaluator(given).run(None, {"x": x})[0]


@pytest.mark.parametrize("kind", [16, 17, 18, 19, 20])
@pytest.mark.parametrize("as_node", [False, True])
def test_weights_that_are_cast_are_folded(kind: int, as_node: bool) -> None:
    w = helper.make_tensor("w", kind, [2, 3], np.array([0.5, -1.0, 3.0, 0.0, 24.0, -0.25], np.float32))
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("MatMul", ["x", "f"], ["y"])]
    if as_node:
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=w))
    given = model(nodes, [] if as_node else [w], [4, 2])
    x = np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32)
    np.testing.assert_allclose(polyloom.load(given)(x), expected(given, x), rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "scale", "attributes"),
    [
        (22, [0.5], {}),
        (21, [0.5, 0.25, 2.0], {"axis": 1}),
        (22, [[0.5, 1, 2], [4, 8, 0.1]], {"axis": 0, "block_size": 2}),
    ],
)
def test_weights_that_are_dequantised_are_folded(kind: int, scale: Any, attributes: dict[str, int]) -> None:
    low = 0 if kind == 21 else -8
    values = np.random.default_rng(2).integers(low, low + 16, (4, 3))
    w = helper.make_tensor("w", kind, [4, 3], values.reshape(-1).tolist())
    sizes = np.array(scale, np.float32)
    if sizes.size == 1:
        sizes = sizes.reshape(())
    zero = helper.make_tensor("z", kind, sizes.shape, np.full(sizes.size, low + 5).tolist())
    weights = [w, numpy_helper.from_array(sizes, "s"), zero]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["f"], **attributes),
        helper.make_node("MatMul", ["x", "f"], ["y"]),
    ]
    given = model(nodes, weights, [2, 4])
    x = np.random.default_rng(1).normal(size=(2, 4)).astype(np.float32)
    np.testing.assert_allclose(polyloom.load(given)(x), expected(given, x), rtol=1e-5)


def test_other_uses_are_refused_by_name() -> None:
    w = helper.make_tensor("w", 22, [3], [1, 2, 3])
    nodes = [helper.make_node("Identity", ["w"], ["v"]), helper.make_node("Cast", ["v"], ["y"], to=1)]
    with pytest.raises(polyloom.Unsupported, match="its elements are of type int4"):
        polyloom.load(model(nodes, [w], [3]))
    short = onnx.TensorProto(name="w", data_type=16, dims=[3], raw_data=b"12")
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("Add", ["x", "f"], ["y"])]
    with pytest.raises(polyloom.Unsupported, match="it has 2 bytes, its elements have 6"):
        polyloom.load(model(nodes, [short], [3]))
