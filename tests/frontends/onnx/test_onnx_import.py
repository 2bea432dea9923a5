"""ONNX files: what becomes of them, against NumPy written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_files import declared, function, graph, model, node

from polyloom import PolyloomError, Unsupported, evaluate, load, read_model
from polyloom.frontends.graph.imported import Imported
from polyloom.models import trace
from polyloom.sources import Loaded

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def imported(tmp_path: Path, data: bytes, sizes: dict[str, object] | None = None) -> Imported:
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    return read_model(path, sizes)


def outputs(found: Imported, **inputs: Any) -> dict[str, Any]:
    return found.outputs(evaluate(found.program, found.inputs(inputs)))


def test_a_small_network(tmp_path: Path) -> None:
    w, bias, dense = floats(4, 3, 3, 3), floats(4), floats(5, 16)
    nodes = [
        node("Conv", "x w b", "/c/y", "/net/conv", strides=[2, 2], pads=[1, 1, 1, 1]),
        node("Relu", "/c/y", "r", "/net/relu"),
        node("Flatten", "r", "f"),
        node("Gemm", "f d", "scores", "/net/dense", transB=1),
        node("Softmax", "scores", "p", axis=1),
    ]
    found = imported(
        tmp_path, model(graph(nodes, {"x": (1, 3, 4, 4)}, ["p"], {"w": w, "b": bias, "d": dense}))
    )
    x = floats(1, 3, 4, 4)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    conv = np.empty((1, 4, 2, 2), np.float32)
    for i, j in np.ndindex(2, 2):
        window = padded[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        conv[0, :, i, j] = np.tensordot(w, window, 3) + bias
    scores = np.maximum(conv, 0).reshape(1, 16) @ dense.T
    exps = np.exp(scores - scores.max())
    np.testing.assert_allclose(outputs(found, x=x)["p"], exps / exps.sum(), rtol=1e-5)
    assert set(found.constants) == {"w", "b", "d"}
    assert [row.node for row in found.rows] == [
        "/net/conv",
        "/net/relu",
        "Flatten_f",
        "/net/dense",
        "Softmax_p",
    ]
    names = [s.name for s in found.program.statements]
    assert "net_conv" in names and "net_relu" in names and "net_dense" in names
    assert found.names["c_y"] == "/c/y"


def test_every_tensor_can_be_traced_also_views(tmp_path: Path) -> None:
    nodes = [node("Transpose", "x", "t"), node("Relu", "t", "y")]
    found = imported(tmp_path, model(graph(nodes, {"x": (2, 3)}, ["y"])))
    x = floats(2, 3)
    traced = trace(Loaded(found.program, (), found), {"x": x})
    assert list(traced.tensors) == ["x", "t", "y"]
    np.testing.assert_array_equal(traced.tensors["t"], x.T)
    assert len(found.program.statements) == 1
    assert found.rows[0].became == "view of x"
    wrong = {"t": x.T, "y": np.maximum(x.T, 0) + np.float32(0.5)}
    difference = trace(Loaded(found.program, (), found), {"x": x}, wrong).difference
    assert difference is not None and difference.tensor == "y"


def test_shape_arithmetic_is_folded(tmp_path: Path) -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axes", "u"),
        node("Concat", "u rest", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    constants = {"zero": np.int64(0), "axes": np.asarray([0]), "rest": np.asarray([-1])}
    found = imported(tmp_path, model(graph(nodes, {"x": (2, 3, 4)}, ["y"], constants)))
    assert outputs(found, x=floats(2, 3, 4))["y"].shape == (2, 12)
    assert len(found.program.statements) == 1


def test_open_dimensions_are_given_by_name_or_for_an_input(tmp_path: Path) -> None:
    data = model(graph([node("Relu", "x", "y")], {"x": ("batch", 3)}, ["y"]))
    with pytest.raises(Unsupported) as refused:
        imported(tmp_path, data)
    assert refused.value.diagnostics[0].notes == ("`x` has the shape [batch, 3]",)
    assert imported(tmp_path, data, {"batch": 5}).program.buffer("y").extents == (5, 3)
    assert imported(tmp_path, data, {"x": "2x3"}).program.buffer("y").extents == (2, 3)
    with pytest.raises(PolyloomError, match="model-size"):
        imported(tmp_path, data, {"x": "2*3"})


def test_one_message_names_every_node_that_cannot_be_expressed(tmp_path: Path) -> None:
    nodes = [
        node("NonMaxSuppression", "x", "a", "nms"),
        node("Relu", "x", "b"),
        node("Reshape", "x n", "c", "reshape"),
        node("Add", "a c", "y"),
        node("Frobnicate", "b", "z", domain="com.example"),
    ]
    with pytest.raises(Unsupported) as refused:
        imported(tmp_path, model(graph(nodes, {"x": (2, 3), "n": declared("n", (1,), "int64")}, ["y", "z"])))
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "model-inexpressible"
    assert diagnostic.message == "3 nodes of `net` cannot be expressed as affine statements"
    assert diagnostic.notes == (
        "nms (NonMaxSuppression): no such operation is known",
        "reshape (Reshape): its shape is computed when the model runs: it must be a constant",
        "-> z (com.example.Frobnicate): no such operation is known",
    )


def test_functions_of_the_file_are_inlined(tmp_path: Path) -> None:
    twice = function("Twice", "a", "b", [node("Add", "a a", "t"), node("Identity", "t", "b")])
    four = function(
        "Four", "a", "b", [node("Twice", "a", "m", domain="own"), node("Twice", "m", "b", domain="own")]
    )
    body = graph([node("Four", "x", "y", "four", "own")], {"x": (3,)}, ["y"])
    found = imported(tmp_path, model(body, functions=[twice, four]))
    np.testing.assert_array_equal(outputs(found, x=np.ones(3, np.float32))["y"], [4, 4, 4])


def test_branches_and_loops_whose_course_is_known(tmp_path: Path) -> None:
    then = graph([node("Neg", "x", "t")], {}, ["t"])
    other = graph([node("Relu", "x", "o")], {}, ["o"])
    turn = graph(
        [node("Add", "state x", "next"), node("Identity", "going", "still")],
        {"k": declared("k", (), "int64"), "going": declared("going", (), "bool"), "state": (3,)},
        ["still", "next", "next"],
    )
    nodes = [
        node("If", "yes", "a", then_branch=then, else_branch=other),
        node("Loop", "count - x", "last all", body=turn),
        node("Add", "a last", "y"),
    ]
    constants = {"yes": np.bool_(True), "count": np.int64(4)}
    found = imported(tmp_path, model(graph(nodes, {"x": (3,)}, ["y", "all"], constants)))
    x = floats(3)
    result = outputs(found, x=x)
    np.testing.assert_allclose(result["y"], 4 * x, rtol=1e-6)
    np.testing.assert_allclose(result["all"], [2 * x, 3 * x, 4 * x, 5 * x], rtol=1e-6)


def test_truth_values_are_bytes_inside_and_truth_values_outside(tmp_path: Path) -> None:
    nodes = [node("Greater", "x y", "g"), node("Not", "g", "n"), node("And", "g m", "both")]
    body = graph(nodes, {"x": (3,), "y": (3,), "m": declared("m", (3,), "bool")}, ["n", "both"])
    found = imported(tmp_path, model(body))
    x, y, m = np.asarray([1, 2, 3], np.float32), np.full(3, 2, np.float32), np.asarray([True, True, False])
    result = outputs(found, x=x, y=y, m=m)
    assert result["n"].tolist() == [True, True, False]
    assert result["both"].tolist() == [False, False, False]
    assert found.program.buffer("n").type.value == "uint8"


def test_a_tensor_read_in_two_ways_is_copied(tmp_path: Path) -> None:
    nodes = [node("Transpose", "x", "t"), node("MatMul", "x t", "y")]
    found = imported(tmp_path, model(graph(nodes, {"x": (3, 4)}, ["y"])))
    x = floats(3, 4)
    np.testing.assert_allclose(outputs(found, x=x)["y"], x @ x.T, rtol=1e-5, atol=1e-6)
    assert len(found.program.statements) == 2


def test_sums_of_float16_are_rounded_once(tmp_path: Path) -> None:
    body = graph([node("MatMul", "x w", "y")], {"x": declared("x", (1, 4096), "float16")}, ["y"])
    body.initializer.extend(graph([], {}, [], {"w": np.full((4096, 1), 1, np.float16)}).initializer)
    found = imported(tmp_path, model(body))
    assert outputs(found, x=np.ones((1, 4096), np.float16))["y"] == 4096


def test_outputs_that_are_inputs_constants_or_one_tensor_twice(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "r"), node("Identity", "r", "s"), node("Identity", "c", "k")]
    body = graph(nodes, {"x": (2,)}, ["r", "s", "k", "x"], {"c": np.asarray([3.0], np.float32)})
    result = outputs(imported(tmp_path, model(body)), x=np.asarray([-1, 2], np.float32))
    assert {n: a.tolist() for n, a in result.items()} == {"r": [0, 2], "s": [0, 2], "k": [3], "x": [-1, 2]}


def test_weights_beside_the_model(tmp_path: Path) -> None:
    w = floats(3)
    body = graph([node("Add", "x w", "y")], {"x": (3,)}, ["y"], {"w": w})
    stored = body.initializer[0]
    stored.ClearField("raw_data")
    stored.data_location = 1
    for key, value in (("location", "weights.bin"), ("offset", "4"), ("length", "12")):
        stored.external_data.add(key=key.encode(), value=value.encode())
    with pytest.raises(Unsupported, match="model-inexpressible"):
        imported(tmp_path, model(body))
    (tmp_path / "weights.bin").write_bytes(b"1234" + w.tobytes())
    np.testing.assert_array_equal(outputs(imported(tmp_path, model(body)), x=w)["y"], w + w)
    stored.external_data[0].value = b"../weights.bin"
    with pytest.raises(Unsupported) as refused:
        imported(tmp_path, model(body))
    assert "outside the model's folder" in refused.value.diagnostics[0].notes[0]


def test_clip_of_an_lstm_leaves_its_state(tmp_path: Path) -> None:
    """Sums of gates are cut off at 0.5; the state 2 is not, on its way through the third activation."""
    w = np.float32([[[0.3], [2.0], [0.4], [-0.9]]])
    start = {"h": np.zeros((1, 1, 1), np.float32), "c": np.full((1, 1, 1), 2, np.float32)}
    nodes = [node("LSTM", "x w r - - h c", "- last cell", hidden_size=1, clip=0.5)]
    constants = {"w": w, "r": np.zeros_like(w), **start}
    found = imported(tmp_path, model(graph(nodes, {"x": (1, 1, 1)}, ["last", "cell"], constants), 14))
    computed = outputs(found, x=np.ones((1, 1, 1), np.float32))
    i, o, f, g = np.clip(w.reshape(4).astype(float), -0.5, 0.5)
    sigmoid = lambda z: 1 / (1 + np.exp(-z))  # noqa: E731
    cell = sigmoid(f) * 2 + sigmoid(i) * np.tanh(g)
    np.testing.assert_allclose(computed["cell"].item(), cell, rtol=1e-6)
    np.testing.assert_allclose(computed["last"].item(), sigmoid(o) * np.tanh(cell), rtol=1e-6)


def test_one_element_of_a_resized_axis_is_the_first(tmp_path: Path) -> None:
    """The coordinates ``pytorch_half_pixel``: 0 where the length is 1, as the operation's text says."""
    nodes = [
        node("Resize", "x - - s", "y", mode="cubic", coordinate_transformation_mode="pytorch_half_pixel")
    ]
    found = imported(
        tmp_path, model(graph(nodes, {"x": (1, 1, 5, 4)}, ["y"], {"s": np.asarray([1, 1, 1, 4])}), 19)
    )
    x = floats(1, 1, 5, 4)
    np.testing.assert_allclose(outputs(found, x=x)["y"], x[:, :, :1], rtol=1e-6)


