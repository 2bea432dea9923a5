"""Sums of which data select one term: which become elements at a place, and what they are, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import polyloom
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Compare, CompareOp, Constant, Read, Select
from polyloom.ir.host import Buffer, CombineOperator, HostProgram, Index, MdHom, Order, Role, View
from polyloom.ir.reductions import Combine, combiner
from polyloom.ir.transform.selections.gathers import numbers_in, with_gathers
from polyloom.ir.types import ElementType
from polyloom.ir.verification.passes import verified
from polyloom.polyhedra.loops.tree import Number

I32, F32 = ElementType.INT32, ElementType.FLOAT32

onnx = pytest.importorskip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
X = np.random.default_rng(0).standard_normal((7, 5, 4)).astype(np.float32)
X[0, 0, 0], X[1] = np.nan, np.inf


def computed(node: str, inputs: dict[str, NDArray[Any]], weights: dict[str, Any], **attributes: int) -> Any:
    """Return what a model of one node makes of ``x`` and ``i``."""
    kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in {**weights, **inputs}.items()}
    ends = [helper.make_tensor_value_info(n, kinds[n], list(a.shape)) for n, a in inputs.items()]
    made = helper.make_node(node, ["x", "i"], ["y"], **attributes)
    out = [helper.make_tensor_value_info("y", kinds["x"], None)]
    held = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph([made], "g", ends, out, held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    return np.asarray(polyloom.load(model)(**inputs))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("axis", range(3))
def test_elements_at_positions_that_data_say(axis: int) -> None:
    """What is not selected leaves no NaN behind, and positions count from the end, too."""
    size = X.shape[axis]
    i = np.random.default_rng(axis).integers(-size, size, (3, 2))
    np.testing.assert_array_equal(computed("Gather", {"x": X, "i": i}, {}, axis=axis), np.take(X, i, axis))
    each = np.random.default_rng(axis).integers(0, size, X.shape)
    found = computed("GatherElements", {"x": X, "i": each}, {}, axis=axis)
    np.testing.assert_array_equal(found, np.take_along_axis(X, each, axis))


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("kind", ["int64", "bool", "float64"])
def test_rows_of_a_table(kind: str) -> None:
    table = np.random.default_rng(1).integers(0, 2, (30, 8)).astype(kind)
    i = np.random.default_rng(2).integers(0, 30, 11).astype(np.int32)
    np.testing.assert_array_equal(computed("Gather", {"i": i}, {"x": table}), table[i])


def table(step: int = 1) -> HostProgram:
    """Return ``y[i][j] = sum over k of (p[i] == number[k] ? w[step * k][j] : 0)``, i < 6, j < 3, k < 5."""
    term = Select(Compare(CompareOp.EQ, Read(0, I32), Read(1, I32)), Read(2, F32), Constant(0, F32))
    add = CombineOperator(Order.POINTWISE, combiner(Combine.ADD, F32))
    kept = CombineOperator(Order.CONCATENATE)
    i, j, k = (Index.unit(d, 3) for d in range(3))
    node = MdHom(
        name="y",
        iterators=("i", "j", "k"),
        extents=(Number(6), Number(3), Number(5)),
        inputs=(View("p", (i,)), View("number", (k,)), View("w", (Index((0, 0, step)), j))),
        outputs=(View("y", (i, j)),),
        terms=(term,),
        combine=(kept, kept, add),
        initial=(None,),
        finish=(None,),
    )
    shapes = {"p": (I32, (6,)), "number": (I32, (5,)), "w": (F32, (5 * step, 3))}
    buffers = [Buffer.of(n, t, shape, role=Role.INPUT) for n, (t, shape) in shapes.items()]
    out = Buffer.of("y", F32, (6, 3), role=Role.OUTPUT)
    return HostProgram(name="table", parameters=(), buffers=(*buffers, out), body=(node,))


def test_a_sum_becomes_an_element() -> None:
    """Positions outside give 0, and what is not selected does not count."""
    rng = np.random.default_rng(0)
    given = {"p": np.array([4, 0, 2, -1, 5, 2], np.int32), "number": np.arange(5, dtype=np.int32)}
    given["w"] = rng.standard_normal((5, 3)).astype(np.float32)
    given["w"][1] = np.nan
    with verified():
        made = with_gathers(table(), numbers_in(given))
    (node,) = made.body
    assert isinstance(node, MdHom) and node.iterators == ("i", "j") and len(node.inputs) == 2
    wanted = np.where([[p in range(5)] for p in given["p"]], given["w"][given["p"].clip(0, 4)], 0)
    np.testing.assert_array_equal(evaluate_host(made, {}, given)["y"], wanted)
    np.testing.assert_array_equal(evaluate_host(table(), {}, given)["y"], wanted)


@pytest.mark.parametrize("numbers", [[0, 1, 2, 3, 5], [1, 2, 3, 4, 5]])
def test_other_numbers_stay(numbers: list[int]) -> None:
    assert with_gathers(table(), numbers_in({"number": np.array(numbers)})) == table()


def test_every_second_row_stays() -> None:
    assert with_gathers(table(2), {"number"}) == table(2)
