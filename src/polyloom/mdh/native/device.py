"""The processor as a device: ``native``, ``native:clang``, ``native:zig``, with a number of threads.

It is what programs run on where nobody names another device and there is a C compiler that works.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from polyloom.c_compilers import CCompiler, c_compiler, c_compilers
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.mdh.cuda.device import CudaDevice, choose_gpu, gpus, open_gpu
from polyloom.mdh.device.devices import (
    CUDA,
    DeviceKind,
    DeviceModel,
    OpenDevice,
    choose_device,
    find_devices,
    no_device,
    open_device,
    processor_caches,
    processor_ways,
)
from polyloom.mdh.device.pocl import processor_flags
from polyloom.mdh.native.build import version_of, works
from polyloom.mdh.native.team import MOST_THREADS, available_threads

NATIVE = "native"


@dataclass(frozen=True, eq=False)
class NativeDevice:
    """A C compiler, and how many threads run what it builds."""

    model: DeviceModel
    compiler: CCompiler

    @property
    def threads(self) -> int:
        """Threads of a program's team, the caller's among them."""
        return self.model.compute_units


VARIABLE = "POLYLOOM_DEVICE"
"""The variable of the environment that names the device where nobody else does."""


def choose(
    wanted: str | None = None, *, driver_patch: bool = True, threads: int | None = None
) -> DeviceModel:
    """Return the device that a user means: ``native``, ``native:clang``, ``cuda``, or one of OpenCL.

    None: what ``POLYLOOM_DEVICE`` names, else ``native`` where a C compiler works, else the first of OpenCL.
    ``threads``: of ``native``; None: as many as this process may run at a time.

    Errors: ``device-none``, ``native-compiler``, ``native-threads``; those of ``choose_gpu``, and of
    ``choose_device``.
    """
    named = (wanted if wanted is not None else os.environ.get(VARIABLE, "")).strip()
    kind, _, name = named.partition(":")
    if kind.lower() == CUDA.lower():
        _refuse_threads(threads, CUDA)
        return choose_gpu(name)
    if kind.lower() == NATIVE:
        compiler = c_compiler(name) if name else next(c_compilers(), None)
        if compiler is None:
            raise PolyloomError(_no_compiler(name))
    else:
        compiler = None if named else next(filter(works, c_compilers()), None)
    if compiler is None:
        return _of_opencl(wanted if wanted is not None else named or None, driver_patch, threads)
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        message = f"a program does not run on {threads} threads"
        raise PolyloomError(error("native-threads", message, helps=[f"from 1 to {MOST_THREADS}"]))
    return _model(compiler, threads or available_threads())


def _of_opencl(wanted: str | None, driver_patch: bool, threads: int | None) -> DeviceModel:
    _refuse_threads(threads, "OpenCL")
    if wanted is None and not find_devices():
        raise PolyloomError(no_device_at_all())
    return choose_device(wanted, driver_patch=driver_patch)


def _refuse_threads(threads: int | None, what: str) -> None:
    if threads is not None:
        helps = ["leave the number of threads out, or `--device native`"]
        raise PolyloomError(error("native-threads", f"{what} chooses its threads", helps=helps))


def all_devices() -> tuple[DeviceModel, ...]:
    """Return what programs can run on: the processor, which is the default, CUDA's GPUs, OpenCL's."""
    native = next(filter(works, c_compilers()), None)
    own = () if native is None else (_model(native, available_threads()),)
    return (*own, *gpus(), *find_devices())


def no_device_at_all() -> Diagnostic:
    """Return the message that there is neither a C compiler nor an OpenCL device."""
    opencl, helps = no_device(), [*_COMPILERS]
    helps += [text for text in opencl.helps if NATIVE not in text]
    return error(
        "device-none",
        "there is no C compiler that works, and no OpenCL device",
        notes=opencl.notes,
        helps=helps,
    )


def opened(model: DeviceModel) -> OpenDevice | CudaDevice | NativeDevice:
    """Return a device to run on. Errors: ``native-compiler``; those of ``open_gpu`` and ``open_device``."""
    if model.platform == CUDA:
        return open_gpu(model)
    if model.platform != NATIVE:
        return open_device(model)
    compiler = c_compiler(model.version)
    if compiler is None:
        raise PolyloomError(_no_compiler(model.version))
    return NativeDevice(model, compiler)


def native_device(wanted: str | None = None, threads: int | None = None) -> NativeDevice | None:
    """Return the processor where ``choose`` takes it, and None where it takes another device.

    Errors: ``device-none``, ``native-compiler``, ``native-threads``.
    """
    named = (wanted if wanted is not None else os.environ.get(VARIABLE, "")).strip()
    if named.partition(":")[0].lower() not in ("", NATIVE):
        return None
    if not named and not any(map(works, c_compilers())):
        return None
    found = opened(choose(wanted, threads=threads))
    return found if isinstance(found, NativeDevice) else None


def restored_device(threads: int | None = None) -> NativeDevice:
    """Return the processor for code that was built already; there need not be a C compiler.

    Errors: ``native-threads``.
    """
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        message = f"a program does not run on {threads} threads"
        raise PolyloomError(error("native-threads", message, helps=[f"from 1 to {MOST_THREADS}"]))
    compiler = next(c_compilers(), CCompiler(("cc",), "no compiler"))
    return NativeDevice(_model(compiler, threads or available_threads()), compiler)


def _no_compiler(name: str) -> Diagnostic:
    message = f"there is no C compiler `{name}`" if name else "no C compiler was found"
    notes = [f"there is {compiler.name}: {' '.join(compiler.command)}" for compiler in c_compilers()]
    helps = [*_COMPILERS, "or run on OpenCL: `--device cpu`, say; `polyloom devices` lists what there is"]
    return error("native-compiler", message, notes=notes, helps=helps)


_COMPILERS = ("install gcc or clang, or `pip install ziglang`",)


@cache
def _model(compiler: CCompiler, threads: int) -> DeviceModel:
    """Return what is known of the processor; ``version`` is the compiler, to be found again."""
    return DeviceModel(
        index=-1,
        name=_said("model name") or platform.processor() or platform.machine(),
        platform=NATIVE,
        vendor=_said("vendor_id"),
        driver=f"{compiler.name} {version_of(compiler)}".strip() + f", {_threads_text(threads)}",
        version=compiler.name if c_compiler(compiler.name) == compiler else compiler.command[0],
        kind=DeviceKind.CPU,
        compute_units=threads,
        clock_mhz=0,
        max_group_size=1,
        max_item_sizes=(1, 1, 1),
        local_memory=2**20,
        global_memory=2**40,
        max_allocation=2**40,
        vector_bytes=_vector_bytes(),
        lanes=1,
        cache_line=64,
        caches=processor_caches(),
        ways=processor_ways(),
        has_double=True,
        has_half=True,
        shares_memory=True,
    )


def _threads_text(threads: int) -> str:
    """Return how many threads there are; a schedule that is best for some is not for others."""
    return "1 thread" if threads == 1 else f"{threads} threads"


def _vector_bytes() -> int:
    flags = processor_flags()
    return 64 if "avx512f" in flags else 32 if "avx2" in flags or "avx" in flags else 16


def _said(what: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return what Linux says of the first processor: its ``model name``, say; empty: nothing."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(what)), "")
