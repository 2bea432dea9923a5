"""Arrays of the host as 32-bit words of PEs, and back.

Source: the API reference of the public SDK, `memcpy_h2d` and `memcpy_d2h`: a one-dimensional array holds
(height, width, elements) in row-major or column-major order; an element of 16 bits is the low half of a
32-bit one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error

Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Region:
    """A rectangle of PEs and the elements of each; (x, y) is its north-west corner."""

    x: int
    y: int
    width: int
    height: int
    elements: int

    def check_inside(self, width: int, height: int) -> None:
        """Raise `csl-host-region` unless the rectangle lies in a program of this size."""
        inside = (
            self.x >= 0 and self.y >= 0 and self.x + self.width <= width and self.y + self.height <= height
        )
        if self.width < 1 or self.height < 1 or self.elements < 1 or not inside:
            raise PolyloomError(
                error(
                    "csl-host-region",
                    f"{self.width} x {self.height} PEs from ({self.x}, {self.y}) on,"
                    f" {self.elements} elements each,"
                    f" are not a part of the program's {width} x {height} PEs",
                    helps=["the arguments are: column, row, width, height, elements of each PE"],
                )
            )

    def pes(self) -> list[tuple[int, int]]:
        """Return the PEs, row by row."""
        return [(self.x + i, self.y + j) for j in range(self.height) for i in range(self.width)]


def words_of(array: Any, region: Region, *, by_column: bool) -> Words:
    """Return a host array as [row][column][element]. Errors: `csl-host-array` for another type or size."""
    flat = _flat(array, region, "source")
    if by_column:
        return flat.reshape(region.elements, region.width, region.height).transpose(2, 1, 0)
    return flat.reshape(region.height, region.width, region.elements)


def check_destination(array: Any, region: Region) -> None:
    """Raise `csl-host-array` unless elements can be written to a host array."""
    _flat(array, region, "destination")


def fill(array: Any, words: Words, region: Region, *, by_column: bool) -> None:
    """Write [row][column][element] to a host array. Errors: `csl-host-array`."""
    flat = _flat(array, region, "destination")
    flat[:] = (words.transpose(2, 1, 0) if by_column else words).reshape(-1)


def _flat(array: Any, region: Region, what: str) -> Words:
    """Return the array's own memory as words."""
    wanted = region.width * region.height * region.elements
    if not isinstance(array, np.ndarray):
        raise _refused(what, f"a `{type(array).__name__}` and no NumPy array")
    if array.dtype.itemsize != 4:
        raise _refused(what, f"of {array.dtype}, whose elements have {8 * array.dtype.itemsize} bits, not 32")
    if array.size != wanted:
        raise _refused(what, f"of {array.size} elements, not of {wanted}")
    if not array.flags.c_contiguous:
        if what == "destination":
            raise _refused(what, "not contiguous")
        array = np.ascontiguousarray(array)
    words: Words = array.reshape(-1).view(np.uint32)
    return words


def _refused(what: str, found: str) -> PolyloomError:
    helps = ["`sdk_utils.input_array_to_u32` makes 32-bit elements of 16-bit ones"] if "bits" in found else []
    return PolyloomError(error("csl-host-array", f"the {what} of the copy is {found}", helps=helps))


def to_bytes(words: Words, bits: int) -> bytes:
    """Return a PE's elements as its memory holds them: ``bits`` each, little-endian."""
    return words.astype("<u4" if bits == 32 else "<u2", casting="unsafe").tobytes()


def from_bytes(data: bytes, bits: int) -> Words:
    """Return a PE's memory as words, 16-bit elements with zeros above them."""
    return np.frombuffer(data, "<u4" if bits == 32 else "<u2").astype(np.uint32)
