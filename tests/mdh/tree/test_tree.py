"""The kernel tree: its text, and what rewriting leaves."""

from __future__ import annotations

import pytest

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    Kind,
    Load,
    Parameter,
    Space,
    Store,
    counted,
)
from polyloom.mdh.tree.rewrite import integers_used, substituted, walk
from polyloom.mdh.tree.text import code_lines, function_text
from polyloom.polyhedra.loops.tree import Instance, Name, Number, Operation, sum_of

F32 = ElementType.FLOAT32


def matrix_vector() -> Function:
    i = sum_of([(1, Name("i0")), (1, Name("l"))])
    total = Load("sum", (Name("l"),))
    term = Binary(BinaryOp.ADD, Read(0, F32), Binary(BinaryOp.MULTIPLY, Read(1, F32), Read(2, F32)))
    loads = (total, Load("A", (i, Name("k"))), Load("x", (Name("k"),)))
    done = Instance("S", (i, Name("k")))
    step = Store("sum", total.subscripts, Compute(term, loads), done)
    zero = Store("sum", total.subscripts, Compute(Constant(0.0, F32)))
    last = Store("y", (i,), Compute(Read(0, F32), (total,)))

    def lanes(statement: Store) -> For:
        return counted("l", Number(8), (statement,), kind=Kind.VECTOR)

    body: Code = (
        Array(name="sum", type=F32, shape=(Number(8),), space=Space.REGISTER, lanes=True),
        lanes(zero),
        counted("k", Name("n"), (lanes(step),)),
        lanes(last),
    )
    return Function(
        name="product",
        parameters=(
            Parameter(name="A", type=F32, shape=(Number(64), Name("n")), constant=True),
            Parameter(name="x", type=F32, shape=(Name("n"),), constant=True),
            Parameter(name="y", type=F32, shape=(Number(64),)),
        ),
        integers=("n",),
        body=(counted("i0", Number(64), body, kind=Kind.GROUP, step=8),),
    )


def test_text() -> None:
    assert (
        function_text(matrix_vector())
        == """\
product(float32 A[64, n], float32 x[n], float32 y[64], integer n):
  parallel for i0 from 0 to 64 step 8:
    float32 sum[8] in registers, lanes last
    vector for l from 0 to 8:
      sum[l] = 0.0
    for k from 0 to n:
      vector for l from 0 to 8:
        sum[l] = sum[l] + A[i0 + l, k] * x[k]    # S(i0 + l, k)
    vector for l from 0 to 8:
      y[i0 + l] = sum[l]
"""
    )


def test_integers_that_are_used() -> None:
    function = matrix_vector()
    assert integers_used(function.body) == {"n"}
    (loop,) = function.body
    assert isinstance(loop, For)
    assert integers_used(loop.body) == {"n", "i0"}


def test_a_number_in_place_of_an_iterator() -> None:
    (loop,) = matrix_vector().body
    assert isinstance(loop, For)
    lines = list(code_lines(substituted(loop.body, "i0", Number(16))))
    assert "    sum[l] = sum[l] + A[l + 16, k] * x[k]    # S(l + 16, k)" in lines


def test_all_statements_are_walked() -> None:
    assert [type(s).__name__ for s in walk(matrix_vector().body)] == [
        *("For", "Array", "For", "Store", "For", "For", "Store", "For", "Store"),
    ]  # fmt: skip


def test_a_loop_with_another_condition_has_no_end() -> None:
    loop = For(
        iterator="t",
        start=Number(9),
        condition=Operation(">=", (Name("t"), Number(0))),
        step=Number(-1),
        body=(),
    )
    assert list(code_lines((loop,))) == ["for t from 9 while t >= 0 step -1:"]
    with pytest.raises(ValueError, match="t has no such end"):
        _ = loop.end
