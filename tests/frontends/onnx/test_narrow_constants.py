"""Constants in bfloat16, float8, float4, small integers: decoded as onnx does, folded where they are cast."""

from __future__ import annotations

from pathlib import Path
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


def integers(**values: list[int]) -> list[Any]:
    return [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in values.items()]


MOVES = [
    [("Transpose", ["w"], {"perm": [1, 0]})],
    [("Reshape", ["w", "shape"], {})],
    [("Slice", ["w", "starts", "ends", "axes"], {})],
    [("Gather", ["w", "rows"], {"axis": 1})],
    [("Concat", ["w", "w"], {"axis": 1})],
    [("Unsqueeze", ["w", "zero"], {}), ("Squeeze", ["v0", "zero"], {}), ("Identity", ["v1"], {})],
    [("Transpose", ["w"], {}), ("Concat", ["v0", "v0"], {"axis": 0}), ("Flatten", ["v1"], {"axis": 2})],
]


@pytest.mark.parametrize("kind", [17, 22, pytest.param(23, marks=pytest.mark.slow)])
@pytest.mark.parametrize("moves", MOVES, ids=lambda m: m[-1][0])
@pytest.mark.parametrize("end", ["Cast", "DequantizeLinear"])
def test_weights_are_moved_before_they_are_cast_or_dequantised(kind: int, moves: list[Any], end: str) -> None:
    values = np.random.default_rng(kind).integers(-6, 7, 24)
    w = helper.make_tensor("w", kind, [4, 6], values.tolist())
    nodes = [
        helper.make_node(op, inputs, [f"v{k}"], **attributes)
        for k, (op, inputs, attributes) in enumerate(moves)
    ]
    last = nodes[-1].output[0]
    attributes = {"to": 1} if end == "Cast" else {}
    nodes += [
        helper.make_node(end, [last] if end == "Cast" else [last, "s"], ["f"], **attributes),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    weights = [
        w,
        numpy_helper.from_array(np.float32(0.3), "s"),
        *integers(shape=[3, 8], starts=[-3, 1], ends=[9, 5], axes=[0, 1], rows=[2, -1, 2], zero=[0]),
    ]
    given = onnx.shape_inference.infer_shapes(model(nodes, weights, [1]))
    x = np.array([0.7], np.float32)
    np.testing.assert_allclose(polyloom.load(given)(x), expected(given, x), rtol=1e-6)


SPECIAL = [
    0.0,
    -0.0,
    np.nan,
    np.inf,
    -np.inf,
    1e-8,
    2.0**-17,
    448,
    464,
    464.01,
    57344,
    -61440,
    61439,
    7e4,
    240,
    248,
]


@pytest.mark.parametrize("kind", [17, 18, 19, 20])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("op", ["Cast", "QuantizeLinear"])
@pytest.mark.parametrize("known", [False, True])
def test_numbers_become_float8_as_onnx_rounds_them(kind: int, saturate: int, op: str, known: bool) -> None:
    random = np.random.default_rng(kind)
    codes = np.sort(decoded(kind, np.arange(256, dtype=np.uint8).tobytes(), (256,)))
    ties = (codes[1:] + codes[:-1])[np.isfinite(codes[1:] + codes[:-1])] / 2
    normal = random.normal(size=300) * 2.0 ** random.integers(-20, 20, 300)
    x = np.concatenate([SPECIAL, codes, ties, np.nextafter(ties, 1, dtype=np.float32), normal]).astype(
        np.float32
    )
    source = "w" if known else "x"
    weights = [numpy_helper.from_array(x, "w"), numpy_helper.from_array(np.float32(0.5), "s")]
    weights.append(helper.make_tensor("z", kind, [], [0.0]))
    inputs = [source] if op == "Cast" else [source, "s", "z"]
    attributes = {"to": kind} if op == "Cast" else {}
    nodes = [
        helper.make_node(op, inputs, ["q"], saturate=saturate, **attributes),
        helper.make_node("Cast", ["q"], ["f"], to=1),
        helper.make_node("Reciprocal", ["f"], ["r"]),
        helper.make_node("Concat", ["f", "r"], ["c"], axis=0),
        helper.make_node("Sum", ["c"], ["y"]) if not known else helper.make_node("Mul", ["c", "x"], ["y"]),
    ]
    given = model(nodes, weights, [1] if known else [x.size])
    fed = np.ones(1, np.float32) if known else x
    np.testing.assert_array_equal(polyloom.load(given)(fed), expected(given, fed))


@pytest.mark.parametrize("kind", [21, 22, 25, 26, 23])
@pytest.mark.parametrize("blocks", [False, True])
def test_data_are_quantised_to_few_bits_and_back(kind: int, blocks: bool) -> None:
    x = (np.random.default_rng(kind).normal(size=(5, 3)) * 6).astype(np.float32)
    scale = np.array([[0.5, 1, 2], [4, 3, 0.3], [1, 1, 7]] if blocks else [0.5, 0.7, 2], np.float32)
    attributes = {"axis": 0, "block_size": 2} if blocks else {"axis": 1}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=kind, **attributes),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"], **attributes),
    ]
    given = model(nodes, [numpy_helper.from_array(scale, "s")], [5, 3])
    wide = np.repeat(scale, 2, 0)[:5] if blocks else scale
    whole = model(
        [
            helper.make_node(
                n.op_type, [*n.input[:1], "s"], n.output, **({"output_dtype": kind} if k == 0 else {})
            )
            for k, n in enumerate(nodes)
        ],
        [numpy_helper.from_array(np.float32(1), "s")],
        [5, 3],
    )
    np.testing.assert_allclose(polyloom.load(given)(x), expected(whole, x / wide) * wide, rtol=1e-6)


