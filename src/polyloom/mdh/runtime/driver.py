"""What a run needs of a device with memory and kernels of its own: OpenCL has it, and CUDA."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.launch import Kernel

NDArray = npt.NDArray[Any]


class Memory(Protocol):
    """Memory of the device."""

    @property
    def size(self) -> int:
        """Return its bytes."""


class Event(Protocol):
    """Something that the device was told to do, and when it did it; to be asked once that is over."""

    @property
    def seconds(self) -> float:
        """Return the time between start and end on the device."""

    def until(self, last: Any) -> float:
        """Return the seconds from its start to the end of ``last``, another event of the device."""


class BuiltKernel(Protocol):
    """A kernel with arguments of its own."""

    def set_memory(self, position: int, memory: Any) -> None:
        """Pass memory of the device."""

    def set_local(self, position: int, size: int) -> None:
        """Pass so many bytes of a group's memory."""

    def set_integer(self, position: int, value: np.generic) -> None:
        """Pass an integer of its very type."""


class Driver(Protocol):
    """An open device. What it is told to do it does in order; ``wait`` returns when all is done.

    Errors inside ``errors()`` become one diagnostic.
    """

    @property
    def model(self) -> DeviceModel:
        """Return what is known of the device."""

    def errors(self) -> AbstractContextManager[None]:
        """Return what makes diagnostics of the driver's errors: ``device-resources``, ``device-failure``."""

    def allocate(self, size: int) -> Memory:
        """Return memory; at least one byte, for a device has no empty memory."""

    def upload(self, memory: Any, array: NDArray) -> None:
        """Copy a contiguous array to the device."""

    def download(self, memory: Any, array: NDArray) -> None:
        """Copy from the device into a contiguous array, once what was begun is done."""

    def in_place(self, array: NDArray, *, written: bool) -> Memory:
        """Return an array as memory of the device, of one that ``shares_memory``."""

    def synchronise(self, memory: Any, array: NDArray) -> None:
        """Show the device's results in an array that is used in place."""

    def copy(self, source: Any, target: Any, size: int, *, timed: bool) -> Event | None:
        """Copy so many bytes on the device."""

    def build(self, kernels: Sequence[Kernel]) -> Sequence[BuiltKernel]:
        """Return kernels with arguments of their own, in order. Errors: ``device-build``."""

    def launch(
        self, kernel: Any, size: tuple[int, ...], local: tuple[int, ...] | None, *, timed: bool
    ) -> Event | None:
        """Start so many items in groups of ``local``; the event where ``timed``."""

    def wait(self) -> None:
        """Wait until everything is done."""
