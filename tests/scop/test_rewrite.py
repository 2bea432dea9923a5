"""Integer expressions of loops as expressions of the IR: divisions that round down."""

from __future__ import annotations

import pytest

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Iterator, walk
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation
from polyloom.scop.rewrite import integer_expression

HERE, N = Name("i"), Name("n")
KIND = ElementType.INT64


def half_of(value: IntExpression, *, counted: bool) -> Expression:
    return integer_expression(Operation("floor", (value, Number(2))), {"i": 0}, KIND, counted=counted)


def test_half_of_what_is_never_below_zero_is_a_division() -> None:
    expected = Binary(BinaryOp.DIVIDE, Iterator(0, KIND), Constant(2, KIND))
    assert half_of(HERE, counted=True) == expected


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (HERE, False),
        (N, True),
        (Operation("-", (HERE, Number(1))), True),
        (Operation("+", (HERE, Number(-1))), True),
        (Operation("max", (N, Number(1))), True),
    ],
)
def test_what_may_be_below_zero_is_rounded_down(value: IntExpression, counted: bool) -> None:
    operations = [part.op for part in walk(half_of(value, counted=counted)) if isinstance(part, Binary)]
    assert operations.count(BinaryOp.REMAINDER) == 2
