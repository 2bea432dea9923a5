"""Truth values in order, tensors without elements, antialiasing from corner to corner: as PyTorch 2.13."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_special_numbers import computed

from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.graph.model import Graph, GraphTensor, Node
from polyloom.frontends.torch import import_graph
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand
from polyloom.ir.types import ElementType
from polyloom.models import model_inputs

TRUTHS = np.array([[1, 0, 1, 0, 0, 1, 1, 0]], np.bool_)


@pytest.mark.parametrize(
    ("descending", "places"), [(True, [0, 2, 5, 6, 1, 3, 4, 7]), (False, [1, 3, 4, 7, 0, 2, 5, 6])]
)
def test_truths_are_sorted(descending: bool, places: list[int]) -> None:
    arguments = {"stable": True, "dim": -1, "descending": descending}
    values, found = computed("sort", {"self": TRUTHS}, arguments, "bool", "int64")
    np.testing.assert_array_equal(found, [places])
    np.testing.assert_array_equal(values, TRUTHS[:, places])


def model_of(op: str, shape: tuple[int, ...], kind: ElementType, arguments: dict[str, Any]) -> Imported:
    attributes = {ARGUMENTS: arguments, TYPES_OF_RESULTS: (kind,)}
    node = Node(op, f"aten.{op}.default", ("x",), ("y",), attributes)
    return import_graph(
        Graph("it", (node,), (GraphTensor("x", kind, shape),), (GraphTensor("y", kind, None),))
    )


def test_made_up_truths_are_of_both_kinds() -> None:
    model = model_of("logical_not", (40,), ElementType.BOOL, {"self": Operand(0)})
    assert set(model_inputs(model, None)["x"].tolist()) == {0, 1}


@pytest.mark.parametrize(("op", "wanted"), [("any", False), ("all", True)])
@pytest.mark.parametrize("arguments", [{"dim": (1,)}, {}], ids=["an axis", "all axes"])
def test_of_no_elements(op: str, wanted: bool, arguments: dict[str, Any]) -> None:
    (found,) = computed(op, {"self": np.zeros((2, 0), np.int64)}, arguments, "bool")
    assert (found == wanted).all() and found.shape == ((2,) if arguments else ())


def test_parts_without_elements_have_lengths() -> None:
    arguments = {"tensors": (Operand(0), Operand(0)), "dim": 1}
    model = model_of("cat", (0, 1, 2), ElementType.FLOAT32, arguments)
    assert model.results["y"].shape == (0, 2, 2)


ANTIALIASED = [
    ("bilinear", [1.0, 7.0, 14.25]),
    ("bilinear", [0.0, 0.5, 1.5, 3.5, 6.5, 10.16667, 14.83333]),
    ("bicubic", [0.41004, 7.14391, 15.60938]),
    ("bicubic", [-0.06579, 0.29412, 1.36111, 3.36111, 6.25, 10.19909, 15.25821]),
]


@pytest.mark.parametrize(("mode", "wanted"), ANTIALIASED)
def test_antialiasing_by_corners(mode: str, wanted: list[float]) -> None:
    x = np.array([0, 1, 4, 9, 16], np.float32).reshape(1, 1, 1, 5)
    arguments = {"output_size": (1, len(wanted)), "align_corners": True}
    (found,) = computed(f"_upsample_{mode}2d_aa", {"input": x}, arguments, "float32")
    np.testing.assert_allclose(found.ravel(), wanted, atol=1e-4)
