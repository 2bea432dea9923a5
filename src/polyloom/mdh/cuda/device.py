"""GPUs through CUDA's driver: found, chosen, opened; an open one is a ``Driver`` of runs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import byref, c_float, c_size_t, c_void_p
from dataclasses import dataclass, field, replace
from functools import cache
from math import prod

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.cuda.architectures import gpu_model, matrix_products
from polyloom.mdh.cuda.compiler import Refused, built
from polyloom.mdh.cuda.library import CudaError, Library, Pointer, library
from polyloom.mdh.device.devices import DeviceModel, UnitLimits, refuse_fork
from polyloom.mdh.lowering.launch import Kernel
from polyloom.mdh.print.kernel_source import prelude_of, without_prelude
from polyloom.mdh.runtime.driver import NDArray
from polyloom.mdh.runtime.joint_source import JointSource, joint_sources
from polyloom.programs import first_error

_GROUP_SIZE, _GROUP_MEMORY, _LANES, _CLOCK_KHZ, _UNITS, _CACHE, _MAJOR, _MINOR = 1, 8, 10, 13, 16, 38, 75, 76
_MEMORY_KHZ, _BUS_BITS, _UNIT_ITEMS, _UNIT_MEMORY, _UNIT_REGISTERS = 36, 37, 39, 81, 82
"""Numbers of attributes. Source: CUDA Driver API, CUdevice_attribute."""

_MOST_GROUPS = 2**31 - 1


def gpus() -> tuple[DeviceModel, ...]:
    """Return the GPUs that the driver shows, in its order; none where there is no driver."""
    found = library()
    return () if isinstance(found, str) else _models(found)


@cache
def _models(driver: Library) -> tuple[DeviceModel, ...]:
    return tuple(_model(driver, k) for k in range(driver.number("cuDeviceGetCount")))


def _model(driver: Library, ordinal: int) -> DeviceModel:
    device = driver.number("cuDeviceGet", ordinal)
    name, memory = ctypes.create_string_buffer(256), c_size_t()
    driver.call("cuDeviceGetName", name, len(name), device)
    driver.call("cuDeviceTotalMem_v2", byref(memory), device)
    version = driver.number("cuDriverGetVersion")

    def attribute(number: int) -> int:
        return driver.number("cuDeviceGetAttribute", number, device)

    architecture = f"sm_{attribute(_MAJOR)}{attribute(_MINOR)}"
    return gpu_model(
        name=name.value.decode(errors="replace"),
        architecture=architecture,
        driver=f"{version // 1000}.{version % 1000 // 10}",
        units=attribute(_UNITS),
        clock_mhz=attribute(_CLOCK_KHZ) // 1000,
        group_memory=attribute(_GROUP_MEMORY),
        memory=memory.value,
        cache=attribute(_CACHE),
        memory_rate=2e3 * attribute(_MEMORY_KHZ) * attribute(_BUS_BITS) / 8,
        unit=UnitLimits(
            registers=attribute(_UNIT_REGISTERS),
            items=attribute(_UNIT_ITEMS),
            local_memory=attribute(_UNIT_MEMORY),
        ),
        lanes=attribute(_LANES),
        group_size=attribute(_GROUP_SIZE),
        ordinal=ordinal,
        matrix_products=matrix_products(architecture),
    )


def choose_gpu(wanted: str = "") -> DeviceModel:
    """Return a GPU: its number in the driver's order, a part of its name, or the first.

    Errors: ``cuda-driver``, ``cuda-missing``.
    """
    found = library()
    models = gpus()
    if not models:
        reason = found if isinstance(found, str) else "it shows no GPU"
        helps = [
            "CUDA's driver comes with NVIDIA's display driver",
            "`--device native` runs on the processor",
            "`polyloom compile --target cuda` writes CUDA C without a GPU",
        ]
        raise PolyloomError(error("cuda-driver", "CUDA has no GPU here", notes=[reason], helps=helps))
    text = wanted.strip().lower()
    fitting = [m for m in models if (text == str(m.ordinal) if text.isdecimal() else text in m.name.lower())]
    if not fitting:
        notes = [f"{k}: {model.name}" for k, model in enumerate(models)]
        helps = ["give a number of this list, or a part of a name: `--device cuda:0`"]
        message = f"CUDA has no GPU `{wanted}`"
        raise PolyloomError(error("cuda-missing", message, notes=notes, helps=helps))
    return fitting[0]


def open_gpu(model: DeviceModel) -> CudaDevice:
    """Return the open GPU that a model describes: one for each process. Errors: ``cuda-driver``."""
    found = library()
    alike = [each.ordinal for each in gpus() if each.id == model.id]
    if isinstance(found, str) or not alike:
        return open_gpu(choose_gpu(model.name))
    return _opened(found, model.ordinal if model.ordinal in alike else alike[0])


@cache
def _opened(driver: Library, ordinal: int) -> CudaDevice:
    context = driver.handle("cuDevicePrimaryCtxRetain", driver.number("cuDeviceGet", ordinal))
    return CudaDevice(_models(driver)[ordinal], driver, context)


class CudaMemory:
    """Memory of the device, given free when nobody has it any more."""

    def __init__(self, driver: Library, size: int) -> None:
        self._driver, self.size, self.pointer = driver, max(1, size), Pointer()
        driver.call("cuMemAlloc_v2", byref(self.pointer), self.size)

    def __del__(self) -> None:
        """Give it free; what the process leaves, the system takes."""
        if self.pointer.value:
            with suppress(CudaError, TypeError, AttributeError):
                self._driver.call("cuMemFree_v2", self.pointer)


class CudaEvent:
    """Two marks in the stream, around a command."""

    def __init__(self, driver: Library) -> None:
        self._driver = driver
        self.start, self.end = driver.handle("cuEventCreate", 0), driver.handle("cuEventCreate", 0)

    @property
    def seconds(self) -> float:
        """Return the time between start and end on the device."""
        return self.until(self)

    def until(self, last: CudaEvent) -> float:
        """Return the seconds from its start to the end of another."""
        milliseconds = c_float()
        self._driver.call("cuEventElapsedTime", byref(milliseconds), self.start, last.end)
        return milliseconds.value * 1e-3

    def __del__(self) -> None:
        """Give the marks free."""
        with suppress(CudaError, TypeError, AttributeError):
            self._driver.call("cuEventDestroy_v2", self.start)
            self._driver.call("cuEventDestroy_v2", self.end)


class CudaKernel:
    """A function of a module, and what it is passed; ``module`` lives as long as one of its kernels."""

    def __init__(self, module: _Module, name: str, arguments: int) -> None:
        self.module = module
        self.function = module.driver.handle("cuModuleGetFunction", module.handle, name.encode())
        self._values: list[ctypes._SimpleCData[int] | None] = [None] * arguments
        self.pointers = (c_void_p * max(1, arguments))()

    def set_memory(self, position: int, memory: CudaMemory) -> None:
        """Pass memory of the device."""
        self._set(position, Pointer(memory.pointer.value))

    def set_local(self, position: int, size: int) -> None:
        """Refuse: kernels in CUDA C declare their groups' memory."""
        raise AssertionError("a group's memory is declared inside the kernel")

    def set_integer(self, position: int, value: np.generic) -> None:
        """Pass an integer of its very type."""
        kind = ctypes.c_int64 if value.dtype.itemsize == 8 else ctypes.c_int32
        self._set(position, kind(int(value)))

    def _set(self, position: int, value: ctypes._SimpleCData[int]) -> None:
        self._values[position] = value
        self.pointers[position] = ctypes.addressof(value)


