"""Floats of 4 and 8 bits, which tensor programs have not: the values of their codes.

Source: the specification of ONNX, "Float stored in 8 bits" and the like.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import frexp, inf, nan
from typing import Any

import numpy as np
import numpy.typing as npt

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class FloatFormat:
    """A float of a sign, ``exponent`` and ``mantissa`` bits. ``infinite``: with infinities as in IEEE 754.

    ``nan``: the codes of NaN where that is not so.
    """

    exponent: int
    mantissa: int
    bias: int
    infinite: bool = False
    nan: tuple[int, ...] = ()

    @property
    def has_negative_zero(self) -> bool:
        """Tell whether the code of a sign alone is a zero."""
        return 1 << (self.exponent + self.mantissa) not in self.nan

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number, and of those below it."""
        return 1 - self.bias

    @property
    def largest(self) -> float:
        """The largest finite value."""
        values = values_of(self)
        return float(values[np.isfinite(values)].max())

    @property
    def overflow(self) -> float:
        """What a number beyond the largest becomes where it does not saturate."""
        return inf if self.infinite else nan if self.nan else self.largest

    @property
    def highest(self) -> int:
        """The exponent of the largest finite value."""
        return frexp(self.largest)[1] - 1

    def step(self, exponent: int) -> float:
        """Return how far apart the values of an exponent are."""
        return float(2.0 ** (exponent - self.mantissa))


E4M3FN = FloatFormat(4, 3, 7, nan=(0x7F, 0xFF))
E4M3FNUZ = FloatFormat(4, 3, 8, nan=(0x80,))
E5M2 = FloatFormat(5, 2, 15, infinite=True)
E5M2FNUZ = FloatFormat(5, 2, 16, nan=(0x80,))
E2M1 = FloatFormat(2, 1, 1)


@cache
def values_of(form: FloatFormat) -> NDArray:
    """Return the value of each code, as float32."""
    count = 2 << (form.exponent + form.mantissa)
    return np.array([_value(code, form) for code in range(count)], np.float32)


def of_codes(form: FloatFormat | None, codes: NDArray) -> NDArray:
    """Return floats of 4 or 8 bits as float32; ``form``: None for E8M0, which has an exponent only."""
    found: NDArray = (_powers_of_two() if form is None else values_of(form))[codes]
    return found


@cache
def _powers_of_two() -> NDArray:
    """Return the value of each code of E8M0."""
    return np.array([*(2.0 ** (code - 127) for code in range(255)), np.nan], np.float32)


def _value(code: int, form: FloatFormat) -> float:
    if code in form.nan:
        return np.nan
    sign = -1.0 if code >> (form.exponent + form.mantissa) else 1.0
    exponent = code >> form.mantissa & ((1 << form.exponent) - 1)
    fraction = (code & ((1 << form.mantissa) - 1)) / (1 << form.mantissa)
    if form.infinite and exponent == (1 << form.exponent) - 1:
        return np.nan if fraction else sign * np.inf
    if exponent == 0:
        return float(sign * fraction * 2.0 ** (1 - form.bias))
    return float(sign * (1 + fraction) * 2.0 ** (exponent - form.bias))
