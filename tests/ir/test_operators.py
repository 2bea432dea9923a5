"""Operators of expressions: signs build the nodes that they name, and numbers take the other type."""

from __future__ import annotations

import pytest

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Read,
    Unary,
    UnaryOp,
)
from polyloom.ir.types import ElementType

X, Y = Read(0, ElementType.FLOAT16), Read(1, ElementType.FLOAT16)
TWO = Constant(2, ElementType.FLOAT16)


@pytest.mark.parametrize(
    ("built", "wanted"),
    [
        (X + Y, Binary(BinaryOp.ADD, X, Y)),
        (2 + X, Binary(BinaryOp.ADD, TWO, X)),
        (X - 2, Binary(BinaryOp.SUBTRACT, X, TWO)),
        (2 - X, Binary(BinaryOp.SUBTRACT, TWO, X)),
        (X * Y + 2, Binary(BinaryOp.ADD, Binary(BinaryOp.MULTIPLY, X, Y), TWO)),
        (2 * X, Binary(BinaryOp.MULTIPLY, TWO, X)),
        (X / 2, Binary(BinaryOp.DIVIDE, X, TWO)),
        (2 / X, Binary(BinaryOp.DIVIDE, TWO, X)),
        (-X, Unary(UnaryOp.NEGATE, X)),
        (X < 2, Compare(CompareOp.LT, X, TWO)),
        (X <= Y, Compare(CompareOp.LE, X, Y)),
        (X > Y, Compare(CompareOp.GT, X, Y)),
        (X <= 2, Compare(CompareOp.LE, X, TWO)),
        (X >= 2, Compare(CompareOp.GE, X, TWO)),
    ],
)
def test_a_sign_is_the_node_that_it_names(built: Expression, wanted: Expression) -> None:
    assert built == wanted


def test_equality_is_of_expressions() -> None:
    assert (X == Y) is False
    assert len({X + Y, X + Y, Y + X}) == 2


def test_zeros_of_both_signs_are_two_literals() -> None:
    """Passes keep what they found by expression."""
    zero, other = (Constant(value, ElementType.FLOAT32) for value in (0.0, -0.0))
    assert zero != other
    assert zero == Constant(0, ElementType.FLOAT32)
    assert len({zero, other}) == 2
