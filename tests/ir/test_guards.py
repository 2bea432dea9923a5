"""Guards keep instances away, also where their accesses would leave the tensors."""

from __future__ import annotations

import numpy as np
import pytest

from naive import naive
from polyloom.ir import Buffer, Combine, ElementType, Index, Program, Statement, View, evaluate, verify
from polyloom.ir.expressions import Binary, BinaryOp, Constant, Expression, Iterator, Read
from strategies import data

F32 = ElementType.FLOAT32
READ = Read(0, F32)


def program(
    read: Index,
    write: Index,
    reduction: Combine,
    guard: list[Index],
    expression: Expression = READ,
) -> Program:
    domain = (6, 4)
    access = View("x", (read,))
    statement = Statement.of(
        "S", ("i", "j"), domain, (access,), View("y", (write,)), expression, reduction, tuple(guard)
    )
    tensors = (Buffer.of("x", F32, (8,)), Buffer.of("y", F32, (6,)))
    return Program.of("S", tensors, ("x",), ("y",), (statement,))


ROW, COLUMN = Index.of((1, 0)), Index.of((0, 1))
BELOW = Index.of((1, -1))
"""j <= i."""
SHIFTED = Index.of((1, -1), -2)
INSIDE = [SHIFTED, Index.of((-1, 1), 9)]


@pytest.mark.parametrize("reduction", [Combine.ADD, Combine.MULTIPLY, Combine.MAXIMUM, Combine.MINIMUM])
@pytest.mark.parametrize(
    ("read", "write", "guard"),
    [
        (COLUMN, ROW, [BELOW]),
        (ROW, COLUMN, [BELOW]),
        (SHIFTED, ROW, INSIDE),
        (COLUMN, SHIFTED, [SHIFTED]),
        (ROW, COLUMN, [Index.of((-1, 0), 4), Index.of((1, 0), -3)]),
        (ROW, ROW, [Index.of((0, 0), -1)]),
        (Index.of((2, 0)), Index.of((-1, 0), 3), [Index.of((-1, 0), 3)]),
    ],
)
def test_guarded_reductions(reduction: Combine, read: Index, write: Index, guard: list[Index]) -> None:
    made = program(read, write, reduction, guard)
    verify(made)
    inputs = data(made, 7)
    assert np.array_equal(evaluate(made, inputs)["y"], naive(made, inputs)["y"])


def test_guarded_assignment_leaves_other_elements_zero() -> None:
    made = program(COLUMN, ROW, Combine.CONCATENATE, [Index.of((0, -1), 0), Index.of((1, 0), -2)])
    inputs = data(made, 8)
    y = evaluate(made, inputs)["y"]
    assert np.array_equal(y, naive(made, inputs)["y"])
    assert y[0] == y[1] == 0
    assert y[2] == inputs["x"][0]


def test_iterators_as_values() -> None:
    expression = Binary(
        BinaryOp.ADD, Iterator(1, F32), Binary(BinaryOp.MULTIPLY, Constant(10, F32), Iterator(0, F32))
    )
    made = program(COLUMN, ROW, Combine.ADD, [BELOW], expression)
    inputs = data(made, 9)
    assert np.array_equal(evaluate(made, inputs)["y"], naive(made, inputs)["y"])
