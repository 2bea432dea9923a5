"""Rows of tables: a toy operation of each framework is one row, and its arguments are found in the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from polyloom.diagnostics import Unsupported
from polyloom.frontends.graph.core import (
    From,
    Op,
    X,
    at,
    cumulative,
    flag,
    leaky,
    maps,
    number,
    op,
    scalar,
    value,
)
from polyloom.frontends.graph.lowering import lower
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.onnx import table as onnx_table
from polyloom.frontends.tensorflow import table as tensorflow_table
from polyloom.frontends.torch import table as torch_table
from polyloom.frontends.torch.call import Operand, operations
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.types import ElementType

DATA = np.array([[-2.0, 1.0, 3.0], [0.5, -1.0, -4.0]], np.float32)

TOY = maps(lambda x, slope: scalar.add(leaky(x, slope), 1), X, number("slope", 0.5))


def computed(node: Node, find: Any, inputs: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    declared = tuple(GraphTensor(n, ElementType(a.dtype.name), a.shape) for n, a in inputs.items())
    graph = Graph("toy", (node,), declared, (GraphTensor("y", None, None),))
    model = lower(graph, find)
    return model.outputs(evaluate(model.program, model.inputs(dict(inputs))))["y"]


def wanted(slope: float) -> Any:
    return np.where(DATA < 0, DATA * np.float32(slope), DATA) + 1


@pytest.mark.parametrize("slope", [0.5, 0.25])
def test_a_toy_operation_is_one_row_of_onnx(monkeypatch: pytest.MonkeyPatch, slope: float) -> None:
    monkeypatch.setitem(onnx_table.DOMAINS, "toys", {"Toy": TOY})
    node = Node("n", "Toy", ("x",), ("y",), {} if slope == 0.5 else {"slope": slope}, "toys")
    assert (computed(node, onnx_table.find_operation, {"x": DATA}) == wanted(slope)).all()


def test_a_toy_operation_is_one_row_of_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tensorflow_table.OPERATIONS, "Toy", TOY)  # type: ignore[arg-type]
    node = Node("n", "Toy", ("x",), ("y",), {"slope": 0.25})
    assert (computed(node, tensorflow_table.find_operation, {"x": DATA}) == wanted(0.25)).all()
    odd = Node("n", "Toy", ("x",), ("y",), {"slope": 0.25, "other": 1})
    with pytest.raises(Unsupported, match="cannot be expressed") as refused:
        computed(odd, tensorflow_table.find_operation, {"x": DATA})
    assert "attribute `other` is not known of Toy" in refused.value.diagnostics[0].notes[0]


def test_a_toy_operation_is_one_row_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(torch_table.OPERATIONS, "aten.toy", operations({"toy": TOY})["aten.toy"])  # type: ignore[index]
    arguments = {"self": Operand(0), "slope": 0.25}
    attributes = {"arguments": arguments, "types": (ElementType.FLOAT32,)}
    node = Node("n", "aten.toy.default", ("x",), ("y",), attributes)
    assert (computed(node, torch_table.find_operation, {"x": DATA}) == wanted(0.25)).all()


@pytest.mark.parametrize(
    ("row", "attributes", "result"),
    [
        (op(cumulative, X, at("axis", 0), strict=flag("strict")), {}, np.cumsum(DATA, 0)),
        (op(cumulative, X, at("axis", 0)), {"axis": -1}, np.cumsum(DATA, 1)),
        (
            op(cumulative, X, at("axis", 0), strict=flag("strict")),
            {"strict": 1},
            np.array([[0, 0, 0], DATA[0]]),
        ),
        (maps(scalar.add, value(0), value(0)), {}, DATA + DATA),
        (maps(scalar.multiply, X, From(lambda c: c.input().rank)), {}, DATA * 2),
    ],
)
def test_arguments_come_from_the_node(row: Op, attributes: dict[str, Any], result: Any) -> None:
    node = Node("n", "Row", ("x",), ("y",), attributes)
    assert (computed(node, lambda _: row, {"x": DATA}) == result).all()


def test_a_missing_argument_is_a_refusal() -> None:
    node = Node("n", "Row", ("x",), ("y",))
    with pytest.raises(Unsupported) as refused:
        computed(node, lambda _: maps(leaky, X, number("slope")), {"x": DATA})
    assert "attribute `slope` is no number" in refused.value.diagnostics[0].notes[0]
