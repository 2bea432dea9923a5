"""Loops around instructions: unrolled, or with addresses before them."""

from __future__ import annotations

from polyloom.polyhedra.loops.tree import Name, Number, Operation
from polyloom.wafer.codegen.instruction_loops import tightened
from polyloom.wafer.pe_program.tree import Code, Cost, Element, For, Invoke, OperandRef, SetBase

X, Y = OperandRef("x"), OperandRef("y")
ADD = Invoke("faddh", Y, (Y, X))


def loop(first: int, last: int, body: Code) -> For:
    start = Operation("+", (Name("PE_X"), Number(first)))
    end = Operation("+", (Name("PE_X"), Number(last)))
    condition = Operation("<=", (Name("k"), end))
    return For(iterator="k", start=start, condition=condition, step=Number(1), body=body)


def body() -> Code:
    k = Operation("-", (Name("k"), Name("PE_X")))
    return (
        Cost(iterations=1),
        Cost(operations=1),
        SetBase(Y, Element("y", (Name("i"),))),
        Cost(operations=2),
        SetBase(X, Element("x", (k,))),
        ADD,
    )


def from_zero() -> Code:
    """The body of a loop that counts from 0: a subscript without PE_X is cheaper."""
    x = (Cost(operations=1), SetBase(X, Element("x", (Name("k"),))))
    return (*body()[:3], *x, ADD)


def test_a_short_loop_is_unrolled_and_sets_an_address_once() -> None:
    assert tightened((loop(0, 2, body()),)) == (
        Cost(operations=1),
        SetBase(Y, Element("y", (Name("i"),))),
        SetBase(X, Element("x", (Number(0),))),
        ADD,
        SetBase(X, Element("x", (Number(1),))),
        ADD,
        SetBase(X, Element("x", (Number(2),))),
        ADD,
    )


def test_a_long_loop_has_addresses_that_stay_before_it() -> None:
    address, y, found = tightened((loop(0, 99, body()),))
    assert (address, y) == (Cost(operations=1), SetBase(Y, Element("y", (Name("i"),))))
    assert isinstance(found, For)
    assert found.start == Number(0) and found.condition == Operation("<=", (Name("k"), Number(99)))
    assert found.body == (Cost(iterations=1), *from_zero()[3:])


def test_a_loop_that_may_not_run_stays() -> None:
    condition = Operation("<=", (Name("k"), Name("n")))
    unknown = For(iterator="k", start=Number(0), condition=condition, step=Number(1), body=body())
    assert tightened((unknown, loop(1, 0, body()))) == (unknown, loop(1, 0, body()))


def test_an_address_that_is_set_twice_stays() -> None:
    twice = (*body(), SetBase(Y, Element("y", (Number(0),))), ADD)
    (found,) = tightened((loop(0, 99, twice),))
    y = (Cost(operations=1), SetBase(Y, Element("y", (Number(0),))))
    assert isinstance(found, For) and found.body in ((*from_zero(), y[1], ADD), (*from_zero(), *y, ADD))