@dataclass(frozen=True, eq=False)
class _Module:
    """Loaded code."""

    driver: Library
    handle: c_void_p

    def __del__(self) -> None:
        with suppress(CudaError, TypeError, AttributeError):
            self.driver.call("cuModuleUnload", self.handle)


@dataclass(frozen=True, eq=False)
class CudaDevice:
    """An open GPU: a ``Driver`` of runs. All that it is told goes to its default stream, in order."""

    model: DeviceModel
    _driver: Library
    _context: c_void_p
    _process: int = field(default_factory=os.getpid)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Make the device the calling thread's, and its errors diagnostics."""
        refuse_fork(self._process, "CUDA")
        try:
            self._driver.call("cuCtxSetCurrent", self._context)
            yield
        except MemoryError as fault:
            helps = ["give smaller sizes"]
            message = "there is not enough memory"
            raise PolyloomError(error("memory", message, notes=[str(fault)], helps=helps)) from fault
        except CudaError as fault:
            scarce = any(word in fault.name for word in ("OUT_OF", "RESOURCES"))
            code = "device-resources" if scarce else "device-failure"
            message = f"`{self.model.name}` {'has not enough memory' if scarce else 'failed'}"
            helps = ["smaller sizes or another device may do: `polyloom devices` lists them"]
            raise PolyloomError(error(code, message, notes=[str(fault)], helps=helps)) from fault

    def allocate(self, size: int) -> CudaMemory:
        """Return memory; at least one byte."""
        return CudaMemory(self._driver, size)

    def upload(self, memory: CudaMemory, array: NDArray) -> None:
        """Copy a contiguous array to the device."""
        if array.nbytes:
            self._driver.call("cuMemcpyHtoD_v2", memory.pointer, array.ctypes.data, array.nbytes)

    def download(self, memory: CudaMemory, array: NDArray) -> None:
        """Copy from the device into a contiguous array."""
        if array.nbytes:
            self._driver.call("cuMemcpyDtoH_v2", array.ctypes.data, memory.pointer, array.nbytes)

    def in_place(self, array: NDArray, *, written: bool) -> CudaMemory:
        """Refuse: a GPU has memory of its own."""
        raise AssertionError("no GPU works in the processor's memory")

    def synchronise(self, memory: CudaMemory, array: NDArray) -> None:
        """Refuse: no array is used in place."""
        raise AssertionError("no GPU works in the processor's memory")

    def copy(self, source: CudaMemory, target: CudaMemory, size: int, *, timed: bool) -> CudaEvent | None:
        """Copy so many bytes on the device."""
        with self._marked(timed) as event:
            self._driver.call("cuMemcpyDtoDAsync_v2", target.pointer, source.pointer, size, None)
        return event

    @contextmanager
    def _marked(self, timed: bool) -> Iterator[CudaEvent | None]:
        event = CudaEvent(self._driver) if timed else None
        if event is not None:
            self._driver.call("cuEventRecord", event.start, None)
        yield event
        if event is not None:
            self._driver.call("cuEventRecord", event.end, None)

    def build(self, kernels: Sequence[Kernel]) -> list[CudaKernel]:
        """Return kernels with arguments of their own, in few modules. Errors: ``device-build``."""
        bare = [replace(kernel, source=without_prelude(kernel.source)) for kernel in kernels]
        before = prelude_of([kernel.source for kernel in kernels])
        found: dict[int, CudaKernel] = {}
        with self.errors():
            for joint in joint_sources(bare):
                module = self._module(joint, before, kernels)
                for at, name in joint.names.items():
                    found[at] = CudaKernel(module, name, len(kernels[at].arguments))
        return [found[at] for at in range(len(kernels))]

    def _module(self, joint: JointSource, before: str, kernels: Sequence[Kernel]) -> _Module:
        try:
            image = built(before + joint.source, self.model.version, joint.options)
            return _Module(self._driver, self._driver.handle("cuModuleLoadData", image + b"\0"))
        except (Refused, CudaError) as fault:
            names = ", ".join(f"`{kernels[at].name}`" for at in list(joint.names)[:_NAMED])
            message = f"the kernels {names} are refused for `{self.model.name}`"
            notes = [first_error(str(fault)), f"{self.model.version}, driver {self.model.driver}"]
            helps = ["another device may do: `polyloom devices` lists them"]
            raise PolyloomError(error("device-build", message, notes=notes, helps=helps)) from fault

    def launch(
        self, kernel: CudaKernel, size: tuple[int, ...], local: tuple[int, ...] | None, *, timed: bool
    ) -> CudaEvent | None:
        """Start so many items in groups of ``local``."""
        assert local is not None
        groups, items = prod(size) // prod(local), prod(local)
        if groups > _MOST_GROUPS:
            message = f"a kernel of {groups} groups is too large for `{self.model.name}`"
            raise PolyloomError(error("device-integer", message, helps=["smaller sizes are needed"]))
        with self._marked(timed) as event:
            function, rest = kernel.function, (0, None, kernel.pointers, None)
            self._driver.call("cuLaunchKernel", function, groups, 1, 1, items, 1, 1, *rest)
        return event

    def wait(self) -> None:
        """Wait until everything is done."""
        self._driver.call("cuCtxSynchronize")


_NAMED = 3
"""Kernels that a message names."""
