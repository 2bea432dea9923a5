"""Points are written out only where they choose registers, and not where that would be long."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Read
from polyloom.ir.naming import Names
from polyloom.ir.types import ElementType
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    If,
    Kind,
    Load,
    Parameter,
    Space,
    Store,
    counted,
)
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tree.rewrite import walk
from polyloom.mdh.tree.unroll import unrolled
from polyloom.mdh.tree.verify import verify
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

I32 = ElementType.INT32
ROWS, COLUMNS = 12, 6
AT, LANE, K = map(Name, ("at", "lane", "k"))


def read(array: str, *subscripts: IntExpression) -> Compute:
    return Compute(Read(0, I32), (Load(array, subscripts),))


def plus(first: Load, second: Load) -> Compute:
    return Compute(Binary(BinaryOp.ADD, Read(0, I32), Read(1, I32)), (first, second))


def points(iterator: str, count: int, *body: For | Store) -> For:
    return counted(iterator, Number(count), body, kind=Kind.UNROLLED)


def columns(array: str, value: Compute | None = None) -> Code:
    """Store to a row of totals, or to y, by vectors of four and two."""
    found: list[For] = []
    for first, width in ((0, 4), (4, 2)):
        place = sum_of([(1, Number(first)), (1, LANE)])
        store = Store(array, (AT, place), value or read("total", AT, place))
        found.append(counted("lane", Number(width), (store,), kind=Kind.VECTOR))
    return (points("at", ROWS, *found),)


def sums(rows: int = ROWS) -> Function:
    """Return totals of x[at .. n], each row with a loop of its own."""
    total = Load("total", (AT, Name("column")))
    here = (AT, K)
    step = Store("total", total.subscripts, plus(total, Load("x", here)))
    own = counted(
        "k", Number(20), (points("column", COLUMNS, step),), start=sum_of([(1, Name("n")), (1, AT)])
    )
    shape = (Number(ROWS), Number(COLUMNS))
    body = (
        Array(name="total", type=I32, shape=shape, space=Space.REGISTER),
        *columns("total", Compute(Constant(0, I32))),
        points("at", rows, own),
        *columns("y"),
    )
    x = Parameter(name="x", type=I32, shape=(Number(ROWS), Number(20)), constant=True)
    y = Parameter(name="y", type=I32, shape=shape)
    context = Operation(">=", (Name("n"), Number(0)))
    return Function(name="sums", parameters=(x, y), integers=("n",), body=body, context=context)


def test_single_points_work_in_memory() -> None:
    function = sums()
    printed = final(function)
    added = [s for s in walk(printed.body) if isinstance(s, Store) and len(s.value.loads) == 2]
    assert len(added) == 1, "written out there are 72 sums, each in a loop"
    assert [s.space for s in walk(printed.body) if isinstance(s, Array)].count(Space.PRIVATE) == 1
    assert not verify(printed).wrong
    x = np.arange(ROWS * 20, dtype=np.int32).reshape(ROWS, 20)
    for n in (0, 5, 12, 25):
        arrays = {"x": x, "y": np.full((ROWS, COLUMNS), -1, np.int32)}
        wanted = [[x[row, min(20, n + row) :].sum()] * COLUMNS for row in range(ROWS)]
        for each in (function, printed):
            np.testing.assert_array_equal(evaluate(each, arrays, {"n": n})["y"], wanted)


def test_a_few_points_are_written_out() -> None:
    printed = final(sums(rows=2))
    assert all(s.space is Space.REGISTER for s in walk(printed.body) if isinstance(s, Array))


def test_points_that_choose_no_registers_stay_a_loop() -> None:
    x = Parameter(name="x", type=I32, shape=(Number(8),))
    body = (points("at", 8, Store("x", (AT,), Compute(Constant(1, I32)))),)
    printed = final(Function(name="ones", parameters=(x,), integers=(), body=body))
    assert [s.kind for s in walk(printed.body) if isinstance(s, For)] == [Kind.SEQUENTIAL]


def test_arrays_declared_where_points_work_in_memory_are_on_the_stack() -> None:
    """Points of a loop that stays a loop choose their elements: they are no registers nor lanes."""
    function = sums()
    array, *before, rows, last = function.body
    assert isinstance(rows, For)
    own = rows.body[0]
    assert isinstance(own, For)
    step = own.body[0]
    assert isinstance(step, For)
    add = step.body[0]
    assert isinstance(add, Store)
    term = Array(name="term", type=I32, shape=(Number(COLUMNS),), space=Space.REGISTER)
    column = (Name("column"),)
    kept = points(
        "column", COLUMNS, Store("term", column, add.value), replace(add, value=read("term", *column))
    )
    body = (array, *before, replace(rows, body=(replace(own, body=(term, kept)),)), last)
    printed = final(replace(function, body=body))
    declared = {s.name: s for s in walk(printed.body) if isinstance(s, Array)}
    assert declared["term"].space is Space.PRIVATE and declared["term"].shape == (Number(COLUMNS),)
    x = np.arange(ROWS * 20).reshape(ROWS, 20).astype(np.int32)
    for n in (0, 5, 30):
        arrays = {"x": x, "y": np.zeros((ROWS, COLUMNS), np.int32)}
        found = evaluate(printed, arrays, {"n": n})["y"]
        np.testing.assert_array_equal(found, evaluate(function, arrays, {"n": n})["y"])


def test_steps_of_sums_are_counted_as_they_are_written_out() -> None:
    """Loops that are written out are not there any more: 2 * (1 + 127) statements are just short enough."""
    term = Store("total", (Number(0),), plus(Load("total", (Number(0),)), Load("x", (AT, K))))
    loops = [points("k", 2, points("at", count, term)) for count in (127, 128)]
    array = Array(name="total", type=I32, shape=(Number(1),), space=Space.REGISTER)
    short, long = (unrolled(Names(set()), (array, loop)) for loop in loops)
    assert [s for s in walk(short) if isinstance(s, For)] == []
    assert [s.iterator for s in walk(long) if isinstance(s, For)] == ["k"]


def test_registers_that_hold_nothing_yet_are_not_copied() -> None:
    function = sums()
    array, *_, rows, last = function.body
    assert isinstance(rows, For)
    zero = Store("total", (AT, Name("column")), Compute(Constant(0, I32)))
    begun = replace(rows, body=(points("column", COLUMNS, zero), *rows.body))
    printed = final(replace(function, body=(array, begun, last)))
    assert not verify(printed).wrong
    x = np.arange(ROWS * 20, dtype=np.int32).reshape(ROWS, 20)
    arrays = {"x": x, "y": np.full((ROWS, COLUMNS), -1, np.int32)}
    wanted = [[x[row, min(20, 5 + row) :].sum()] * COLUMNS for row in range(ROWS)]
    np.testing.assert_array_equal(evaluate(printed, arrays, {"n": 5})["y"], wanted)


def test_registers_of_an_iteration_before_are_copied() -> None:
    function = sums()
    array, *first, rows, last = function.body
    later = If(Operation(">=", (Name("again"), Number(1))), (rows, last))
    twice = counted("again", Number(2), (later, *first))
    printed = final(replace(function, body=(array, twice)))
    x = np.arange(ROWS * 20, dtype=np.int32).reshape(ROWS, 20)
    arrays = {"x": x, "y": np.full((ROWS, COLUMNS), -1, np.int32)}
    wanted = [[x[row, min(20, 5 + row) :].sum()] * COLUMNS for row in range(ROWS)]
    np.testing.assert_array_equal(evaluate(printed, arrays, {"n": 5})["y"], wanted)
