"""Kernels built for an open device; a driver's refusal becomes one diagnostic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.device.devices import OpenDevice
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.runtime.joint_source import joint_sources
from polyloom.programs import first_error

if TYPE_CHECKING:
    import pyopencl as cl


def build_kernels(device: OpenDevice, kernels: Sequence[Kernel]) -> list[cl.Kernel]:
    """Return a kernel object with arguments of its own for each, in order, from as few programs as can be.

    Errors: ``device-build``, which names the kernel that the driver refuses.
    """
    import pyopencl as cl

    found: dict[int, tuple[cl.Program, str]] = {}
    for joint in joint_sources(kernels):
        try:
            program = _program(device, joint.source, joint.options)
            found |= {at: (program, name) for at, name in joint.names.items()}
        except cl.Error:  # a kernel is refused, or what belongs to one clashes with another
            found |= {at: (_alone(device, kernels[at]), kernels[at].name) for at in joint.names}
    with device_errors(device):
        return [cl.Kernel(*found[at]) for at in range(len(kernels))]


def _program(device: OpenDevice, source: str, options: Sequence[str]) -> cl.Program:
    import warnings

    import pyopencl as cl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a compiler's remarks are no concern of the user
        program: cl.Program = cl.Program(device.context, source).build(
            [*device.model.build_options, *options]
        )
        return program


def _alone(device: OpenDevice, kernel: Kernel) -> cl.Program:
    """Return a program of this kernel. Errors: ``device-build``."""
    import pyopencl as cl

    try:
        return _program(device, kernel.source, kernel.options)
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
