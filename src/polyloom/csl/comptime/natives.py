"""Functions of the C library that our libraries call, computed at compile time."""

from __future__ import annotations

import math
from collections.abc import Callable

from polyloom.csl import types, values
from polyloom.csl.types import Type
from polyloom.csl.values import Value

_FUNCTIONS: dict[str, Callable[..., float]] = {
    "__builtin_acosf": math.acos,
    "__builtin_asinf": math.asin,
    "__builtin_atanf": math.atan,
    "__builtin_ceilf": lambda x: float(math.ceil(x)),
    "__builtin_cosf": math.cos,
    "__builtin_coshf": math.cosh,
    "__builtin_expf": math.exp,
    "__builtin_floorf": lambda x: float(math.floor(x)),
    "__builtin_log10f": math.log10,
    "__builtin_log2f": math.log2,
    "__builtin_logf": math.log,
    "__builtin_powf": math.pow,
    "__builtin_roundf": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
    "__builtin_sinf": math.sin,
    "__builtin_sinhf": math.sinh,
    "__builtin_sqrtf": math.sqrt,
    "__builtin_tanf": math.tan,
    "__builtin_tanhf": math.tanh,
    "__builtin_truncf": lambda x: float(math.trunc(x)),
}


def computed(name: str, result: Type, given: list[Value]) -> Value | None:
    """Return what a function gives, rounded once; ``None`` if it acts, or where C gives no finite number."""
    function = _FUNCTIONS.get(name)
    if function is None or not isinstance(result, types.Float):
        return None
    numbers = [float(v.value) for v in given if isinstance(v, values.Scalar)]
    try:
        found = function(*numbers)
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    return values.Scalar(result, values.rounded(found, result)) if math.isfinite(found) else None
