"""Operations of PyTorch on NaN, infinities and numbers near 0: what PyTorch 2.13 computes, written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyloom.frontends.graph.model import Graph, GraphTensor, Node, element_type
from polyloom.frontends.torch import import_graph
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand
from polyloom.ir.evaluation.programs import evaluate

NAN, INF = float("nan"), float("inf")


def computed(op: str, tensors: dict[str, Any], arguments: dict[str, Any], *types: str) -> list[Any]:
    """Return what an operation gives of tensors, which are arguments by their names, and other arguments."""
    operands = {name: Operand(k) for k, name in enumerate(tensors)}
    kinds = tuple(element_type(np.dtype(t)) for t in types)
    names = tuple(f"y{k}" for k in range(len(types)))
    attributes = {ARGUMENTS: {**arguments, **operands}, TYPES_OF_RESULTS: kinds}
    inputs = tuple(GraphTensor(n, element_type(a.dtype), a.shape) for n, a in tensors.items())
    outputs = tuple(GraphTensor(n, k, None) for n, k in zip(names, kinds, strict=True))
    node = Node(op, f"aten.{op}.default", tuple(tensors), names, attributes)
    model = import_graph(Graph("it", (node,), inputs, outputs))
    return [*model.outputs(evaluate(model.program, model.inputs(tensors))).values()]


def of_floats(op: str, *rows: list[float], **arguments: Any) -> Any:
    names = ("self", "end" if op == "lerp" else "other")
    tensors = {n: np.array(row, np.float32) for n, row in zip(names, rows, strict=False)}
    return computed(op, tensors, arguments, "float32")[0]


@pytest.mark.parametrize("op", ["sign", "sgn"])
def test_the_sign_of_nan_is_0(op: str) -> None:
    np.testing.assert_array_equal(of_floats(op, [NAN, INF, -0.0, -2]), [0, 1, 0, -1])


def test_quotients_by_infinities_are_rounded_down() -> None:
    a, b = [-1, 1, -1, INF, 0, 5, 5.5, -7, -5], [INF, -INF, -INF, 2, INF, 0, -2, INF, 0]
    wanted = [-1, -1, 0, NAN, 0, INF, -3, -1, -INF]
    np.testing.assert_array_equal(of_floats("floor_divide", a, b), wanted)


@pytest.mark.parametrize("op", ["xlogy", "special_xlogy"])
def test_nothing_times_the_logarithm_of_nan(op: str) -> None:
    found = of_floats(op, [0, 0, 0, 1], [NAN, INF, 0, 0])
    np.testing.assert_array_equal(found, [NAN, 0, 0, -INF])


def test_gradients_of_maxima_go_to_the_last_nan() -> None:
    x = np.array([[[[NAN, NAN, 1, 5, 5, NAN]]]], np.float32)
    dy, places = np.array([[[[7, 8, 9]]]], np.float32), np.zeros((1, 1, 1, 3), int)
    window = {"kernel_size": (1, 2), "stride": (1, 2), "padding": (0, 0), "dilation": (1, 1)}
    given = {"grad_output": dy, "self": x, "indices": places}
    found = computed("max_pool2d_with_indices_backward", given, window, "float32")[0]
    assert found.ravel().tolist() == [0, 7, 0, 8, 0, 9]


def test_numbers_times_powers_of_2() -> None:
    np.testing.assert_array_equal(of_floats("ldexp", [3, -1, INF, NAN], [2, -1, -1, 3]), [12, -0.5, INF, NAN])


def test_interpolation_is_exact_at_its_ends() -> None:
    found = of_floats("lerp", [1e8, 1, INF], [1, INF, 1], weight=1.0)
    np.testing.assert_array_equal(found, [1, NAN, NAN])
    np.testing.assert_array_equal(of_floats("lerp", [1, INF], [INF, 1], weight=0.2), [INF, NAN])


def test_small_results_are_not_what_cancellation_leaves() -> None:
    x = [-1e-6, -1e-4, -0.2, -1, 3]
    exact = np.where(np.array(x) > 0, x, np.expm1(x))
    np.testing.assert_allclose(of_floats("elu", x), exact, rtol=1e-6)
    np.testing.assert_allclose(of_floats("erfc", [3, 5, 9]), [2.209050e-5, 1.537460e-12, 4.137032e-37], 1e-6)


WINDOWS: list[tuple[dict[str, Any], list[int]]] = [
    ({"kernel_size": (3,), "stride": (1,), "padding": (1,)}, [0, 0, 1, 2]),
    ({"kernel_size": (2,), "stride": (3,), "padding": (1,), "ceil_mode": True}, [0, 2]),
    ({"kernel_size": (3,), "stride": (1,), "padding": (1,), "dilation": (2,)}, [1, 0]),
]


@pytest.mark.parametrize(("window", "places"), WINDOWS)
def test_padding_is_not_the_place_of_a_maximum(window: dict[str, Any], places: list[int]) -> None:
    x = {"self": np.full((1, 1, 4), -INF, np.float32)}
    values, found = computed("max_pool1d_with_indices", x, window, "float32", "int64")
    assert (values == -INF).all()
    np.testing.assert_array_equal(found, [[places]])


def test_the_last_nan_of_a_window_is_its_maximum() -> None:
    x = {"self": np.array([[[NAN, 1, NAN, 2, 5, NAN, 0]]], np.float32)}
    whole = {"kernel_size": (4,), "stride": (3,)}
    assert computed("max_pool1d_with_indices", x, whole, "float32", "int64")[1].tolist() == [[[2, 5]]]
    for parts, places in ((1, [5]), (2, [2, 5])):
        found = computed("adaptive_max_pool1d", x, {"output_size": (parts,)}, "float32", "int64")[1]
        assert found.tolist() == [[places]]


@pytest.mark.parametrize(
    ("kind", "left", "right"),
    [
        ("int32", [10, 0, 0, -(2**31)], [2, 0, -1, -1]),
        ("int64", [10, 100 << 33, 0, -(1 << 31)], [2, 0, -1, -1]),
        ("uint8", [10, 0, 0, 0], [2, 0, 0, 0]),
    ],
)
def test_by_as_many_bits_as_there_are_all_go_out(kind: str, left: list[int], right: list[int]) -> None:
    numbers = np.array([5, 100, -7, -1]).astype(kind)
    both = {"self": numbers, "other": np.array([1, 33, 64, 31], kind)}
    assert computed("bitwise_left_shift", both, {}, kind)[0].tolist() == left
    assert computed("bitwise_right_shift", both, {}, kind)[0].tolist() == right
