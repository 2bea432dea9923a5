"""Integer expressions of host programs as Python functions: what a host loop evaluates for every launch.

``ir.integers`` gives the same values through NumPy; this is for speed. Names are looked up in one dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from polyloom.ir.evaluation.python_text import INTEGER_FUNCTIONS, integer_text
from polyloom.polyhedra.loops.tree import IntExpression, Number

Environment = Mapping[str, int]
IntFunction = Callable[[Environment], int]


@lru_cache(maxsize=4096)
def int_function(expression: IntExpression) -> IntFunction:
    """Return a function from the values of all names to the value of an expression; truth is 1 or 0."""
    if isinstance(expression, Number):
        value = expression.value
        return lambda _: value
    text = integer_text(expression, lambda name: f"names[{name!r}]")
    function: IntFunction = eval(f"lambda names: {text}", dict(INTEGER_FUNCTIONS))
    return function
