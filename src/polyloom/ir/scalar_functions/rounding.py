"""How exactly a scalar function of floats is computed.

Source: The OpenCL C Specification 3.0, Sec. 7.4 (relative error as ULPs), full profile. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.types import ElementType

Mask = npt.NDArray[np.bool_]
TrueZeros = Callable[[Mask, Sequence[Mask]], Any]
"""From where a result is zero, and where each operand is exactly zero: where no underflow made the result."""


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """What rounding does to a function's result.

    ``units``: by how many units in the last place a device's result and another one may differ;
    ``units_of_double``: the same for doubles. ``standard``: whether IEEE 754 says which float results.
    ``keeps_integers``: whether integers, small enough, give integers. ``true_zeros``: which zeros are no
    underflow; None where that is not known.
    """

    units: float
    units_of_double: float
    standard: bool
    keeps_integers: bool
    true_zeros: TrueZeros | None

    @property
    def exact(self) -> bool:
        """Whether every result is a float: nothing is rounded."""
        return self.units == 0

    def ulps(self, kind: ElementType) -> float:
        """Return by how many units in the last place two results may differ."""
        return self.units_of_double if kind is ElementType.FLOAT64 else self.units


EXACT = Rounding(units=0.0, units_of_double=0.0, standard=True, keeps_integers=True, true_zeros=None)
SUM = Rounding(
    units=1.0, units_of_double=1.0, standard=True, keeps_integers=True, true_zeros=lambda zero, known: zero
)
PRODUCT = Rounding(
    units=1.0,
    units_of_double=1.0,
    standard=True,
    keeps_integers=True,
    true_zeros=lambda zero, known: known[0] | known[1],
)
QUOTIENT = Rounding(
    units=3.0,
    units_of_double=2.0,
    standard=True,
    keeps_integers=False,
    true_zeros=lambda zero, known: known[0],
)
"""Of doubles: rounded to nearest, or a product with the reciprocal, which may be off by a unit."""
ROOT = Rounding(
    units=3.5,
    units_of_double=1.0,
    standard=True,
    keeps_integers=False,
    true_zeros=lambda zero, known: known[0],
)


def library(ulps: float) -> Rounding:
    """Return the rounding of a function that OpenCL's library may compute with that largest error."""
    return Rounding(
        units=ulps + 0.5, units_of_double=ulps + 0.5, standard=False, keeps_integers=False, true_zeros=None
    )
