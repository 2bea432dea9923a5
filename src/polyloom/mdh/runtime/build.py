"""Kernels built for an open device; a driver's refusal becomes one diagnostic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.devices import OpenDevice
from polyloom.mdh.kernel.launch import Kernel
from polyloom.programs import first_error

if TYPE_CHECKING:
    import pyopencl as cl


class Builder:
    """Builds each source once for a device, and makes kernel objects from it."""

    def __init__(self, device: OpenDevice) -> None:
        self.device = device
        self._programs: dict[tuple[str, tuple[str, ...]], cl.Program] = {}

    def kernel(self, kernel: Kernel) -> cl.Kernel:
        """Return a kernel object with arguments of its own. Errors: ``device-build``."""
        import pyopencl as cl

        program = self._program(kernel)
        with device_errors(self.device):
            return cl.Kernel(program, kernel.name)

    def _program(self, kernel: Kernel) -> cl.Program:
        key = (kernel.source, kernel.options)
        if key not in self._programs:
            self._programs[key] = _built(self.device, kernel)
        return self._programs[key]


def _built(device: OpenDevice, kernel: Kernel) -> cl.Program:
    import warnings

    import pyopencl as cl

    options = [*device.model.build_options, *kernel.options]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a compiler's remarks are no concern of the user
            program: cl.Program = cl.Program(device.context, kernel.source).build(options)
            return program
    except cl.Error as fault:
        raise PolyloomError(
            error(
                "device-build",
                f"the driver of `{device.model.name}` refuses the kernel `{kernel.name}`",
                notes=[first_error(str(fault)), f"driver: {device.model.platform} {device.model.driver}"],
                helps=["another device may do: `--device`; `polyloom devices` lists them"],
            )
        ) from fault


@contextmanager
def device_errors(device: OpenDevice) -> Iterator[None]:
    """Turn what OpenCL raises inside into one diagnostic: ``device-resources`` or ``device-failure``."""
    import pyopencl as cl

    try:
        yield
    except MemoryError as fault:
        helps = ["give smaller sizes"]
        raise PolyloomError(
            error("memory", "there is not enough memory", notes=[str(fault)], helps=helps)
        ) from fault
    except cl.Error as fault:
        text = str(fault)
        scarce = any(word in text for word in ("RESOURCES", "ALLOCATION", "OUT_OF", "HOST_MEMORY"))
        code = "device-resources" if scarce else "device-failure"
        message = f"`{device.model.name}` {'has not enough memory' if scarce else 'failed'}"
        helps = ["smaller sizes or another device may do: `polyloom devices` lists them"]
        raise PolyloomError(error(code, message, notes=[text.splitlines()[0]], helps=helps)) from fault
