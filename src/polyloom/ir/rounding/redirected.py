"""How sensitive results are to rounding: the same program rounds up, down and towards zero.

Where a program amplifies errors (a factorisation without pivots), so do these runs, element by element;
what is computed exactly is the same in all of them. Three runs may agree by chance, those of neighbours
hardly.

Source: W. Kahan, How Futile are Mindless Assessments of Roundoff in Floating-Point Computation?, 2006,
rounding redirected at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.scalar_functions.approximate import Floats

NDArray = npt.NDArray[Any]

FACTOR = 64.0
"""How much further than by redirected rounding another correct run may be off, with its other order of sums.

Of about 10 million elements of LU (n of 150 and 600, integers and reals of mixed scale) one summed in eight
parts with fused operations was off by 20 at most.
"""


def spread(nearest: Mapping[str, NDArray], others: Iterable[Mapping[str, NDArray]]) -> dict[str, Floats]:
    """Return for each element ``FACTOR`` times how far it, or a neighbour, moves when rounding is redirected.

    Infinite where it does not stay finite, or becomes finite; zero for integers that stay.
    """
    moved: dict[str, Floats] = {name: np.zeros(array.shape) for name, array in nearest.items()}
    for other in others:
        for name, array in nearest.items():
            np.maximum(moved[name], _apart(array, other[name]), out=moved[name])
    return {name: FACTOR * _with_neighbours(array) for name, array in moved.items()}


def _apart(one: NDArray, other: NDArray) -> Floats:
    with np.errstate(all="ignore"):
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _with_neighbours(moved: Floats) -> Floats:
    """Return the largest finite value of elements and those next to them; what is infinite stays."""
    found = np.where(np.isfinite(moved), moved, 0.0)
    for axis in range(moved.ndim):
        line = np.moveaxis(found, axis, 0)
        wider = line.copy()
        np.maximum(wider[1:], line[:-1], out=wider[1:])
        np.maximum(wider[:-1], line[1:], out=wider[:-1])
        found = np.moveaxis(wider, 0, axis)
    return np.where(np.isfinite(moved), found, np.inf)
