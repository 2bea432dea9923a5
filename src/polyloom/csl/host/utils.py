"""`sdk_utils`: host arrays of 16-bit elements, and cycles. Source: the API reference of the public SDK."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error


def memcpy_view(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """Return a view of 32-bit elements as elements of ``dtype``: their low halves if it has 16 bits."""
    wanted = np.dtype(dtype)
    if array.dtype.itemsize != 4 or wanted.itemsize not in (2, 4):
        raise _refused(f"`memcpy_view` makes 16 or 32 bits of 32, not {wanted} of {array.dtype}")
    view: npt.NDArray[Any] = array.view(wanted)
    return view if wanted.itemsize == 4 else view[..., ::2]


def input_array_to_u32(
    np_arr: npt.NDArray[Any], sentinel: int | None, fast_dim_sz: int
) -> npt.NDArray[np.uint32]:
    """Return elements of 16 or 32 bits as 32-bit words; 16-bit ones in the low half.

    Above them stand zeros if ``sentinel`` is None, else the position in the fastest dimension, of size
    ``fast_dim_sz``.
    """
    flat = np.ascontiguousarray(np_arr).reshape(-1)
    if flat.dtype.itemsize == 4:
        return flat.view(np.uint32).copy()
    if flat.dtype.itemsize != 2:
        raise _refused(f"`input_array_to_u32` takes elements of 16 or 32 bits, not {flat.dtype}")
    words = flat.view(np.uint16).astype(np.uint32)
    if sentinel is None:
        return words
    return words | (np.arange(flat.size, dtype=np.uint32) % np.uint32(fast_dim_sz)) << np.uint32(16)


def calculate_cycles(timestamp_buf: npt.NDArray[Any]) -> np.int64:
    """Return the cycles between two timestamps of three 16-bit words each, in three 32-bit elements."""
    words = np.ascontiguousarray(timestamp_buf).view(np.uint16).astype(np.int64)
    if words.size != 6:
        raise _refused(f"`calculate_cycles` takes three 32-bit elements, not {timestamp_buf.size}")
    weights = np.array([1, 1 << 16, 1 << 32], np.int64)
    return np.int64(words[3:] @ weights - words[:3] @ weights)


def _refused(message: str) -> PolyloomError:
    return PolyloomError(error("csl-host-array", message))