def test_other_uses_are_refused_by_name() -> None:
    w = helper.make_tensor("w", 22, [3], [1, 2, 3])
    nodes = [helper.make_node("Identity", ["w"], ["v"]), helper.make_node("Neg", ["v"], ["y"])]
    with pytest.raises(polyloom.Unsupported, match="its elements are of type int4"):
        polyloom.load(model(nodes, [w], [3]))
    short = onnx.TensorProto(name="w", data_type=16, dims=[3], raw_data=b"12")
    nodes = [helper.make_node("Cast", ["w"], ["f"], to=1), helper.make_node("Add", ["x", "f"], ["y"])]
    with pytest.raises(polyloom.Unsupported, match="it has 2 bytes, its elements have 6"):
        polyloom.load(model(nodes, [short], [3]))


@pytest.mark.parametrize("name", ["w widened", "w widened'"])
def test_a_tensor_of_the_file_may_have_the_name_of_a_wide_one(name: str) -> None:
    w = helper.make_tensor("w", 22, [3], [1, -2, 3])
    nodes = [
        helper.make_node("Identity", ["x"], [name]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("Add", ["d", name], ["y"]),
    ]
    given = model(nodes, [w, numpy_helper.from_array(np.float32(0.5), "s")], [3])
    x = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(polyloom.load(given)(x), expected(given, x))


@pytest.mark.parametrize("op", ["QuantizeNarrow", "CastNarrow", "Bfloat16"])
def test_our_own_operations_are_none_of_a_file(op: str) -> None:
    given = model([helper.make_node(op, ["x"], ["y"], domain="polyloom")], [], [3])
    given.opset_import.append(helper.make_opsetid("polyloom", 1))
    with pytest.raises(polyloom.Unsupported, match=f"polyloom of the file.{op}.: no such operation"):
        polyloom.load(given)


@pytest.mark.parametrize("kind", [17, 22])
def test_bodies_of_control_flow_read_narrow_constants_around_them(kind: int) -> None:
    """The body has a ``v`` of its own, which is not the narrow one around it."""
    info = helper.make_tensor_value_info
    given = (info("i", 7, []), info("k", 9, []), info("v", 1, [3]))
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
        helper.make_node("Add", ["d", "v"], ["b"]),
        helper.make_node("Identity", ["k"], ["more"]),
    ]
    body = helper.make_graph(nodes, "body", given, [info("more", 9, []), info("b", 1, [3])])
    weights = [helper.make_tensor(name, kind, [3], [1, -2, 3]) for name in ("w", "v")]
    weights += [numpy_helper.from_array(a, n) for a, n in ((np.float32(0.5), "s"), (np.int64(4), "n"))]
    weights.append(numpy_helper.from_array(np.array(True), "true"))
    loop = helper.make_node("Loop", ["n", "true", "x"], ["y"], body=body)
    x = np.array([1, 2, 4], np.float32)
    np.testing.assert_array_equal(polyloom.load(model([loop], weights, [3]))(x), [3, -2, 10])