def test_a_position_that_lies_on_an_element_in_float32(tmp_path: Path) -> None:
    """3 / 0.6 is 5 in float32; it is below where the scale alone is rounded, and its floor is 4."""
    nodes = [node("Resize", "x - s", "y", coordinate_transformation_mode="asymmetric", nearest_mode="floor")]
    found = imported(tmp_path, model(graph(nodes, {"x": (1, 7)}, ["y"], {"s": np.float32([1, 0.6])}), 19))
    x = floats(1, 7)
    np.testing.assert_array_equal(outputs(found, x=x)["y"], x[:, [0, 1, 3, 5]])


def test_sums_of_no_elements_of_data(tmp_path: Path) -> None:
    nodes = [
        node("Slice", "x zero zero", "none"),
        node("ReduceSum", "none axes", "total", keepdims=0),
        node("Add", "total x", "y"),
    ]
    constants = {"zero": np.asarray([0]), "axes": np.asarray([0])}
    found = imported(tmp_path, model(graph(nodes, {"x": (2, 3)}, ["y"], constants), 13))
    x = floats(2, 3)
    np.testing.assert_array_equal(outputs(found, x=x)["y"], x)


def test_sequences_of_known_lengths(tmp_path: Path) -> None:
    """What a loop puts into a sequence is joined, as exported loops over lists do."""
    element = graph(
        [
            node("Identity", "go", "goes"),
            node("Gather", "x k", "row", axis=0),
            node("SequenceInsert", "list row", "longer"),
        ],
        {"k": declared("k", (), "int64"), "go": declared("go", (), "bool"), "list": ()},
        ["goes", "longer"],
    )
    nodes = [
        node("SequenceEmpty", "", "none"),
        node("Loop", "three - none", "rows", body=element),
        node("SequenceErase", "rows one", "shorter"),
        node("ConcatFromSequence", "shorter", "y", axis=1, new_axis=1),
        node("SplitToSequence", "x sizes", "parts", axis=0),
        node("SequenceAt", "parts last", "z"),
    ]
    constants = {
        "three": np.asarray(3),
        "one": np.asarray(1),
        "sizes": np.asarray([3, 1]),
        "last": np.asarray(-1),
    }
    found = imported(tmp_path, model(graph(nodes, {"x": (4, 2)}, ["y", "z"], constants), 18))
    x = floats(4, 2)
    computed = outputs(found, x=x)
    np.testing.assert_array_equal(computed["y"], x[[0, 2]].T)
    np.testing.assert_array_equal(computed["z"], x[3:])


