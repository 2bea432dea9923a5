"""What memory holds before it is written, in the evaluator: always the same, and never useful."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.ir.types import ElementType

NDArray = npt.NDArray[Any]


def garbage(shape: tuple[int, ...], kind: ElementType) -> NDArray:
    """Return an array of numbers that no program would compute by chance."""
    if kind.is_float:
        return np.full(shape, np.nan, kind.dtype)
    pattern = np.frombuffer(b"\xa5" * kind.size, kind.dtype)[0]
    return np.full(shape, pattern, kind.dtype)
