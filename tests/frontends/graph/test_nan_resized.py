"""NaN in what a position is computed of makes it NaN, also with the weight 0; what is elsewhere does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.graph.operations.resizing import Axis, Method, looked_at, weights
from polyloom.frontends.torch import import_graph
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand
from polyloom.ir.evaluation.programs import evaluate
from polyloom.ir.types import ElementType

NAN = float("nan")


def upsampled(op: str, x: list[float], size: int, corners: bool) -> np.ndarray[Any, Any]:
    given = np.array(x, np.float32).reshape(1, 1, *([1] if "2d" in op else []), -1)
    shape = (1, size) if "2d" in op else (size,)
    arguments = {"input": Operand(0), "output_size": shape, "align_corners": corners}
    kind = ElementType.FLOAT32
    node = Node("it", f"aten.{op}.default", ("x",), ("y",), {ARGUMENTS: arguments, TYPES_OF_RESULTS: (kind,)})
    model = import_graph(
        Graph("it", (node,), (GraphTensor("x", kind, given.shape),), (GraphTensor("y", kind, None),))
    )
    return model.outputs(evaluate(model.program, model.inputs({"x": given})))["y"].ravel()


CASES: list[tuple[str, list[float], int, bool, list[float]]] = [
    ("upsample_linear1d", [1, NAN, 3], 6, False, [NAN, NAN, NAN, NAN, NAN, 3]),
    ("upsample_linear1d", [1, 2, NAN], 6, False, [1, 1.25, 1.75, NAN, NAN, NAN]),
    ("upsample_linear1d", [1, 2, NAN, 4], 7, True, [1, 1.5, NAN, NAN, NAN, NAN, 4]),
    ("upsample_bicubic2d", [1, 2, 3, 4, NAN], 9, True, [1, 1.40625, 2, 2.5, NAN, NAN, NAN, NAN, NAN]),
    ("upsample_bicubic2d", [NAN, 2, 3, 4, 5], 3, True, [NAN, 3, 5]),
]


@pytest.mark.parametrize(("op", "x", "size", "corners", "wanted"), CASES)
def test_nan_of_weight_0(op: str, x: list[float], size: int, corners: bool, wanted: list[float]) -> None:
    np.testing.assert_allclose(upsampled(op, x, size, corners), wanted, rtol=1e-6)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("coordinates", ["half_pixel", "asymmetric", "align_corners", "torch_half_pixel"])
def test_all_with_a_weight_are_looked_at(mode: str, outside: bool, coordinates: str) -> None:
    method = Method(mode, coordinates, exclude_outside=outside)
    for size, wanted in ((5, 9), (7, 3), (1, 4), (4, 1)):
        axis = Axis(size, wanted, wanted / size)
        looked = looked_at(axis, method)
        assert not ((weights(axis, method) != 0) & ~looked).any()
        assert looked.sum(axis=1).max() <= (2 if mode == "linear" else 4)
