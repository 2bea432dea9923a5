"""OpenCL devices: which there are, what a schedule must know of them, and how one is opened.

No driver is loaded before ``find_devices`` is called. ``DeviceModel`` is plain data: it can be sent to
another process, written down, or made up in a test; the open device itself never leaves its process.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyloom.caches import lend_libraries_a_cache
from polyloom.diagnostics import Diagnostic, PolyloomError, error, remark, render
from polyloom.mdh.device.costs import DeviceCosts, load_costs
from polyloom.mdh.device.drivers import installed_drivers, show_drivers_to_loader
from polyloom.mdh.device.forked import never_release_in_children
from polyloom.mdh.device.pocl import (
    is_repairable,
    keep_threads_apart,
    let_linker_be_found,
    needs_repair,
    processor_flags,
    processor_for,
    repair,
    stored_name,
)

if TYPE_CHECKING:
    import pyopencl as cl


CUDA = "CUDA"
"""The platform of devices that run CUDA C; OpenCL on the same card is another platform."""


class DeviceKind(Enum):
    """What sort of device it is."""

    CPU = "cpu"
    GPU = "gpu"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class UnitLimits:
    """What the groups on a unit of a GPU have together: registers of 4 bytes, items, bytes of memory."""

    registers: int
    items: int
    local_memory: int


@dataclass(frozen=True, kw_only=True)
class DeviceModel:
    """What is known of a device before anything runs on it. Sizes are in bytes.

    ``index``: its number in the list of ``find_devices``, -1: none of OpenCL. ``vector_bytes``: the width of
    its registers that one instruction works on (64: AVX-512); ``lanes``: work-items that run in step (a
    warp), 1 on CPUs.
    ``caches``: from the innermost level outwards, per core on CPUs; empty where the driver does not say.
    ``ways``: lines of a set of each of these; empty where nobody says.
    ``memory_rate``: bytes of memory in a second, 0 where nobody says; ``unit``: limits of a GPU's unit.
    ``matrix_products``: of halves that matrix units of a GPU's unit add up in a cycle, 0 where it has none.
    ``ordinal``: of CUDA, its number in the driver's order.
    ``processor``: LLVM's name for a CPU that PoCL does not know, given to it when it is opened; else empty.
    """

    index: int
    name: str
    platform: str
    vendor: str
    driver: str
    version: str
    kind: DeviceKind
    compute_units: int
    clock_mhz: int
    max_group_size: int
    max_item_sizes: tuple[int, ...]
    local_memory: int
    global_memory: int
    max_allocation: int
    vector_bytes: int
    lanes: int
    cache_line: int
    caches: tuple[int, ...]
    has_double: bool
    has_half: bool
    shares_memory: bool
    build_options: tuple[str, ...] = ()
    processor: str = ""
    ways: tuple[int, ...] = ()
    memory_rate: float = 0.0
    unit: UnitLimits | None = None
    ordinal: int = 0
    matrix_products: int = 0

    def rounding(self, *, strict: bool) -> DeviceModel:
        """Return what a program may use of the device: a ``strict`` one no sums rounded by units."""
        return replace(self, matrix_products=0) if strict and self.matrix_products else self

    def hertz(self, least_mhz: int) -> float:
        """Return the clock, at least so many MHz: drivers report less, or nothing."""
        return max(self.clock_mhz, least_mhz) * 1e6

    def __repr__(self) -> str:
        return f"<DeviceModel {self.index}: {self.id}>"

    @property
    def id(self) -> str:
        """Platform, device and driver in one line: what tuning results are kept under."""
        return " / ".join(filter(None, (self.platform, self.name, self.driver, self.processor)))

    @property
    def costs(self) -> DeviceCosts:
        """What instructions, memory and launches cost on a device of this kind."""
        if self.platform == "native":
            return load_costs("native", self.vendor)
        return load_costs("gpu" if self.kind is DeviceKind.GPU else "cpu")

    @property
    def streams_by_schedule(self) -> bool:
        """Whether schedules say which results bypass the caches; in C that follows from the loops."""
        return self.kind is DeviceKind.CPU and self.platform != "native"

    def json(self) -> dict[str, Any]:
        """Return everything as a JSON document."""
        return {"id": self.id, **asdict(self), "kind": self.kind.value}


@dataclass(frozen=True, eq=False)
class OpenDevice:
    """A device with its context and an in-order queue that records times.

    Only the process that opened it can use it. Errors of its properties elsewhere: ``device-forked``.
    """

    model: DeviceModel
    _context: cl.Context
    _queue: cl.CommandQueue
    _process: int = field(default_factory=os.getpid)

    @property
    def context(self) -> cl.Context:
        """The context of this device alone."""
        refuse_fork(self._process)
        return self._context

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue."""
        refuse_fork(self._process)
        return self._queue


def refuse_fork(process: int, what: str = "OpenCL") -> None:
    """Refuse what another process has opened: the driver's threads are not in a child that was forked."""
    if process != os.getpid():
        message = f"{what} was started before this process was forked, and does not work in it"
        helps = [
            "start processes by `spawn`: `multiprocessing.get_context('spawn')`",
            "or fork before Polyloom is used first",
        ]
        raise PolyloomError(error("device-forked", message, helps=helps))


