"""Integer expressions and scalar functions as Python text on NumPy scalars: for programs compiled once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from polyloom.ir.evaluation import arithmetic
from polyloom.ir.expressions import (
    Assign,
    Binary,
    BinaryOp,
    Compare,
    Constant,
    Convert,
    Expression,
    Iterator,
    Local,
    ParameterValue,
    Procedure,
    Read,
    Select,
    Step,
    Unary,
    UnaryOp,
    When,
    While,
    locals_of,
)
from polyloom.ir.scalar_functions.function import BinaryFunction, UnaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def integer_text(expression: IntExpression, variable: Callable[[str], str]) -> str:
    """Return an integer expression; ``variable`` gives the text of a name. It calls ``INTEGER_FUNCTIONS``."""

    def text(part: IntExpression) -> str:
        return integer_text(part, variable)

    match expression:
        case Number(value=value):
            return f"({value})"
        case Name(name=name):
            return variable(name)
        case Operation(operator="-" | "not" as sign, operands=(a,)):
            return f"({sign} {text(a)})"
        case Operation(operator="?", operands=(condition, then, otherwise)):
            return f"({text(then)} if {text(condition)} else {text(otherwise)})"
        case Operation(operator=operator, operands=operands):
            if operator in _CALLS:
                return reduce(lambda a, b: f"{_CALLS[operator]}({a}, {b})", map(text, operands))
            return reduce(lambda a, b: f"({a} {_SIGNS.get(operator, operator)} {b})", map(text, operands))


_CALLS = {"min": "min", "max": "max", "/": "quotient", "%": "remainder"}
_SIGNS = {"floor": "//"}


def _quotient(a: int, b: int) -> int:
    """Divide towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)


INTEGER_FUNCTIONS = {"quotient": _quotient, "remainder": _remainder}
"""What the text of integer expressions calls."""


@dataclass(frozen=True)
class Leaves:
    """Texts of what a scalar function is over: its reads, iterators and parameters."""

    read: Callable[[int], str]
    iterator: Callable[[int], str]
    parameter: Callable[[str], str]


@dataclass(eq=False)
class Known:
    """Functions and values that a text speaks of; ``names`` is what it is to be executed with."""

    names: dict[str, Any] = field(default_factory=lambda: dict(INTEGER_FUNCTIONS))

    def object(self, value: Any) -> str:
        """Return the name under which the text calls a function, or speaks of a value."""
        name = f"f{len(self.names)}"
        self.names[name] = value
        return name

    def value(self, expression: Expression, leaves: Leaves) -> str:
        """Return a scalar function; a choice evaluates one side only."""

        def text(part: Expression) -> str:
            return self.value(part, leaves)

        match expression:
            case Read(position=k):
                return leaves.read(k)
            case Constant(value=x, type=kind):
                return self.object(arithmetic.constant(x, kind)[()])
            case ParameterValue(name=name, type=kind):
                return f"{self._conversion(kind)}({leaves.parameter(name)})"
            case Iterator(dimension=k, type=kind):
                return f"{self._conversion(kind)}({leaves.iterator(k)})"
            case Convert(type=kind, operand=a):
                return f"{self._conversion(kind)}({text(a)})"
            case Select(condition=c, then=a, otherwise=b):
                return f"({text(a)} if {text(c)} else {text(b)})"
            case Compare(op=compare, left=a, right=b):
                return f"({text(a)} {compare.value} {text(b)})"
            case Unary(op=UnaryOp.NOT, operand=a):
                return f"(not {text(a)})"
            case Unary(op=op, operand=a):
                return f"{self._unary(op, a.type)}({text(a)})"
            case Binary(op=binary, left=a, right=b) if binary in _DIRECT:
                return f"({text(a)} {binary.name} {text(b)})"
            case Binary(op=binary, left=a, right=b):
                return f"{self._binary(binary, a.type)}({text(a)}, {text(b)})"

            case Local(name=name):
                return f"here[{name!r}]"
            case Procedure(body=body, result=result):
                first = self.object(
                    {name: arithmetic.constant(0, local.type)[()] for name, local in locals_of(body).items()}
                )
                steps = f"lambda here: {self._steps(body, leaves)}"
                return f"{self.object(_carried_out)}({first}, {steps}, {result.name!r})"

    def _steps(self, steps: Sequence[Step], leaves: Leaves) -> str:
        """Return steps as an expression that carries them out: on the dictionary ``here``."""
        return f"({''.join(f'{self._step(step, leaves)}, ' for step in steps)})"

    def _step(self, step: Step, leaves: Leaves) -> str:
        match step:
            case Assign(local=local, value=value):
                return f"here.__setitem__({local.name!r}, {self.value(value, leaves)})"
            case When(condition=condition, body=body, otherwise=otherwise):
                sides = (self._steps(block, leaves) for block in (body, otherwise))
                return "({1} if {0} else {2})".format(self.value(condition, leaves), *sides)
            case While(condition=condition, body=body):
                asked, inside = self.value(condition, leaves), self._steps(body, leaves)
                return f"{self.object(_repeated)}(lambda: {asked}, lambda: {inside})"

    def _conversion(self, kind: ElementType) -> str:
        return self.object(lambda a: arithmetic.convert(np.asarray(a), kind)[()])

    def _unary(self, op: UnaryFunction, kind: ElementType) -> str:
        return self.object(lambda a: arithmetic.unary(op, np.asarray(a), kind)[()])

    def _binary(self, op: BinaryFunction, kind: ElementType) -> str:
        def both(a: Any, b: Any) -> Any:
            return arithmetic.binary(op, np.asarray(a), np.asarray(b), kind)[()]

        return self.object(both)


def _carried_out(first: dict[str, Any], steps: Callable[[dict[str, Any]], object], result: str) -> Any:
    here = dict(first)
    steps(here)
    return here[result]


def _repeated(asked: Callable[[], bool], steps: Callable[[], object]) -> None:
    while asked():
        steps()


_DIRECT = frozenset({BinaryOp.ADD, BinaryOp.SUBTRACT, BinaryOp.MULTIPLY, BinaryOp.AND, BinaryOp.OR})
