"""Views: every chain of them sees what NumPy sees, whether the elements are known or not."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.frontends.graph import values
from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.operations import movement
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value
from polyloom.ir import evaluate
from polyloom.ir.program import Program
from polyloom.ir.types import ElementType
from polyloom.ir.verification.programs import verify
from random_tests import tried


def seen(b: Builder, value: Value, given_arrays: dict[str, Any]) -> Any:
    """Evaluate a value by the statements that are in the builder."""
    result = b.moved(value)
    read = {a.buffer for s in b.statements for a in s.reads} - {s.write.buffer for s in b.statements}
    arrays = {n: given_arrays.get(n, b.constants.get(n)) for n in sorted(read)}
    tensors = tuple(t for n, t in b.tensors.items() if n in read or b.statements)
    program = Program.of("p", tensors, tuple(arrays), (result.tensor,), tuple(b.statements))
    verify(program)
    return evaluate(program, arrays)[result.tensor]


def factors(size: int, draw: Any) -> list[int]:
    """Draw a shape with ``size`` elements."""
    shape = []
    while size > 1 and draw(st.booleans()):
        divisor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
        shape.append(divisor)
        size //= divisor
    return [*shape, size]


def step(b: Builder, value: Value, array: Any, draw: Any) -> tuple[Value, Any]:
    """Apply a random movement to both."""
    kind = draw(st.sampled_from(["transpose", "slice", "reshape", "flip", "unsqueeze", "expand", "pad"]))
    rank = value.rank
    if kind == "transpose":
        order = draw(st.permutations(range(rank)))
        return values.transposed(value, order), array.transpose(order)
    if kind == "reshape":
        shape = factors(value.size, draw)
        return movement.reshaped(b, value, shape), array.reshape(shape)
    if kind == "unsqueeze":
        at = draw(st.integers(0, rank))
        return values.unsqueezed(value, [at]), np.expand_dims(array, at)
    if kind == "expand":
        shape = (2, *value.shape)
        return values.expanded(value, shape), np.broadcast_to(array, shape)
    at = draw(st.integers(0, rank - 1)) if rank else None
    if at is None:
        return value, array
    if kind == "flip":
        return movement.flipped(value, at), np.flip(array, at)
    if kind == "pad":
        widths = [
            (draw(st.integers(-1, 2)), 1) if k == at and value.shape[k] > 1 else (0, 0) for k in range(rank)
        ]
        cut = array[tuple(slice(max(-low, 0), None) for low, _ in widths)]
        wanted = np.pad(cut, [(max(low, 0), high) for low, high in widths])
        return movement.padded(b, value, [w[0] for w in widths], [w[1] for w in widths]), wanted
    start = draw(st.integers(0, value.shape[at] - 1))
    length = draw(st.integers(1, value.shape[at] - start))
    where = (slice(None),) * at + (slice(start, start + length),)
    return values.sliced(value, at, start, 1, length), array[where]


@tried(120)
@given(st.data(), st.booleans())
def test_chains_of_movements_see_what_numpy_sees(data: Any, known: bool) -> None:
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    array = np.arange(1, prod(shape) + 1, dtype=np.int32).reshape(shape)
    b = Builder()
    value = b.constant(array, "x") if known else b.input("x", ElementType.INT32, shape)
    wanted = array
    for _ in range(data.draw(st.integers(1, 5))):
        if value.size <= 200:
            value, wanted = step(b, value, wanted, data.draw)
    assert value.shape == wanted.shape
    if known:
        assert not b.statements
        np.testing.assert_array_equal(b.known(value), wanted)
    np.testing.assert_array_equal(seen(b, value, {"x": array}), wanted)


@pytest.mark.parametrize(
    ("old", "new", "statements"),
    [
        ((12,), (3, 4), 0),
        ((3, 1, 4), (3, 4), 0),
        ((3, 4), (12,), 1),
        ((4, 6), (6, 4), 1),
        ((2, 3, 5), (6, 5), 1),
    ],
)
def test_a_reshape_is_a_view_or_one_statement(old: Any, new: Any, statements: int) -> None:
    b = Builder()
    movement.reshaped(b, b.input("x", ElementType.FLOAT32, old), new)
    assert len(b.statements) == statements


def test_a_split_that_is_merged_again_is_a_view() -> None:
    b = Builder()
    x = b.input("x", ElementType.FLOAT32, (4, 6))
    back = movement.reshaped(b, movement.reshaped(b, x, (2, 2, 3, 2)), (4, 6))
    assert not b.statements
    assert back == x


@pytest.mark.parametrize(
    "positions", [[0, 0, 1, 1, 2, 2], [3, 1, 0], [0, 2, 0, 2, 1, 3, 0, 1, 3, 3, 2, 0, 0], [3]]
)
def test_taken(positions: list[int]) -> None:
    array = np.arange(8, dtype=np.float32).reshape(4, 2)
    b = Builder()
    value = movement.taken(b, b.input("x", ElementType.FLOAT32, (4, 2)), 0, positions)
    np.testing.assert_array_equal(seen(b, value, {"x": array}), array[positions])


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "edge", "wrap"])
@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 0), (7, 5)])
def test_padding_by_mode(mode: str, before: int, after: int) -> None:
    array = np.arange(1, 5, dtype=np.int32)
    b = Builder()
    value = movement.padded_by_mode(b, b.input("x", ElementType.INT32, (4,)), [before], [after], mode)
    wanted = np.pad(array, (before, after), mode=mode)  # type: ignore[call-overload]
    np.testing.assert_array_equal(seen(b, value, {"x": array}), wanted)


def test_a_shape_that_does_not_fit_is_refused() -> None:
    b = Builder()
    with pytest.raises(Refused, match="6 elements do not fit 4"):
        movement.reshaped(b, b.input("x", ElementType.INT32, (6,)), (4,))
