"""The evaluator of kernel trees: undefined elements, barriers, lanes, and wrong parallelism show."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_tree import matrix_vector

from polyloom.ir.expressions import Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.evaluate import BadBarrier, backwards, evaluate, shuffled
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Parameter,
    Space,
    Store,
    counted,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

I32 = ElementType.INT32
HERE, N = Name("i"), Number(6)
X = np.arange(6, dtype=np.int32)


def plus(*terms: IntExpression | int) -> IntExpression:
    return sum_of([(1, Number(t) if isinstance(t, int) else t) for t in terms])


def element(array: str, *subscripts: IntExpression) -> Compute:
    return Compute(Read(0, I32), (Load(array, subscripts),))


def kernel(*body: For | If | Array | Store | LetInteger | Let | Barrier) -> Function:
    parameters = (
        Parameter(name="x", type=I32, shape=(N,), constant=True),
        Parameter(name="y", type=I32, shape=(N,)),
    )
    return Function(name="kernel", parameters=parameters, integers=(), body=body)


def turned_in_a_group(*between: Barrier) -> Code:
    """``y`` is ``x`` from its end, through an array of the group."""
    kept = Array(name="t", type=I32, shape=(N,), space=Space.GROUP)
    opposite = Operation("-", (Number(5), HERE))
    item = (Store("t", (HERE,), element("x", HERE)), *between, Store("y", (HERE,), element("t", opposite)))
    return kept, counted("i", N, item, kind=Kind.ITEM)


def test_a_product_with_vectors() -> None:
    a, x = np.arange(64 * 5, dtype=np.float32).reshape(64, 5), np.arange(5, dtype=np.float32)
    for together in (False, True):
        found = evaluate(matrix_vector(), {"A": a, "x": x}, {"n": 5}, together=together)
        np.testing.assert_array_equal(found["y"], a @ x)


def test_an_element_that_was_never_stored_shows() -> None:
    body = replace(matrix_vector(), body=(matrix_vector().body[0],))
    (loop,) = body.body
    assert isinstance(loop, For)
    never_zero = replace(body, body=(replace(loop, body=(loop.body[0], *loop.body[2:])),))
    ones = {"A": np.ones((64, 5), np.float32), "x": np.ones(5, np.float32)}
    assert np.isnan(evaluate(never_zero, ones, {"n": 5})["y"]).all()
    assert evaluate(kernel(), {"x": X}, {})["y"].tolist() == [-1515870811] * 6


@pytest.mark.parametrize("subscript", [-1, 6])
def test_elements_that_do_not_exist(subscript: int) -> None:
    place = (Number(subscript),)
    with pytest.raises(IndexError, match=rf"y has no element \[{subscript}\]; it has \[6\]"):
        evaluate(kernel(Store("y", place, Compute(Constant(0, I32)))), {"x": X}, {})
    with pytest.raises(IndexError, match="x has no element"):
        evaluate(kernel(Store("y", (Number(0),), element("x", *place))), {"x": X}, {})


def test_items_wait_at_barriers() -> None:
    for order in (backwards, shuffled(0)):
        found = evaluate(kernel(*turned_in_a_group(Barrier())), {"x": X}, {}, order=order)
        assert found["y"].tolist() == [5, 4, 3, 2, 1, 0]


def test_without_a_barrier_items_read_what_is_not_there_yet() -> None:
    found = evaluate(kernel(*turned_in_a_group()), {"x": X}, {})
    assert found["y"].tolist() != [5, 4, 3, 2, 1, 0]


def test_items_of_two_dimensions_wait_together() -> None:
    two, three, j = Number(2), Number(3), Name("j")
    kept = Array(name="t", type=I32, shape=(two, three), space=Space.GROUP)
    place = plus(Operation("*", (three, HERE)), j)
    item = (
        Array(name="own", type=I32, shape=(), space=Space.REGISTER),
        Store("own", (), element("x", place)),
        Store("t", (HERE, j), element("own")),
        Barrier(),
        Store("y", (place,), element("t", Operation("-", (Number(1), HERE)), Operation("-", (Number(2), j)))),
    )
    inner = counted("j", three, item, kind=Kind.ITEM)
    function = kernel(kept, counted("i", two, (inner,), kind=Kind.ITEM))
    assert evaluate(function, {"x": X}, {})["y"].tolist() == [5, 4, 3, 2, 1, 0]


def test_a_barrier_that_some_never_reach() -> None:
    some = If(Operation("<", (HERE, Number(3))), (Barrier(),))
    with pytest.raises(BadBarrier, match="3 of 6 items wait"):
        evaluate(kernel(counted("i", N, (some,), kind=Kind.ITEM)), {"x": X}, {})


def test_a_parallel_loop_that_is_none_depends_on_the_order() -> None:
    start = Store("y", (Number(0),), element("x", Number(0)))
    body = Store("y", (plus(HERE, 1),), element("y", HERE))
    function = kernel(start, counted("i", Number(5), (body,), kind=Kind.GROUP))
    assert evaluate(function, {"x": X + 1}, {})["y"].tolist() == [1] * 6
    assert evaluate(function, {"x": X + 1}, {}, order=backwards)["y"].tolist() != [1] * 6


def test_lanes_statement_by_statement() -> None:
    """``y[l] = x[l]; y[l + 1] = y[l]`` is another program when all lanes store first."""
    steps = (
        LetInteger("next", plus(HERE, 1)),
        Let("here", element("x", HERE)),
        Store("y", (HERE,), element("here")),
        If(Operation("<", (Name("next"), N)), (Store("y", (Name("next"),), element("y", HERE)),)),
    )
    function = kernel(counted("i", N, steps, kind=Kind.VECTOR))
    assert evaluate(function, {"x": X}, {})["y"].tolist() == [0, 1, 2, 3, 4, 5]
    assert evaluate(function, {"x": X}, {}, together=True)["y"].tolist() == [0, 0, 1, 2, 3, 4]


def test_more_loops_than_python_has_room_for() -> None:
    total = Array(name="s", type=I32, shape=(), space=Space.REGISTER)
    add = Store("s", (), Compute(Read(0, I32) + 1, (Load("s"),)))
    code: Code = (add,)
    for k in range(40):
        code = (counted(f"i{k}", Number(2 if k % 10 == 0 else 1), code),)
    body = (total, Store("s", (), Compute(Constant(0, I32))), *code, Store("y", (Number(0),), element("s")))
    assert evaluate(kernel(*body), {"x": X}, {})["y"][0] == 16
