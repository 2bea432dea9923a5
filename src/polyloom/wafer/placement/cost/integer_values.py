"""The value of an integer expression of emitted code, at given values of its names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from polyloom.polyhedra.loops.generate import IntExpression, Name, Number, Operation

Environment = Mapping[str, int]


def value_of(expression: IntExpression, environment: Environment) -> int:
    """Return the value with C's arithmetic; truth values are 0 and 1. Unknown names count as 0."""
    match expression:
        case Number(value=value):
            return value
        case Name(name=name):
            return environment.get(name, 0)
        case Operation(operator="?", operands=(condition, then, otherwise)):
            chosen = then if value_of(condition, environment) else otherwise
            return value_of(chosen, environment)
        case Operation(operator="-", operands=(operand,)):
            return -value_of(operand, environment)
        case Operation(operator=name, operands=operands):
            values = [value_of(operand, environment) for operand in operands]
            result = values[0]
            for value in values[1:]:
                result = int(_OPERATORS[name](result, value))
            return result


def trips(condition: IntExpression, iterator: str, start: int, step: int, environment: Environment) -> int:
    """Return how often ``for (i = start; condition; i += step)`` runs; the condition is an upper bound."""
    last = _largest(condition, iterator, environment)
    return max(0, (last - start) // max(1, step) + 1)


def _largest(condition: IntExpression, iterator: str, environment: Environment) -> int:
    match condition:
        case Operation(operator="and", operands=operands):
            return min(_largest(operand, iterator, environment) for operand in operands)
        case Operation(operator="<=" | "<" as sign, operands=(left, right)):
            return _solved(left, right, sign == "<", iterator, environment)
        case Operation(operator=">=" | ">" as sign, operands=(left, right)):
            return _solved(right, left, sign == ">", iterator, environment)
        case _:
            return 0


def _solved(
    left: IntExpression, right: IntExpression, strict: bool, iterator: str, environment: Environment
) -> int:
    """Return the largest ``i`` with ``left <= right``, both linear in it."""
    ends = [{**environment, iterator: at} for at in (0, 1)]
    at_zero, at_one = (value_of(right, e) - value_of(left, e) - int(strict) for e in ends)
    slope = at_zero - at_one
    return at_zero // slope if slope > 0 else 0


def _floor(a: int, b: int) -> int:
    return a // b if b else 0


def _quotient(a: int, b: int) -> int:
    return int(a / b) if b else 0


_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "floor": _floor,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "min": min,
    "max": max,
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
    "==": operator.eq,
}
"""By the operators of ``polyhedra.loops_tree``."""
