"""OpenCL as a driver of runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.runtime.build import build_kernels, device_errors
from polyloom.mdh.runtime.driver import Driver, NDArray

if TYPE_CHECKING:
    import pyopencl as cl


def driver_of(device: OpenDevice | Driver) -> Driver:
    """Return what runs go through on a device."""
    return OpenCLDriver(device) if isinstance(device, OpenDevice) else device


@dataclass(frozen=True, eq=False)
class OpenCLEvent:
    """A command in the queue."""

    event: cl.Event

    @property
    def seconds(self) -> float:
        """Return the time between start and end on the device."""
        return self.until(self)

    def until(self, last: OpenCLEvent) -> float:
        """Return the seconds from its start to the end of another."""
        return float(last.event.profile.end - self.event.profile.start) * 1e-9


@dataclass(frozen=True, eq=False)
class OpenCLKernel:
    """A kernel object."""

    kernel: cl.Kernel

    def set_memory(self, position: int, memory: cl.Buffer) -> None:
        """Pass memory of the device."""
        self.kernel.set_arg(position, memory)

    def set_local(self, position: int, size: int) -> None:
        """Pass so many bytes of a group's memory."""
        import pyopencl as cl

        self.kernel.set_arg(position, cl.LocalMemory(size))  # type: ignore[arg-type]

    def set_integer(self, position: int, value: np.generic) -> None:
        """Pass an integer of its very type."""
        self.kernel.set_arg(position, value)


@dataclass(frozen=True, eq=False)
class OpenCLDriver:
    """An OpenCL device with its queue."""

    device: OpenDevice

    @property
    def model(self) -> DeviceModel:
        """Return what is known of the device."""
        return self.device.model

    def errors(self) -> AbstractContextManager[None]:
        """Return what makes diagnostics of OpenCL's errors."""
        return device_errors(self.device)

    def allocate(self, size: int) -> cl.Buffer:
        """Return memory; at least one byte."""
        import pyopencl as cl

        return cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, max(1, size))

    def upload(self, memory: cl.Buffer, array: NDArray) -> None:
        """Copy a contiguous array to the device."""
        import pyopencl as cl

        if array.nbytes:
            cl.enqueue_copy(self.device.queue, memory, array)

    def download(self, memory: cl.Buffer, array: NDArray) -> None:
        """Copy from the device into a contiguous array."""
        import pyopencl as cl

        if array.nbytes:
            cl.enqueue_copy(self.device.queue, array, memory)

    def in_place(self, array: NDArray, *, written: bool) -> cl.Buffer:
        """Return an array as memory of the device."""
        import pyopencl as cl

        access = cl.mem_flags.READ_WRITE if written else cl.mem_flags.READ_ONLY
        return cl.Buffer(self.device.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=array)

    def synchronise(self, memory: cl.Buffer, array: NDArray) -> None:
        """Make the driver show its results in memory that it shares with us."""
        import pyopencl as cl

        queue, flags = self.device.queue, cl.map_flags.READ
        mapped, _ = cl.enqueue_map_buffer(queue, memory, flags, 0, array.shape, array.dtype)
        mapped.base.release(queue)

    def copy(self, source: cl.Buffer, target: cl.Buffer, size: int, *, timed: bool) -> OpenCLEvent:
        """Copy so many bytes on the device."""
        import pyopencl as cl

        return OpenCLEvent(cl.enqueue_copy(self.device.queue, target, source, byte_count=size))

    def build(self, kernels: Sequence[Kernel]) -> list[OpenCLKernel]:
        """Return kernels with arguments of their own. Errors: ``device-build``."""
        return [OpenCLKernel(kernel) for kernel in build_kernels(self.device, kernels)]

    def launch(
        self, kernel: OpenCLKernel, size: tuple[int, ...], local: tuple[int, ...] | None, *, timed: bool
    ) -> OpenCLEvent:
        """Start so many items in groups of ``local``."""
        import pyopencl as cl

        return OpenCLEvent(cl.enqueue_nd_range_kernel(self.device.queue, kernel.kernel, size, local))

    def wait(self) -> None:
        """Wait until everything is done."""
        self.device.queue.finish()
