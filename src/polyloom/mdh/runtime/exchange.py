"""Arrays of other libraries as NumPy's, and results as theirs, in the same memory where that is possible."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.scalar_functions.narrow_formats import FORMATS, codes_of
from polyloom.mdh.runtime.arrays import DeviceArray

NDArray = npt.NDArray[Any]

_REFUSALS = (BufferError, RuntimeError, TypeError, ValueError, NotImplementedError)


def is_foreign(value: Any) -> bool:
    """Return whether this is an array of another library: neither NumPy's, nor ours, nor a number or list."""
    if isinstance(value, np.ndarray | np.generic | DeviceArray | int | float | list | tuple):
        return False
    return any(hasattr(value, name) for name in ("__dlpack__", "__array_interface__", "__array__"))


def as_numpy(value: Any, name: str = "") -> Any:
    """Return an array of another library as one of NumPy, in the same memory where that is possible.

    By ``__array_interface__``, DLPack or ``__array__``; a tensor that needs a gradient is taken without it,
    one of PyTorch's bfloat16 and float8 as float32.
    Other values come back as they are. ``name``: of the argument, in messages.

    Errors: ``input-exchange`` for what lies in the memory of another device, or has no type of NumPy.
    """
    if not is_foreign(value):
        return value
    if getattr(value, "requires_grad", False) is True:
        value = value.detach()
    if str(getattr(value, "dtype", "")).startswith(("torch.bfloat16", "torch.float8")):
        value = value.float()
    if hasattr(value, "__array_interface__"):
        return np.asarray(value)
    reasons = []
    for way in (_by_dlpack, np.asarray):
        try:
            found = way(value)
        except _REFUSALS as fault:
            reasons.append((str(fault).strip().splitlines() or [type(fault).__name__])[0])
            continue
        if found is not None and found.dtype != object:
            return found
    what = f"`{name}`" if name else f"an array of type `{type(value).__name__}`"
    helps = ["bring it into the processor's memory as a type of NumPy: `tensor.cpu()`, `tensor.float()`"]
    raise PolyloomError(
        error("input-exchange", f"{what} cannot be read as an array", notes=reasons, helps=helps)
    )


def _by_dlpack(value: Any) -> NDArray | None:
    """Return an array by DLPack; None where that cannot be written to, although the library's own can."""
    if not hasattr(value, "__dlpack__"):
        return None
    found: NDArray = np.from_dlpack(value)
    return found if found.flags.writeable or not hasattr(value, "numpy") else None


def like(given: Any, result: Any, form: str = "") -> Any:
    """Return a result as an array of the library that ``given`` is of, in the same memory.

    ``form``: the format of its values, of 8 or 16 bits, also where NumPy has them as float32.

    Where that library takes no arrays of NumPy by DLPack, the result stays one of NumPy.
    """
    take = _taker(given)
    if take is None or not isinstance(result, np.ndarray):
        return result
    try:
        return _narrow(take, given, result, form) if form in FORMATS else take(result)
    except _REFUSALS:
        return result


def _narrow(take: Any, given: Any, result: NDArray, form: str) -> Any:
    """Return a result of a narrow format, which DLPack does not take from NumPy, by its bits.

    It stays as it is where the other library has no such type.
    """
    kind = getattr(sys.modules.get(type(given).__module__.partition(".")[0]), form, None)
    if kind is None or FORMATS[form].limits is not None:
        return result
    held = result.dtype == np.float32
    bits = codes_of(result, form) if held else result.view(np.dtype(f"uint{8 * result.itemsize}"))
    return take(bits).view(kind)


def _taker(given: Any) -> Any:
    """Return ``from_dlpack`` of the library that an array is of, None where it has none."""
    space = getattr(given, "__array_namespace__", None)
    libraries = [space()] if callable(space) else []
    libraries.append(sys.modules.get(type(given).__module__.partition(".")[0]))
    return next((take for library in libraries if (take := getattr(library, "from_dlpack", None))), None)
