"""Element types of tensors."""

from __future__ import annotations

from enum import Enum
from functools import cached_property

import numpy as np
import numpy.typing as npt


class ElementType(Enum):
    """The type of a tensor's elements; the value is its name in LAIR and in NumPy."""

    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    BOOL = "bool"
    """The type of a comparison; no tensor has it."""

    @cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy dtype."""
        return np.dtype(self.value)

    @cached_property
    def size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self in (ElementType.FLOAT16, ElementType.FLOAT32, ElementType.FLOAT64)

    @property
    def lowest(self) -> float | int:
        """The value that is below all others: -inf, or the least integer."""
        return -np.inf if self.is_float else int(np.iinfo(self.value).min)

    @property
    def highest(self) -> float | int:
        """The value that is above all others: inf, or the greatest integer."""
        return np.inf if self.is_float else int(np.iinfo(self.value).max)


Array = npt.NDArray[np.generic]

C_TYPES = {
    ElementType.FLOAT16: "_Float16",
    ElementType.FLOAT32: "float",
    ElementType.FLOAT64: "double",
    ElementType.INT8: "signed char",
    ElementType.INT16: "short",
    ElementType.INT32: "int",
    ElementType.INT64: "long long",
    ElementType.UINT8: "unsigned char",
    ElementType.UINT16: "unsigned short",
    ElementType.UINT32: "unsigned int",
    ElementType.UINT64: "unsigned long long",
}
"""Types that C has without a header; whoever has ``_Float16`` elements has a compiler that knows it."""
