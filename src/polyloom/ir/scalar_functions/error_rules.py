"""How errors of its operands are carried through a scalar function, each rule with its reason.

A rule of one operand gets the function and the operand, whose error is given; one of two operands gets the
result and the operands, at least one of which has an error. Infinite: nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi

import numpy as np

from polyloom.ir.scalar_functions.approximate import (
    Approximate,
    Error,
    Floats,
    NDArray,
    is_zero,
    magnitude,
    numeric,
    plus,
    size,
    times,
    wide,
)

OfOne = Callable[[Callable[[NDArray], NDArray], Approximate, Floats], Error]
OfTwo = Callable[[NDArray, Approximate, Approximate], Error]


def kept(function: Callable[[NDArray], NDArray], a: Approximate, error: Floats) -> Error:
    """Carry an error on as it is: the function changes no distance."""
    return error


def unknown(function: Callable[[NDArray], NDArray], a: Approximate, error: Floats) -> Error:
    """Carry an error through a function that may jump: only an exact operand has an exact result."""
    return np.where(error == 0, 0.0, inf)


def steepest(slope: float) -> OfOne:
    """Carry an error through a function between -2 and 2 whose derivative is at most ``slope``."""
    return lambda function, a, error: np.minimum(error * slope, 2.0)


def monotone(function: Callable[[NDArray], NDArray], a: Approximate, error: Floats) -> Error:
    """Carry an error through a function that is monotone on it: by the values at the ends."""
    values = wide(a.value)
    middle = function(values)
    ends = np.abs(function(values + error) - middle), np.abs(function(values - error) - middle)
    return np.where(error == 0, 0.0, np.maximum(*ends))


def tangent(function: Callable[[NDArray], NDArray], a: Approximate, error: Floats) -> Error:
    """Carry an error through a tangent: unknown where a pole may lie inside."""
    room = np.abs(np.cos(wide(a.value))) - error
    return times(error, np.where(room > 0, 1 / room**2, inf))


def exact_or_unknown(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a function that may jump: exact operands only have an exact result."""
    return np.where(is_zero(a.error) & is_zero(b.error), 0.0, inf)


def added(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Add the errors: of sums, differences and hypotenuses."""
    return plus(a.error, b.error)


def multiplied(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a product."""
    return plus(times(b.error, size(a.value)), times(a.error, magnitude(b)))


def divided(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a quotient: unknown where the divisor may be 0."""
    if b.error is None:
        return times(a.error, 1 / size(b.value))
    room = size(b.value) - b.error
    carried = numeric(a.error) + b.error * np.abs(wide(a.value) / wide(b.value))
    exact = is_zero(a.error) & (b.error == 0)
    return np.where(exact, 0.0, np.where(room > 0, carried / room, inf))


def power(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a power: by its corners, and unknown where the base may change its sign."""
    base, exponent = wide(a.value), wide(b.value)
    one, other = numeric(a.error), numeric(b.error)
    middle = np.power(base, exponent)
    corners = [np.power(base + s * one, exponent + t * other) for s in (-1, 1) for t in (-1, 1)]
    error = np.max([np.abs(corner - middle) for corner in corners], axis=0)
    crosses = (one > 0) & (np.abs(base) <= one) & ((exponent < 0) | (other > 0))
    return np.where((one == 0) & (other == 0), 0.0, np.where(crosses, inf, error))


def extreme(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through a maximum or minimum: the larger one."""
    return np.maximum(numeric(a.error), numeric(b.error))


def angle(value: NDArray, a: Approximate, b: Approximate) -> Error:
    """Carry errors through atan2: unknown near the origin and across the half turn."""
    y, x = wide(a.value), wide(b.value)
    one, other = numeric(a.error), numeric(b.error)
    moved = np.hypot(one, other)
    turns = (moved >= np.hypot(y, x)) | ((x < other) & (np.abs(y) <= one))
    exact = (one == 0) & (other == 0)
    return np.where(exact, 0.0, np.where(turns, inf, pi / 2 * moved / np.hypot(y, x)))


def doubtful(decides: bool) -> OfTwo:
    """Combine truth values, one of which decides alone if it is ``decides``: an error of 1 where in doubt."""

    def rule(value: NDArray, a: Approximate, b: Approximate) -> Error:
        decided_by = [(x.value == decides) & is_zero(x.error) for x in (a, b)]
        uncertain = ~(is_zero(a.error) & is_zero(b.error)) & ~(decided_by[0] | decided_by[1])
        return np.asarray(uncertain, np.float64)

    return rule