def test_outputs_that_see_one_tensor(tmp_path: Path) -> None:
    """The first takes the name of the tensor that all of them see."""
    nodes = [
        node("Relu", "x", "r"),
        node("Identity", "r", "a"),
        node("Transpose", "r", "b"),
        node("Identity", "r", "c"),
    ]
    found = imported(tmp_path, model(graph(nodes, {"x": (2, 3)}, ["a", "b", "c"])))
    x = floats(2, 3)
    computed = outputs(found, x=x)
    for name, wanted in (("a", x), ("b", x.T), ("c", x)):
        np.testing.assert_array_equal(computed[name], np.maximum(wanted, 0))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_that_data_choose(tmp_path: Path, sign: int) -> None:
    branches = {
        "then_branch": graph([node("Neg", "x", "n")], {}, ["n"]),
        "else_branch": graph([node("Exp", "x", "e"), node("Sqrt", "e", "s")], {}, ["s"]),
    }
    nodes = [
        node("ReduceSum", "x", "total", keepdims=0),
        node("Greater", "total zero", "positive"),
        node("If", "positive", "y", **branches),
    ]
    found = imported(tmp_path, model(graph(nodes, {"x": (2, 3)}, ["y"], {"zero": np.float32(0)})))
    x = sign * np.abs(floats(2, 3))
    np.testing.assert_allclose(outputs(found, x=x)["y"], -x if sign > 0 else np.sqrt(np.exp(x)), rtol=1e-6)


