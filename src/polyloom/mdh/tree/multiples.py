"""What divides integers of a tree: where an element of an array may begin a vector."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, prod

from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation


def multiple(expression: IntExpression, known: Mapping[str, int]) -> int:
    """Return a number that always divides an integer; 0 where that is always 0. ``known``: of names."""
    match expression:
        case Number(value=value):
            return abs(value)
        case Name(name=name):
            return known.get(name, 1)
        case Operation(operator="*", operands=operands):
            return prod(multiple(operand, known) for operand in operands)
        case Operation(operator="+" | "-" | "min" | "max" | "%", operands=operands):
            return gcd(*(multiple(operand, known) for operand in operands))
        case Operation(operator="?", operands=(_, then, otherwise)):
            return gcd(multiple(then, known), multiple(otherwise, known))
        case _:
            return 1
