"""Bounds on the size of a scalar function's result, from those of its operands; divisors count as 1 or more.

They keep made-up data so small that sums of them are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

OfOne = Callable[[float], float]
OfTwo = Callable[[float, float], float]


def same(size: float) -> float:
    """Return the operand's bound: the function makes nothing larger."""
    return size


def at_most_one(size: float) -> float:
    """Return 1, the largest size of a sine or of a truth value."""
    return 1.0


def exponential(size: float) -> float:
    """Return ``e**size``; infinite where it is beyond all use."""
    return power(math.e, size)


def total(a: float, b: float) -> float:
    """Return the sum."""
    return a + b


def product(a: float, b: float) -> float:
    """Return the product."""
    return a * b


def first(a: float, b: float) -> float:
    """Return the first operand's bound."""
    return a


def larger(a: float, b: float) -> float:
    """Return the larger bound."""
    return max(a, b)


def power(base: float, exponent: float) -> float:
    """Return a bound on ``base**exponent``; infinite where it is beyond all use."""
    return math.inf if exponent * math.log(max(base, 1.0)) > 100 else max(base, 1.0) ** exponent


def shifted(a: float, count: float) -> float:
    """Return ``a * 2**count``."""
    return a * power(2.0, count)