ENDS = [
    (17, 1),
    (1, 17),
    (22, 1),
    (10, 22),
    (21, 17),
    (19, 22),
    (23, 20),
    (18, 23),
    (24, 1),
    (16, 25),
    (17, 16),
]


@pytest.mark.parametrize(("given", "wanted"), [*ENDS, (17, 16), (22, 22), (17, 17)])
@pytest.mark.parametrize("like", [False, True])
def test_inputs_and_results_are_of_narrow_formats(given: int, wanted: int, like: bool) -> None:
    """Also of the type of an operand, and numbers beyond the largest of the format."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"])]
    cast = (
        helper.make_node("CastLike", ["t", "k"], ["y"])
        if like
        else helper.make_node("Cast", ["t"], ["y"], to=wanted)
    )
    stated = whole_model(
        [*nodes, cast], given, wanted, [helper.make_tensor("k", wanted, [1], [1.0])] if like else []
    )
    types = ml_dtypes_of(given)
    x = (np.random.default_rng(given).normal(size=(3, 5)) * 6).astype(np.float32).astype(types)
    x = np.abs(x) if wanted in (21, 25) else x
    found, right = polyloom.load(stated)(x), expected(stated, x)
    assert found.dtype == right.dtype
    np.testing.assert_array_equal(found.astype(np.float32), right.astype(np.float32))


def ml_dtypes_of(kind: int) -> Any:
    return helper.tensor_dtype_to_np_dtype(kind)


def whole_model(nodes: list[Any], given: int, wanted: int, weights: list[Any] | None = None) -> Any:
    ends = (
        helper.make_tensor_value_info("x", given, ["n", 5]),
        helper.make_tensor_value_info("y", wanted, None),
    )
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], weights or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


@pytest.mark.slow
@pytest.mark.ci
def test_a_function_says_its_narrow_formats_and_is_saved_with_them(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=1), helper.make_node("Mul", ["f", "f"], ["g"])]
    made = polyloom.load(whole_model([*nodes, helper.make_node("Cast", ["g"], ["y"], to=19)], 17, 19))
    assert repr(made.inputs) == "{'x': float8_e4m3fn[n][5]}"
    assert made.outputs["y"].dtype == ml_dtypes_of(19)
    assert made.at(n=3).run(check=True).check.by.startswith("onnx ")
    made.save(tmp_path / "narrow.loom")
    again = polyloom.load(tmp_path / "narrow.loom")
    wide = np.array([[1.05, 1.0625, -3.4, 500, -0.01]] * 3, np.float32)  # rounded, and the largest beyond
    right = [[1, 1, 12, 57344, 6 * 2.0**-16]] * 3
    for found in (made(wide), again(wide), again(wide.clip(-448, 448).astype(ml_dtypes_of(17)))):
        assert found.dtype == ml_dtypes_of(19)
        np.testing.assert_array_equal(found.astype(np.float32), right)


def test_other_uses_of_a_narrow_input_are_refused_by_name() -> None:
    given = whole_model([helper.make_node("Neg", ["x"], ["y"])], 17, 17)
    with pytest.raises(polyloom.Unsupported, match="`x`: its elements are of type float8e4m3fn"):
        polyloom.load(given)(np.ones((2, 5), np.float32))