def test_branches_of_different_shapes_are_refused(tmp_path: Path) -> None:
    branches = {
        "then_branch": graph([node("Neg", "x", "n")], {}, ["n"]),
        "else_branch": graph([node("Transpose", "x", "s")], {}, ["s"]),
    }
    condition = declared("c", (), "bool")
    data = model(graph([node("If", "c", "y", **branches)], {"x": (2, 3), "c": condition}, ["y"]))
    with pytest.raises(Unsupported) as refused:
        imported(tmp_path, data)
    assert "float32 [2, 3] and float32 [3, 2]" in refused.value.diagnostics[0].notes[0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max"])
def test_rows_and_elements_at_positions(tmp_path: Path, reduction: str, *, known: bool) -> None:
    """ScatterND and ScatterElements; without a reduction no position comes twice."""
    x, rows, elements = floats(4, 3), floats(2, 3), floats(2, 2)
    positions = {"at": np.asarray([[3], [-3]]), "where": np.asarray([[0, 2], [-1, 1]])}
    nodes = [
        node("ScatterND", "x at rows", "y", reduction=reduction),
        node("ScatterElements", "x where elements", "z", axis=0, reduction=reduction),
    ]
    inputs: dict[str, Any] = {"x": (4, 3), "rows": (2, 3), "elements": (2, 2)}
    if not known:
        inputs |= {n: declared(n, a.shape, "int64") for n, a in positions.items()}
    found = imported(tmp_path, model(graph(nodes, inputs, ["y", "z"], positions if known else None), 18))
    given = {"x": x, "rows": rows, "elements": elements, **({} if known else positions)}
    computed = outputs(found, **given)
    combine = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum}[reduction]
    y, z = x.copy(), x.copy()
    y[3], y[1] = combine(x[3], rows[0]), combine(x[1], rows[1])
    for (i, j), p in np.ndenumerate(positions["where"]):
        z[p, j] = combine(x[p, j], elements[i, j])
    np.testing.assert_allclose(computed["y"], y, rtol=1e-6)
    np.testing.assert_allclose(computed["z"], z, rtol=1e-6)