def find_devices() -> tuple[DeviceModel, ...]:
    """Return all devices: GPUs first, then PoCL, then the rest. Empty where there is none."""
    return tuple(model for model, _ in _found())


def choose_device(wanted: str | None = None, *, driver_patch: bool = True) -> DeviceModel:
    """Return the device that a user means: a number of the list, ``cpu``, ``gpu``, or a part of its name.

    None is the first of the list. ``driver_patch``: whether it may be one whose driver works only with a
    change in its memory (``pocl``). Errors: ``device-none``, ``device-missing``, ``device-unpatched``.
    """
    models = find_devices()
    if not models:
        raise PolyloomError(no_device())
    allowed = [model for model in models if driver_patch or not model.processor]
    fitting = [model for model in allowed if wanted is None or _is_called(model, wanted)]
    if fitting:
        return fitting[0]
    refused = models[0] if wanted is None else _matching(wanted, models)
    raise PolyloomError(_unpatched(refused))


def announce_patch(model: DeviceModel) -> None:
    """Say on stderr that a driver's memory was changed."""
    helps = ["`--no-driver-patch`, or `driver_patch=False` in Python, forbids that"]
    print(render(remark("driver-patch", patch_note(model), helps=helps)), file=sys.stderr, flush=True)


def patch_note(model: DeviceModel) -> str:
    """Return what is done to the driver of a device with a ``processor``."""
    what = "PoCL does not know this processor and would build nothing, or wrong code"
    return f"{what}; in its memory it is called `{model.processor}`"


def _unpatched(model: DeviceModel) -> Diagnostic:
    message = f"`{model.name}` works only with a change in its driver's memory, which is not allowed"
    helps = ["another device may do: `polyloom devices` lists them", "or leave `--no-driver-patch` out"]
    return error("device-unpatched", message, notes=[patch_note(model)], helps=helps)


def _without_linker(model: DeviceModel) -> Diagnostic:
    """PoCL ends the process where it cannot link a kernel."""
    message = f"`{model.name}` of PoCL links its kernels by `ld`, and no such program was found"
    helps = ["install it: it is in the package binutils, and comes with gcc"]
    helps.append("or run C on the processor: `pip install ziglang`, then `--device native`")
    return error("device-linker", message, helps=helps)


def open_device(model: DeviceModel) -> OpenDevice:
    """Open the device that ``model`` describes; one context and queue per process and device.

    Errors: ``device-missing`` where this process does not see it; ``device-broken`` where it cannot be used,
    ``device-linker`` where it cannot build.
    """
    alike = [found.index for found, _ in _found() if found.id == model.id]
    refuse_fork(_loaded[0])
    if not alike:
        raise PolyloomError(_missing(model.id, find_devices()))
    return _opened(model.index if model.index in alike else alike[0])


@cache
def _opened(index: int) -> OpenDevice:
    import pyopencl as cl

    model, device = _found()[index]
    if _is_pocl(device) and shutil.which("ld") is None:
        raise PolyloomError(_without_linker(model))
    if model.processor and repair(device.int_ptr, stored_name(device.version), model.processor):
        announce_patch(model)
    try:
        context = cl.Context([device])
        properties = cl.command_queue_properties.PROFILING_ENABLE
        return OpenDevice(model, context, cl.CommandQueue(context, properties=properties))
    except cl.Error as fault:
        message = f"the OpenCL device `{model.name}` cannot be opened"
        raise PolyloomError(error("device-broken", message, notes=[str(fault)])) from fault


_loaded: list[int] = []
"""The process that has loaded the drivers, once one has."""


@cache
def _found() -> tuple[tuple[DeviceModel, cl.Device], ...]:
    """Ask every driver for its devices, once per process."""
    show_drivers_to_loader()
    lend_libraries_a_cache()
    _loaded.append(os.getpid())
    never_release_in_children()
    keep_threads_apart()
    let_linker_be_found()
    import pyopencl as cl

    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return ()
    devices = [
        device for platform in platforms if "FPGA" not in platform.name for device in _devices(platform)
    ]
    ordered = sorted(devices, key=_preference)
    return tuple((_model(k, device), device) for k, device in enumerate(ordered))


def _devices(platform: cl.Platform) -> list[cl.Device]:
    import pyopencl as cl

    try:
        return [d for d in platform.get_devices() if d.available and d.compiler_available]
    except cl.Error:  # a platform without devices
        return []


def _preference(device: cl.Device) -> tuple[int, bool]:
    kinds = (DeviceKind.GPU, DeviceKind.CPU, DeviceKind.OTHER)
    return kinds.index(_kind(device)), not _is_pocl(device)


def _kind(device: cl.Device) -> DeviceKind:
    import pyopencl as cl

    if device.type & cl.device_type.GPU:
        return DeviceKind.GPU
    return DeviceKind.CPU if device.type & cl.device_type.CPU else DeviceKind.OTHER


