"""Arrays of a user as memory of a device.

Where the device works in the processor's memory, an array is used where it lies, without a copy; elsewhere it
is copied to the device before a run and back after it. ``DeviceArray`` stays on the device between runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.devices import OpenDevice
from polyloom.mdh.runtime.build import device_errors

if TYPE_CHECKING:
    import pyopencl as cl

NDArray = npt.NDArray[Any]


class DeviceArray:
    """An array in the memory of a device, which compiled programs take in place of a NumPy array.

    ``get()`` copies it back. It has the shape and type of the array that it was made from.
    """

    def __init__(self, device: OpenDevice, array: NDArray) -> None:
        self.device = device
        self.shape, self.dtype = array.shape, array.dtype
        with device_errors(device):
            self.buffer = allocated(device, array.nbytes)
            upload(device, self.buffer, np.ascontiguousarray(array))

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def get(self) -> NDArray:
        """Return a copy of the array in the processor's memory."""
        result = np.empty(self.shape, self.dtype)
        with device_errors(self.device):
            download(self.device, self.buffer, result)
        return result

    def set(self, array: NDArray) -> None:
        """Overwrite the array. Errors: ``input-shape`` where shape or type is another."""
        if array.shape != self.shape or array.dtype != self.dtype:
            message = f"the array on the device is {self.dtype}{list(self.shape)}"
            given = f"the given one is {array.dtype}{list(array.shape)}"
            raise PolyloomError(error("input-shape", message, notes=[given]))
        self._overwrite(array)

    def _overwrite(self, array: NDArray) -> None:
        with device_errors(self.device):
            upload(self.device, self.buffer, np.ascontiguousarray(array))


def is_usable(array: NDArray, *, written: bool, rows: slice | None = None) -> bool:
    """Return whether a run can work on an array where it lies."""
    fits = array.flags.c_contiguous and array.flags.aligned
    return rows is None and fits and (not written or array.flags.writeable)


def allocated(device: OpenDevice, bytes_: int) -> cl.Buffer:
    """Return memory of the device; at least one byte, for a device has no empty memory."""
    import pyopencl as cl

    return cl.Buffer(device.context, cl.mem_flags.READ_WRITE, max(1, bytes_))


def upload(device: OpenDevice, buffer: cl.Buffer, array: NDArray) -> None:
    """Copy a contiguous array to the device."""
    import pyopencl as cl

    if array.nbytes:
        cl.enqueue_copy(device.queue, buffer, array)


def download(device: OpenDevice, buffer: cl.Buffer, array: NDArray) -> None:
    """Copy from the device into a contiguous array."""
    import pyopencl as cl

    if array.nbytes:
        cl.enqueue_copy(device.queue, array, buffer)


class Borrowed:
    """A NumPy array that a run uses: in place where the device can, else through a copy.

    ``written``: the run changes it. ``finish`` brings the results into the array. ``rows``: those that the
    run touches, where the others are another array's; then it works on a copy.
    """

    def __init__(
        self, device: OpenDevice, array: NDArray, *, written: bool, rows: slice | None = None
    ) -> None:
        self.device, self.target, self.written, self.rows = device, array, written, rows
        usable = is_usable(array, written=written, rows=rows)
        self.array = array if usable else np.array(array, order="C")
        self.shared = device.model.shares_memory and self.array.nbytes > 0
        self.buffer = self._buffer()

    def _buffer(self) -> cl.Buffer:
        import pyopencl as cl

        if not self.shared:
            buffer = allocated(self.device, self.array.nbytes)
            upload(self.device, buffer, self.array)
            return buffer
        access = cl.mem_flags.READ_WRITE if self.written else cl.mem_flags.READ_ONLY
        return cl.Buffer(self.device.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=self.array)

    def finish(self) -> None:
        """Bring what the run wrote into the array."""
        if not self.written:
            return
        if self.shared:
            self._synchronise()
        else:
            download(self.device, self.buffer, self.array)
        if self.rows is not None and self.target.ndim:
            self.target[self.rows] = self.array[self.rows]
        elif self.array is not self.target:
            self.target[...] = self.array

    def _synchronise(self) -> None:
        """Make the driver show its results in memory that it shares with us."""
        import pyopencl as cl

        queue, flags = self.device.queue, cl.map_flags.READ
        mapped, _ = cl.enqueue_map_buffer(queue, self.buffer, flags, 0, self.array.shape, self.array.dtype)
        mapped.base.release(queue)
