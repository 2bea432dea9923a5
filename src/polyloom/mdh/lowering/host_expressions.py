"""Integer expressions of host programs as Python functions: what a host loop evaluates for every launch.

``ir.integers`` gives the same values through NumPy; this is for speed. Names are looked up in one dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce

from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

Environment = Mapping[str, int]
IntFunction = Callable[[Environment], int]


@lru_cache(maxsize=4096)
def int_function(expression: IntExpression) -> IntFunction:
    """Return a function from the values of all names to the value of an expression; truth is 1 or 0."""
    if isinstance(expression, Number):
        value = expression.value
        return lambda _: value
    namespace = {"quotient": _quotient, "remainder": _remainder}
    function: IntFunction = eval(f"lambda names: {python_text(expression)}", namespace)
    return function


def python_text(expression: IntExpression) -> str:
    """Return an expression in Python, over ``names``; every operation in parentheses."""
    match expression:
        case Number(value=value):
            return f"({value})"
        case Name(name=name):
            return f"names[{name!r}]"
        case Operation(operator="-", operands=(a,)):
            return f"(-{python_text(a)})"
        case Operation(operator="not", operands=(a,)):
            return f"(not {python_text(a)})"
        case Operation(operator="?", operands=(condition, then, otherwise)):
            return f"({python_text(then)} if {python_text(condition)} else {python_text(otherwise)})"
        case Operation(operator=operator, operands=operands):
            texts = [python_text(o) for o in operands]
            if operator in _CALLS:
                return reduce(lambda a, b: f"{_CALLS[operator]}({a}, {b})", texts)
            return reduce(lambda a, b: f"({a} {_SIGNS.get(operator, operator)} {b})", texts)


_CALLS = {"min": "min", "max": "max", "/": "quotient", "%": "remainder"}
_SIGNS = {"floor": "//"}


def _quotient(a: int, b: int) -> int:
    """Divide towards zero, as C does."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _remainder(a: int, b: int) -> int:
    return a - b * _quotient(a, b)
