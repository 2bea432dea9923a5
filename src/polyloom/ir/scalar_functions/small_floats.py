"""Floats of 4 and 8 bits, which tensor programs have not: the values of their codes.

Source: the specification of ONNX, "Float stored in 8 bits" and the like.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
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


@cache
def powers_of_two() -> NDArray:
    """Return the value of each code of E8M0, which has an exponent only."""
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
