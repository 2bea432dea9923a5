"""Transposed convolutions: what is scattered in NumPy, and how their statements are written."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.operations.convolution import Window, transposed_convolution
from polyloom.ir import evaluate
from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.host import MdHom
from polyloom.ir.program import Program
from polyloom.ir.types import ElementType
from random_tests import tried


def made(shape: Any, filters: Any, window: Window, groups: int, wanted: Any, *, gathers: bool) -> Program:
    """Return the program of a transposed convolution of ``y`` and ``w``."""
    b = Builder()
    y, w = (b.input(n, ElementType.FLOAT32, s) for n, s in (("y", shape), ("w", filters)))
    result = b.moved(transposed_convolution(b, y, w, window, groups, wanted, gathers=gathers))
    return Program.of("p", tuple(b.tensors.values()), ("y", "w"), (result.tensor,), tuple(b.statements))


def scattered(y: Any, w: Any, window: Window, groups: int, wanted: Any) -> Any:
    """Return the same, one product after the other."""
    filters, channels = w.shape[0] // groups, w.shape[1]
    x = np.zeros((y.shape[0], groups * channels, *wanted), np.float32)
    for n, k, *o in np.ndindex(*y.shape):
        for c, r in product(range(channels), np.ndindex(*window.sizes)):
            at = [
                s * p + d * q - lo
                for s, p, d, q, lo in zip(window.strides, o, window.dilations, r, window.before, strict=True)
            ]
            if all(0 <= i < m for i, m in zip(at, wanted, strict=True)):
                x[(n, k // filters * channels + c, *at)] += y[(n, k, *o)] * w[(k, c, *r)]
    return x


@tried(60)
@given(st.data())
def test_transposed_convolutions_are_what_is_scattered(data: Any) -> None:
    rank, groups = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))

    def numbers(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(rank))

    sizes, strides, dilations = numbers(1, 3), numbers(1, 3), numbers(1, 2)
    before, positions, more = numbers(0, 2), numbers(1, 4), numbers(-2, 2)
    window = Window(sizes, strides, dilations, before, before)
    full = (
        (p - 1) * s + window.reach(k) - before[k]
        for k, (p, s) in enumerate(zip(positions, strides, strict=True))
    )
    wanted = tuple(max(1, n + m) for n, m in zip(full, more, strict=True))
    filters, channels = data.draw(st.integers(1, 2)), data.draw(st.integers(1, 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    y = rng.integers(-3, 4, (2, groups * filters, *positions)).astype(np.float32)
    w = rng.integers(-3, 4, (groups * filters, channels, *sizes)).astype(np.float32)
    program = made(y.shape, w.shape, window, groups, wanted, gathers=data.draw(st.booleans()))
    have = evaluate(program, {"y": y, "w": w})[program.outputs[0]]
    np.testing.assert_array_equal(have, scattered(y, w, window, groups, wanted))


@pytest.mark.parametrize(
    ("stride", "dilation", "groups", "before"),
    [(1, 1, 1, 1), (1, 2, 1, 0), (1, 1, 8, 1), (1, 1, 2, 2), (2, 1, 1, 1), (2, 1, 4, 0)],
)
def test_windows_that_overlap_are_gathered_without_conditions_and_host_loops(
    stride: int, dilation: int, groups: int, before: int
) -> None:
    """A condition in a sum keeps it from vectors, and host loops add to each element again and again."""
    window = Window((3, 3), (stride,) * 2, (dilation,) * 2, (before,) * 2, (before,) * 2)
    wanted = [19 * stride - 2 * before + 2 * dilation + 1] * 2
    program = host_program(made((2, 8, 20, 20), (8, 8 // groups, 3, 3), window, groups, wanted, gathers=True))
    homs = [node for node in program.body if isinstance(node, MdHom)]
    assert len(homs) == len(program.body)
    assert not any(hom.guard for hom in homs)


def test_filters_that_are_not_finite_meet_no_zeros_where_a_model_says_nothing_of_them() -> None:
    window = Window((2,), (1,), (1,), (0,), (0,))
    program = made((1, 1, 3), (1, 1, 2), window, 1, (4,), gathers=False)
    y, w = np.ones((1, 1, 3), np.float32), np.array([[[1, np.inf]]], np.float32)
    assert evaluate(program, {"y": y, "w": w})[program.outputs[0]][0, 0, 0] == 1
