"""The result of a scalar function of constants, as far as it is known exactly; None where it is not.

What is known of a statement where a read gives zero decides whether a sparse stream may leave zeros out. Data
are finite, so zero times anything is zero.
"""

from __future__ import annotations

from collections.abc import Callable

Number = float | int
OfOne = Callable[[Number], Number | None]
OfTwo = Callable[[Number | None, Number | None], Number | None]

EXACT = 2048
"""Integers up to this are exact in float16."""


def exact_small(value: Number | None) -> Number | None:
    """Return a value if it is an integer that every type has."""
    return value if value is not None and value == int(value) and abs(value) <= EXACT else None


def at_zero(result: int) -> OfOne:
    """Return the rule of a function that is known at zero alone."""
    return lambda value: result if value == 0 else None


def never(*values: Number | None) -> None:
    """Return None: nothing is known, whatever the operands."""


def negated(value: Number) -> Number | None:
    """Return ``-value``."""
    return -value if value != 0 else 0


def product(left: Number | None, right: Number | None) -> Number | None:
    """Return the product, which one zero decides."""
    if left == 0 or right == 0:
        return 0
    return None if left is None or right is None else exact_small(left * right)


def quotient(left: Number | None, right: Number | None) -> Number | None:
    """Return 0 where zero is divided by another number."""
    return 0 if left == 0 and right is not None and right != 0 else None


def of_both(function: Callable[[Number, Number], Number | None]) -> OfTwo:
    """Return the rule of a function that is known where both operands are."""
    return lambda left, right: None if left is None or right is None else function(left, right)