@pytest.mark.parametrize("largest", [1, 0])
def test_the_first_elements_in_order(tmp_path: Path, largest: int) -> None:
    """TopK: of equal elements the first comes first."""
    nodes = [node("TopK", "x k", "values places", axis=0, largest=largest)]
    found = imported(
        tmp_path, model(graph(nodes, {"x": (6, 3)}, ["values", "places"], {"k": np.asarray([4])}))
    )
    x = np.round(floats(6, 3) * 2)
    order = np.argsort(-x if largest else x, axis=0, kind="stable")[:4]
    computed = outputs(found, x=x)
    np.testing.assert_array_equal(computed["places"], order)
    np.testing.assert_array_equal(computed["values"], np.take_along_axis(x, order, 0))


def test_sequences_reversed_by_lengths_that_are_data(tmp_path: Path) -> None:
    nodes = [node("ReverseSequence", "x n", "y", time_axis=0, batch_axis=1)]
    inputs = {"x": (4, 3, 2), "n": declared("n", (3,), "int64")}
    found = imported(tmp_path, model(graph(nodes, inputs, ["y"])))
    x, lengths = floats(4, 3, 2), np.asarray([4, 1, 3])
    wanted = x.copy()
    for k, length in enumerate(lengths):
        wanted[:length, k] = x[:length, k][::-1]
    np.testing.assert_array_equal(outputs(found, x=x, n=lengths)["y"], wanted)


@pytest.mark.parametrize("rows", [2, 0])
def test_results_may_have_no_elements(tmp_path: Path, rows: int) -> None:
    """Beside others, and all of them: a call with no rows gives none."""
    nodes = [node("Slice", "x zero zero", "none"), node("Mul", "x x", "y")]
    zero = np.array([0], np.int64)
    data = model(graph(nodes, {"x": (rows, 3)}, ["y", "none"], {"zero": zero}))
    x = floats(rows, 3)
    found = outputs(imported(tmp_path, data), x=x)
    np.testing.assert_array_equal(found["y"], x * x)
    assert found["none"].shape == (0, 3) and found["none"].dtype == np.float32
    function = load(data)
    function.save(tmp_path / "net.loom")
    for call in (function, function, load(tmp_path / "net.loom")):
        assert [a.shape for a in call(x=x)] == [(rows, 3), (0, 3)]


@pytest.mark.parametrize("start", [-9, -5, -4, 2, 9])
@pytest.mark.parametrize("end", [-9, -5, -4, -1])
@pytest.mark.parametrize("step", [-1, -2, 1])
def test_slices_from_before_the_start(tmp_path: Path, start: int, end: int, step: int) -> None:
    """Backwards ``starts`` is clamped to the first element (ONNX, Slice), where Python has nothing."""
    bounds = {"a": np.array([start], np.int64), "b": np.array([end], np.int64)}
    more = {"k": np.array([0], np.int64), "s": np.array([step], np.int64)}
    data = model(graph([node("Slice", "x a b k s", "y")], {"x": (5,)}, ["y"], {**bounds, **more}))
    x = floats(5)
    first, last = (0, 5) if step > 0 else (0, 4)
    low, high = (min(max(n + 5 * (n < 0), first - (step < 0) * k), last) for k, n in enumerate((start, end)))
    wanted = [x[i] for i in range(low, high, step)]
    np.testing.assert_array_equal(outputs(imported(tmp_path, data), x=x)["y"], np.array(wanted, np.float32))
