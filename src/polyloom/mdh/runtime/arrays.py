"""Arrays of a user as memory of a device.

Where the device works in the processor's memory, an array is used where it lies, without a copy; elsewhere it
is copied to the device before a run and back after it. ``DeviceArray`` stays on the device between runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.devices import OpenDevice
from polyloom.mdh.runtime.driver import Driver, Memory
from polyloom.mdh.runtime.opencl import driver_of

NDArray = npt.NDArray[Any]


class DeviceArray:
    """An array in the memory of a device, which compiled programs take in place of a NumPy array.

    ``get()`` copies it back. It has the shape and type of the array that it was made from.
    """

    def __init__(self, device: OpenDevice | Driver, array: NDArray) -> None:
        self.driver = driver_of(device)
        self.shape, self.dtype = array.shape, array.dtype
        with self.driver.errors():
            self.buffer = self.driver.allocate(array.nbytes)
            self.driver.upload(self.buffer, np.ascontiguousarray(array))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def get(self) -> NDArray:
        """Return a copy of the array in the processor's memory."""
        result = np.empty(self.shape, self.dtype)
        with self.driver.errors():
            self.driver.download(self.buffer, result)
        return result

    def set(self, array: NDArray) -> None:
        """Overwrite the array. Errors: ``input-shape`` where shape or type is another."""
        if array.shape != self.shape or array.dtype != self.dtype:
            message = f"the array on the device is {self.dtype}{list(self.shape)}"
            given = f"the given one is {array.dtype}{list(array.shape)}"
            raise PolyloomError(error("input-shape", message, notes=[given]))
        self._overwrite(array)

    def _overwrite(self, array: NDArray) -> None:
        with self.driver.errors():
            self.driver.upload(self.buffer, np.ascontiguousarray(array))


def is_usable(array: NDArray, *, written: bool, rows: slice | None = None) -> bool:
    """Return whether a run can work on an array where it lies."""
    fits = array.flags.c_contiguous and array.flags.aligned
    return rows is None and fits and (not written or array.flags.writeable)


class Borrowed:
    """A NumPy array that a run uses: in place where the device can, else through a copy.

    ``written``: the run changes it. ``finish`` brings the results into the array. ``rows``: those that the
    run touches, where the others are another array's; then it works on a copy.
    """

    def __init__(self, driver: Driver, array: NDArray, *, written: bool, rows: slice | None = None) -> None:
        self.driver, self.target, self.written, self.rows = driver, array, written, rows
        usable = is_usable(array, written=written, rows=rows)
        self.array = array if usable else np.array(array, order="C")
        self.shared = driver.model.shares_memory and self.array.nbytes > 0
        self.buffer = self._buffer()

    def _buffer(self) -> Memory:
        if self.shared:
            return self.driver.in_place(self.array, written=self.written)
        buffer = self.driver.allocate(self.array.nbytes)
        self.driver.upload(buffer, self.array)
        return buffer

    def finish(self) -> None:
        """Bring what the run wrote into the array."""
        if not self.written:
            return
        if self.shared:
            self.driver.synchronise(self.buffer, self.array)
        else:
            self.driver.download(self.buffer, self.array)
        if self.rows is not None and self.target.ndim:
            self.target[self.rows] = self.array[self.rows]
        elif self.array is not self.target:
            self.target[...] = self.array
