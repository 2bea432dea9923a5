"""Arrays in a page: deflated, in base64, bounded in size; the other side is ``unpack.js``."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

MOST_CHARACTERS = 400_000
"""Of one array in base64; a larger one is rounded to 256 levels."""

_TYPES = (("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32))

Packed = dict[str, Any]
"""``{type, offset, scale, exact, data}``: element k is ``offset + scale * raw[k]``."""


def pack_numbers(values: npt.NDArray[np.int64], most: int = MOST_CHARACTERS) -> Packed:
    """Return integers exactly where that fits into ``most`` characters, else rounded to 256 levels."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if values.size:
        low = int(values.min())
    name, kind = next((n, t) for n, t in _TYPES if high - low <= np.iinfo(t).max)
    exact = _packed(name, (values - low).astype(kind), low, 1.0, exact=True)
    if name == "u8" or len(exact["data"]) <= most:
        return exact
    scale = (high - low) / 255
    return _packed("u8", np.rint((values - low) / scale).astype(np.uint8), low, scale, exact=False)


def pack_truths(values: npt.NDArray[np.bool_]) -> Packed:
    """Return truths, one bit each, the first in the lowest bit."""
    return _packed("bits", np.packbits(values.ravel(), bitorder="little"), 0, 1.0, exact=True)


def pack_text(text: str) -> Packed:
    """Return a text, which ``unpackText`` gives back."""
    data = base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii")
    return {"type": "text", "data": data}


def _packed(name: str, raw: npt.NDArray[Any], offset: int, scale: float, *, exact: bool) -> Packed:
    data = zlib.compress(np.ascontiguousarray(raw, raw.dtype.newbyteorder("<")).tobytes(), 9)
    text = base64.b64encode(data).decode("ascii")
    return {"type": name, "offset": offset, "scale": scale, "exact": exact, "data": text}
