"""The errors of functions made of instructions: all of float16, samples of float32, and special values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from polyloom.ir.expressions import BinaryOp, UnaryOp
from polyloom.ir.types import ElementType
from polyloom.wafer.vector_functions.elementary import error_ulps, vector_function
from polyloom.wafer.vector_functions.sequences import evaluate

NDArray = npt.NDArray[Any]

HALF, FLOAT = ElementType.FLOAT16, ElementType.FLOAT32
FUNCTIONS: dict[Any, Callable[[NDArray], NDArray]] = {
    UnaryOp.EXP: np.exp,
    UnaryOp.SIGMOID: lambda a: 1 / (1 + np.exp(-a)),
    UnaryOp.TANH: np.tanh,
    UnaryOp.RSQRT: lambda a: 1 / np.sqrt(a),
    UnaryOp.SQRT: np.sqrt,
}
EVERY_HALF = np.arange(2**16, dtype=np.uint16).view(np.float16)
SPECIAL = np.array([0, 1, -1, np.inf, -np.inf, np.nan], np.float32)
DRAWN = np.random.default_rng(17)


def floats(count: int) -> NDArray:
    """Floats of all sizes, and many near 1."""
    bits = DRAWN.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([bits, DRAWN.uniform(-12, 12, count).astype(np.float32), SPECIAL])


def largest_error(found: NDArray, exact: NDArray) -> float:
    """Return the largest error in units in the last place; infinite where special values differ.

    A result of float32 that lies below 2**-124, as it should, is not counted.
    """
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        wanted = exact.astype(found.dtype)
        exponents = np.maximum(np.frexp(np.abs(exact))[1] - 1, info.minexp)
        errors = np.abs(found.astype(np.longdouble) - exact) / np.ldexp(
            np.longdouble(1), exponents - info.nmant
        )
    special = ~np.isfinite(found) | ~np.isfinite(wanted)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    errors = np.where(special, np.where(same, 0.0, np.inf), errors)
    if found.dtype == np.float32:
        errors[(np.abs(exact) < 2.0**-124) & (np.abs(found) < 2.0**-123)] = 0
    return float(errors.max())


@pytest.mark.parametrize("op", FUNCTIONS, ids=str)
@pytest.mark.parametrize("kind", [HALF, FLOAT], ids=str)
def test_functions_are_as_exact_as_they_say(op: Any, kind: ElementType) -> None:
    x = EVERY_HALF if kind is HALF else floats(100_000)
    if op in (UnaryOp.SQRT, UnaryOp.RSQRT):
        x = x[~np.signbit(x) | (x < 0) | np.isnan(x)]  # the root of -0 is that of 0
        x = x[(np.abs(x) >= 2.0**-126) | (x == 0) | np.isnan(x)]
    function, stated = vector_function(op, kind), error_ulps(op, kind)
    assert function is not None and stated is not None
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[op](x.astype(np.longdouble))
    error = largest_error(evaluate(function, x), exact)
    assert 0.4 * stated < error <= stated


@pytest.mark.parametrize("kind", [HALF, FLOAT], ids=str)
def test_quotients_are_as_exact_as_they_say(kind: ElementType) -> None:
    if kind is HALF:
        a, b = np.tile(DRAWN.permutation(EVERY_HALF), 4), np.tile(EVERY_HALF, 4)
    else:
        a, b = floats(100_000), DRAWN.permutation(floats(100_000))
        inside = (np.abs(b) >= 2.0**-126) & (np.abs(b) <= 2.0**125) | (b == 0) | ~np.isfinite(b)
        a, b = a[inside], b[inside]
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL), -1).reshape(-1, 2).astype(kind.dtype)
    a, b = np.concatenate([a, pairs[:, 0]]), np.concatenate([b, pairs[:, 1]])
    function, stated = vector_function(BinaryOp.DIVIDE, kind), error_ulps(BinaryOp.DIVIDE, kind)
    assert function is not None and stated is not None
    with np.errstate(all="ignore"):
        exact = a.astype(np.longdouble) / b.astype(np.longdouble)
    assert 0.4 * stated < largest_error(evaluate(function, a, b), exact) <= stated


def test_no_other_function_is_a_sequence() -> None:
    assert vector_function(UnaryOp.LOG, HALF) is None
    assert error_ulps(UnaryOp.EXP, ElementType.INT16) is None
