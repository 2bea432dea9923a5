"""Values that are known up to an error, and arithmetic on such errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
NDArray = npt.NDArray[Any]
Error = Floats | None
"""How far another correct evaluation may be; None: every correct evaluation gives these bits."""


class Approximate(NamedTuple):
    """Values in their own type, and how far another correct evaluation may be from them."""

    value: NDArray
    error: Error


def wide(values: NDArray) -> Floats:
    """Return values as float64."""
    return np.asarray(values).astype(np.float64)


def size(values: NDArray) -> Floats:
    """Return absolute values as float64."""
    return np.abs(wide(values))


def plus(*errors: Error) -> Error:
    """Return the sum of errors."""
    there = [e for e in errors if e is not None]
    return sum(there[1:], start=there[0]) if there else None


def times(error: Error, factor: Floats | float) -> Error:
    """Return an error that is carried on by a factor; no error stays none, whatever the factor."""
    return None if error is None else np.where(error == 0, 0.0, error * factor)


def magnitude(a: Approximate) -> Floats:
    """Return the largest size that a correct evaluation may have."""
    return size(a.value) if a.error is None else size(a.value) + a.error


def is_zero(error: Error) -> npt.NDArray[np.bool_]:
    """Return where nothing can differ."""
    return np.ones((), np.bool_) if error is None else np.asarray(error == 0)


def numeric(error: Error) -> Floats:
    """Return an error as numbers, 0 for none."""
    return np.zeros((), np.float64) if error is None else error
