"""Float16: what is made of several steps is computed in float32 and rounded once, as frameworks do."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

from polyloom.frontends.graph.model import Graph, GraphTensor, Node, element_type
from polyloom.frontends.torch import import_graph
from polyloom.frontends.torch.call import ARGUMENTS, TYPES_OF_RESULTS, Operand
from polyloom.ir.evaluation.programs import evaluate

NDArray = np.ndarray[Any, Any]
HALF = element_type(np.dtype(np.float16))


def computed(op: str, x: NDArray, arguments: dict[str, Any], name: str = "self") -> NDArray:
    """Return what an operation makes of halves."""
    node_arguments = {**arguments, name: Operand(0)}
    node = Node(
        op, f"aten.{op}.default", ("x",), ("y",), {ARGUMENTS: node_arguments, TYPES_OF_RESULTS: (HALF,)}
    )
    model = import_graph(
        Graph("it", (node,), (GraphTensor("x", HALF, x.shape),), (GraphTensor("y", HALF, None),))
    )
    return model.outputs(evaluate(model.program, model.inputs({"x": x})))["y"]


def apart(found: NDArray, wanted: NDArray) -> float:
    """Return the largest distance from what is wanted, in steps between halves there."""
    assert found.dtype == np.float16
    return float((np.abs(found.astype(float) - wanted) / np.spacing(np.abs(wanted).astype(np.float16))).max())


FUNCTIONS: dict[str, Callable[[NDArray], NDArray]] = {
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "expm1": np.expm1,
    "asinh": np.arcsinh,
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_a_function_is_rounded_once(op: str) -> None:
    x = np.linspace(-4, 4, 201).astype(np.float16)
    assert apart(computed(op, x, {}), FUNCTIONS[op](x.astype(float))) <= 1


LARGE = (np.random.default_rng(1).random((2, 4, 500)) * 20 + 290).astype(np.float16)
"""Sums of these, and of their squares, have no place in a half."""

REDUCTIONS: dict[str, tuple[dict[str, Any], Callable[[NDArray], NDArray], str]] = {
    "mean": ({"dim": (2,)}, lambda x: x.mean(2), "self"),
    "var": ({"dim": (2,)}, lambda x: x.var(2, ddof=1), "self"),
    "std": ({"dim": (2,)}, lambda x: x.std(2, ddof=1), "self"),
    "linalg_vector_norm": ({"dim": (2,)}, lambda x: np.sqrt((x * x).sum(2)), "self"),
    "avg_pool1d": ({"kernel_size": (500,)}, lambda x: x.mean(2, keepdims=True), "self"),
    "adaptive_avg_pool1d": ({"output_size": (1,)}, lambda x: x.mean(2, keepdims=True), "self"),
    "layer_norm": (
        {"normalized_shape": (500,)},
        lambda x: (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5),
        "input",
    ),
    "rms_norm": (
        {"normalized_shape": (500,), "eps": 1e-5},
        lambda x: x / np.sqrt((x * x).mean(2, keepdims=True) + 1e-5),
        "input",
    ),
}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_a_mean_of_what_has_no_sum_in_halves(op: str) -> None:
    arguments, wanted, name = REDUCTIONS[op]
    assert apart(computed(op, LARGE, arguments, name), wanted(LARGE.astype(float))) <= 1


def test_a_softmax_is_rounded_once() -> None:
    x = np.random.default_rng(2).normal(0, 3, (3, 60)).astype(np.float16)
    powers = np.exp(x.astype(float))
    assert apart(computed("softmax", x, {"dim": 1}), powers / powers.sum(1, keepdims=True)) <= 1
