"""Loops around instructions: unrolled, or with addresses before them."""

from __future__ import annotations

import pytest

from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation
from polyloom.wafer.codegen.instruction_loops import partly_unrolled, tightened
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


def value(expression: IntExpression, names: dict[str, int]) -> int:
    match expression:
        case Number(value=number):
            return number
        case Name(name=name):
            return names[name]
        case Operation(operator="+", operands=(a, b)):
            return value(a, names) + value(b, names)
        case Operation(operator="-", operands=(a, b)):
            return value(a, names) - value(b, names)
        case Operation(operator="*", operands=(a, b)):
            return value(a, names) * value(b, names)
        case Operation(operator="<=", operands=(a, b)):
            return value(a, names) <= value(b, names)
    raise AssertionError(expression)


class Walked:
    """What code does: the bases at each instruction, and the iterations of loops that it counts."""

    def __init__(self, code: Code) -> None:
        self.names = {"PE_X": 3, "i": 5}
        self.bases: dict[str, int] = {}
        self.instructions: list[dict[str, int]] = []
        self.iterations = self.operations = 0
        self.run(code)

    def run(self, code: Code) -> None:
        for node in code:
            match node:
                case Cost():
                    self.iterations += node.iterations
                    self.operations += node.operations
                case SetBase(operand=operand, element=element):
                    self.bases[operand.name] = value(element.subscripts[0], self.names)
                case Invoke():
                    self.instructions.append(dict(self.bases))
                case For():
                    self.names[node.iterator] = value(node.start, self.names)
                    while value(node.condition, self.names):
                        self.run(node.body)
                        self.names[node.iterator] += value(node.step, self.names)


@pytest.mark.parametrize("last", [30, 41, 63, 99, 100, 166])
def test_a_long_loop_unrolled_in_part_does_the_same(last: int) -> None:
    code = tightened((loop(0, last, body()),))
    plain, found = Walked(code), Walked(partly_unrolled(code))
    assert len(found.instructions) == last + 1
    assert found.instructions == plain.instructions
    assert found.iterations <= plain.iterations / 10 and found.operations <= plain.operations
    assert sum(isinstance(n, Invoke) for node in partly_unrolled(code) for n in _inside(node)) <= 24


def _inside(node: object) -> Code:
    return node.body if isinstance(node, For) else (node,)  # type: ignore[return-value]


def test_the_addresses_of_a_long_loop_cost_as_much_as_before() -> None:
    code = tightened((loop(0, 95, body()),))
    assert Walked(partly_unrolled(code)).operations == Walked(code).operations
