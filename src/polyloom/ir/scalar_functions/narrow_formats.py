"""Formats of arrays that tensor programs have not: bfloat16, float8, float4, integers of 2 and 4 bits.

A program holds their values in a wider type. What a caller gives in such a wider type is rounded to nearest
even, and what lies beyond the largest becomes that; results are of the type of the package ``ml_dtypes``.
Source: the specification of ONNX, Cast and QuantizeLinear, which saturate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.scalar_functions.evaluation import to_bfloat16
from polyloom.ir.scalar_functions.small_floats import (
    E2M1,
    E4M3FN,
    E4M3FNUZ,
    E5M2,
    E5M2FNUZ,
    FloatFormat,
    of_codes,
)
from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]

BFLOAT16, E8M0 = "bfloat16", "float8_e8m0fnu"


@dataclass(frozen=True)
class NarrowFormat:
    """``held``: the type in which programs hold its values; ``limits``: the least and largest integer."""

    held: ElementType
    values: FloatFormat | None = None
    limits: tuple[int, int] | None = None


FORMATS: Mapping[str, NarrowFormat] = {
    BFLOAT16: NarrowFormat(ElementType.FLOAT32),
    E8M0: NarrowFormat(ElementType.FLOAT32),
    "float8_e4m3fn": NarrowFormat(ElementType.FLOAT32, E4M3FN),
    "float8_e4m3fnuz": NarrowFormat(ElementType.FLOAT32, E4M3FNUZ),
    "float8_e5m2": NarrowFormat(ElementType.FLOAT32, E5M2),
    "float8_e5m2fnuz": NarrowFormat(ElementType.FLOAT32, E5M2FNUZ),
    "float4_e2m1fn": NarrowFormat(ElementType.FLOAT32, E2M1),
    "int4": NarrowFormat(ElementType.INT8, limits=(-8, 7)),
    "uint4": NarrowFormat(ElementType.UINT8, limits=(0, 15)),
    "int2": NarrowFormat(ElementType.INT8, limits=(-2, 1)),
    "uint2": NarrowFormat(ElementType.UINT8, limits=(0, 3)),
}
"""By their names in ``ml_dtypes`` and PyTorch."""


def as_held(array: NDArray, name: str) -> NDArray:
    """Return an array of a format, or of a wider type, as programs hold it."""
    form = FORMATS[name]
    if array.dtype.name == name:
        return array.astype(form.held.dtype)
    if form.limits is not None:
        whole = np.rint(array) if array.dtype.kind == "f" else array
        return np.clip(whole, *form.limits).astype(form.held.dtype)
    if name == BFLOAT16:
        return to_bfloat16(array.astype(np.float32))
    with np.errstate(invalid="ignore"):  # a NaN that signals
        return _rounded(array.astype(np.float64), form.values).astype(np.float32)


def _rounded(x: NDArray, form: FloatFormat | None) -> NDArray:
    fraction, exponent = np.frexp(x)
    if form is None:  # powers of two only
        power = np.where(x > 0, exponent - (fraction < 0.75), -127)
        return np.where(np.isnan(x), x, np.ldexp(1.0, np.clip(power, -127, 127)))
    step = np.ldexp(1.0, np.maximum(exponent - 1, form.lowest) - form.mantissa)
    found = np.clip(np.rint(x / step) * step, -form.largest, form.largest)
    found = found if form.has_negative_zero else found + 0.0
    return np.where(np.isinf(x), x, found) if form.infinite else found


def as_narrow(array: NDArray, name: str) -> NDArray:
    """Return values of a format as an array of it, where ``ml_dtypes`` is there; else as they are held."""
    kind = dtype_of(name)
    return array if kind is None else array.astype(kind)


def dtype_of(name: str) -> np.dtype[Any] | None:
    """Return a format as a type of NumPy; None without the package ``ml_dtypes``."""
    try:
        found: np.dtype[Any] = np.dtype(getattr(import_module("ml_dtypes"), name))
        return found
    except ImportError:
        return None


def codes_of(array: NDArray, name: str) -> NDArray:
    """Return the bits of values of a format of 8 or 16 bits, which are given as float32."""
    if name == BFLOAT16:
        return (array.view(np.uint32) >> 16).astype(np.uint16)
    return _codes(name)[1][np.searchsorted(_codes(name)[0], _order(array))]


@cache
def _codes(name: str) -> tuple[NDArray, NDArray]:
    """Return the order of all values of a format, and their codes."""
    order = _order(of_codes(FORMATS[name].values, np.arange(256)))
    sorting = np.argsort(order, kind="stable")
    return order[sorting], sorting.astype(np.uint8)


def _order(array: NDArray) -> NDArray:
    """Return integers in the order of floats, with -0 below 0 and one for all NaN."""
    bits = np.where(np.isnan(array), np.float32(np.nan), array).astype(np.float32).view(np.int32)
    return np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
