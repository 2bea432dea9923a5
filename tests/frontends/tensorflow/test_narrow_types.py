"""Constants and variables of float8, int4 and int2 that are moved and cast: folded when a graph is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_tensorflow import graph_def, node, shape

from polyloom.diagnostics import Unsupported
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.protobuf.reading import parse
from polyloom.frontends.protobuf.tensorflow_schema import tensorflow_messages
from polyloom.frontends.tensorflow import import_tensorflow
from polyloom.frontends.tensorflow.checkpoint import Checkpoint
from polyloom.frontends.tensorflow.read import Selection, graph_of
from polyloom.frontends.tensorflow.table import find_operation
from polyloom.frontends.tensorflow.tensors import as_elements
from polyloom.ir.evaluation.programs import evaluate

ml_dtypes = pytest.importorskip("ml_dtypes", reason="it comes with onnx: requirements/develop.txt")

NUMBERS = {
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    26: "float8_e4m3fnuz",
    28: "float8_e5m2fnuz",
    29: "int4",
    30: "uint4",
    31: "int2",
    32: "uint2",
}
X = np.float32([[1, -2, 3]])


def weights(name: str) -> Any:
    signed = not name.startswith("u")
    return np.float32([[0, 1, 1 if name == "int2" else 2], [1, 0, -2 if signed else 3]]).astype(
        getattr(ml_dtypes, name)
    )


def stored(number: int, w: Any, *, as_values: bool) -> Any:
    made = tensorflow_messages()["TensorProto"](dtype=number, tensor_shape=shape(*w.shape))
    if not as_values:
        made.tensor_content = w.tobytes()
    elif NUMBERS[number].startswith("float8"):
        made.float8_val = w.tobytes()
    else:
        made.int_val.extend(int(v) for v in w.reshape(-1))
    return made


def layer(number: int, *constant: Any, to: int = 1) -> list[Any]:
    """x times the transposed weights, which are moved as they are and cast then."""
    order = tensorflow_messages()["TensorProto"](dtype=3, tensor_shape=shape(2), int_val=[1, 0])
    return [
        *constant,
        node("x", "Placeholder", dtype={"type": 1}, shape={"shape": shape(1, 3)}),
        node("order", "Const", value={"tensor": order}),
        node("same", "Identity", "w", T={"type": number}),
        node("turned", "Transpose", "same", "order", T={"type": number}),
        node("wide", "Cast", "turned", SrcT={"type": number}, DstT={"type": to}),
        node("y", "MatMul", "x", "wide"),
    ]


def assert_product(model: Imported, w: Any) -> None:
    found = model.outputs(evaluate(model.program, model.inputs({"x": X})))
    np.testing.assert_array_equal(found["y"], X @ w.astype(np.float32).T)
    assert len(model.program.inputs) == 2 and not model.narrow


@pytest.mark.parametrize("as_values", [True, False])
@pytest.mark.parametrize("number", NUMBERS)
def test_constants_are_moved_and_cast(number: int, as_values: bool, tmp_path: Path) -> None:
    w = weights(NUMBERS[number])
    constant = node("w", "Const", value={"tensor": stored(number, w, as_values=as_values)})
    path = tmp_path / "model.pb"
    path.write_bytes(graph_def(*layer(number, constant)))
    assert_product(import_tensorflow(path), w)


@pytest.mark.parametrize("number", [24, 29])
def test_variables_too(number: int, tmp_path: Path) -> None:
    w = weights(NUMBERS[number])
    (tmp_path / "v.data-00000-of-00001").write_bytes(b"before" + w.tobytes())
    messages = tensorflow_messages()
    entry = messages["BundleEntryProto"](dtype=number, shape=shape(*w.shape), offset=6, size=w.size)
    variable = node("v", "VarHandleOp", dtype={"type": number}, shape={"shape": shape(*w.shape)})
    read = node("w", "ReadVariableOp", "v", dtype={"type": number})
    message = parse(messages["GraphDef"], graph_def(*layer(number, variable, read)), "the graph")
    of_file = Checkpoint(tmp_path / "v", 1, {"v": entry}).array("v")
    for value in (of_file, as_elements(w)):
        selection = Selection({}, {"y": "y"}, {}, {"v": value}, complete=True)
        assert_product(lower(graph_of(message, "net", selection), find_operation), w)


def test_what_else_reads_one_is_refused_by_its_type(tmp_path: Path) -> None:
    constant = node("w", "Const", value={"tensor": stored(24, weights("float8_e5m2"), as_values=False)})
    path = tmp_path / "model.pb"
    for wrong in (
        node("sum", "AddV2", "w", "w", T={"type": 24}),
        node("back", "Cast", "x", SrcT={"type": 1}, DstT={"type": 24}),
    ):
        path.write_bytes(graph_def(*layer(24, constant), wrong))
        with pytest.raises(Unsupported) as caught:
            import_tensorflow(path)
        (note,) = caught.value.diagnostics[0].notes
        assert "float8_e5m2" in note
