"""What the functions of the table do to NumPy arrays where NumPy itself has no such function.

Functions of analysis are computed in float64 and rounded once. Integers wrap; division goes towards zero, by
zero gives 0, and so does the remainder; pow wraps, a negative exponent truncates. A shift counts modulo the
number of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]
OfOne = Callable[[NDArray], NDArray]
OfTwo = Callable[[NDArray, NDArray], NDArray]


def same(a: NDArray) -> NDArray:
    """Return the array."""
    return a


def in_float64(function: OfOne) -> OfOne:
    """Return a function that is computed in float64 and rounded once."""
    return lambda a: function(a.astype(np.float64)).astype(a.dtype)


def both_in_float64(function: OfTwo) -> OfTwo:
    """Return a function of two arrays that is computed in float64 and rounded once."""
    return lambda a, b: function(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)


def erf(a: NDArray) -> NDArray:
    """Return the error function of a float64 array."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(a), dtype=np.float64)


def to_bfloat16(a: NDArray) -> NDArray:
    """Return floats rounded to bfloat16, to nearest even, as their own type; doubles by way of float32."""
    with np.errstate(over="ignore"):
        bits = np.ascontiguousarray(a, np.float32).view(np.uint32).reshape(a.shape)
    even = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)).view(np.float32)
    with np.errstate(over="ignore"):
        found: NDArray = np.where(np.isnan(a), a, rounded.astype(a.dtype))
    return found


def from_bfloat16(bits: NDArray) -> NDArray:
    """Return elements of bfloat16, given as uint16, as float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def erfc(a: NDArray) -> NDArray:
    """Return one less the error function of a float64 array, without cancellation."""
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(a), dtype=np.float64)


def divide_integers(a: NDArray, b: NDArray) -> NDArray:
    """Divide towards zero; by zero gives 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    floor = a // divisor
    inexact = floor * divisor != a
    quotient = floor + (inexact & ((a < 0) != (divisor < 0))).astype(a.dtype)
    result: NDArray = np.where(b == 0, np.zeros_like(quotient), quotient)
    return result


def remainder_of_integers(a: NDArray, b: NDArray) -> NDArray:
    """Return C's ``%``: the sign is that of ``a``; by zero it gives 0."""
    divisor = np.where(b == 0, np.ones_like(b), b)
    return np.where(b == 0, np.zeros_like(a), np.fmod(a, divisor)).astype(a.dtype)


def shift(function: np.ufunc) -> OfTwo:
    """Return a shift that counts modulo the number of bits, as OpenCL does (C leaves it undefined)."""
    return lambda a, b: function(a, b & b.dtype.type(8 * a.dtype.itemsize - 1))


def power_integers(a: NDArray, b: NDArray) -> NDArray:
    """Multiply repeatedly with wrapping; a negative exponent gives 1 / a**-b, towards zero."""
    wide = np.uint64 if a.dtype.kind == "u" else np.int64
    power = np.power(a.astype(wide), np.maximum(b, 0).astype(wide)).astype(a.dtype)
    odd_sign = np.where(b % 2 == 0, np.ones_like(a), a)
    inverse = np.where(np.abs(a) == 1, odd_sign, np.zeros_like(a))
    result: NDArray = np.where(b < 0, inverse, power).astype(a.dtype)
    return result


def power(a: NDArray, b: NDArray) -> NDArray:
    """Return C's ``pow``; for one exponent of 0.5 NumPy alone takes the root, even of -0."""
    bases, exponents = (np.array(x, ndmin=1) for x in np.broadcast_arrays(a, b))
    found: NDArray = np.power(bases, exponents).reshape(np.broadcast_shapes(a.shape, b.shape))
    return found