def _is_pocl(device: cl.Device) -> bool:
    return device.platform.name == "Portable Computing Language"


def _model(index: int, device: cl.Device) -> DeviceModel:
    kind = _kind(device)
    extensions = device.extensions.split()
    return DeviceModel(
        index=index,
        name=device.name.strip(),
        platform=device.platform.name.strip(),
        vendor=device.vendor.strip(),
        driver=device.driver_version.strip(),
        version=device.version.strip(),
        kind=kind,
        compute_units=device.max_compute_units,
        clock_mhz=device.max_clock_frequency,
        max_group_size=device.max_work_group_size,
        max_item_sizes=tuple(device.max_work_item_sizes),
        local_memory=device.local_mem_size,
        global_memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        vector_bytes=_vector_bytes(device, kind),
        lanes=_lanes(device, kind),
        cache_line=device.global_mem_cacheline_size or 64,
        caches=_caches(device, kind),
        has_double="cl_khr_fp64" in extensions,
        has_half="cl_khr_fp16" in extensions,
        shares_memory=kind is DeviceKind.CPU or bool(device.host_unified_memory),
        build_options=_build_options(device),
        processor=_right_name(device),
        ways=processor_ways() if kind is DeviceKind.CPU else (),
    )


def _right_name(device: cl.Device) -> str:
    """Return the name that a processor gets which PoCL does not know, or takes for another; "" for none."""
    version, flags = device.version, processor_flags()
    wrong = _is_pocl(device) and needs_repair(version, flags)
    return processor_for(flags) if wrong and is_repairable(device.int_ptr, stored_name(version)) else ""


def _vector_bytes(device: cl.Device, kind: DeviceKind) -> int:
    return 16 if kind is DeviceKind.GPU else max(4 * device.native_vector_width_float, 4)


def _lanes(device: cl.Device, kind: DeviceKind) -> int:
    if kind is DeviceKind.CPU:
        return 1
    try:
        return int(device.warp_size_nv)
    except Exception:  # pyopencl raises errors of several types where a driver lacks an extension
        return 32


def _build_options(device: cl.Device) -> tuple[str, ...]:
    """Ask for division and roots that are rounded correctly, where the driver offers that."""
    import pyopencl as cl

    exact = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return ("-cl-fp32-correctly-rounded-divide-sqrt",) if exact else ()


def _caches(device: cl.Device, kind: DeviceKind) -> tuple[int, ...]:
    if kind is DeviceKind.CPU:
        return processor_caches()
    return (device.global_mem_cache_size,) if device.global_mem_cache_size else ()


PROCESSOR_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def processor_caches(folder: Path = PROCESSOR_CACHES) -> tuple[int, ...]:
    """Return the sizes of the data caches that the first core sees, from the innermost outwards."""
    return tuple(_of_levels(folder, "size"))


def processor_ways(folder: Path = PROCESSOR_CACHES) -> tuple[int, ...]:
    """Return how many lines a set of each of these caches has; empty where the system does not say."""
    found = _of_levels(folder, "ways_of_associativity")
    return tuple(found) if all(found) and len(found) == len(processor_caches(folder)) else ()


def _of_levels(folder: Path, name: str) -> list[int]:
    """Return a number of each data cache, from the innermost outwards."""
    found: dict[int, int] = {}
    for entry in sorted(folder.glob("index*")):
        try:
            if (entry / "type").read_text().strip() != "Instruction":
                found[int((entry / "level").read_text())] = _bytes((entry / name).read_text().strip())
        except (OSError, ValueError):
            continue
    return [number for _, number in sorted(found.items())]


def _bytes(text: str) -> int:
    scale = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * scale


def _matching(wanted: str, models: Sequence[DeviceModel]) -> DeviceModel:
    for model in models:
        if _is_called(model, wanted):
            return model
    raise PolyloomError(_missing(wanted, models))


def _is_called(model: DeviceModel, wanted: str) -> bool:
    text = wanted.strip().lower()
    named = bool(text) and text in model.id.lower()
    return text in (str(model.index), model.kind.value) or (named and not text.isdecimal())


def _missing(wanted: str, models: Sequence[DeviceModel]) -> Diagnostic:
    return error(
        "device-missing",
        f"there is no OpenCL device `{wanted}`",
        notes=[f"{m.index}: {m.name} ({m.kind.value}, {m.platform})" for m in models],
        helps=[
            "give a number of this list, `cpu`, `gpu`, or a part of a name",
            "`native` is C on the processor, by a C compiler",
        ],
    )


def no_device() -> Diagnostic:
    """Return the message that there is no device, with the drivers that are installed and show none."""
    drivers = installed_drivers()
    helps = [] if any("PoCL" in driver for driver in drivers) else [_HELP_POCL]
    helps.append("an OpenCL driver of the system is named in the folder /etc/OpenCL/vendors")
    helps.append("without OpenCL: `--device native`, which takes a C compiler (or `pip install ziglang`)")
    return error("device-none", "no OpenCL device was found", notes=drivers, helps=helps)


_HELP_POCL = "on Linux x86-64, `pip install pocl-binary-distribution` brings one that runs on the processor"
