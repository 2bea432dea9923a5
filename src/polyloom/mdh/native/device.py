"""The processor as a device: ``native``, ``native:clang``, ``native:zig``, with a number of threads."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from polyloom.c_compilers import CCompiler, c_compiler, c_compilers
from polyloom.diagnostics import Diagnostic, PolyloomError, error
from polyloom.mdh.device.devices import (
    DeviceKind,
    DeviceModel,
    OpenDevice,
    choose_device,
    open_device,
    processor_caches,
)
from polyloom.mdh.device.pocl import processor_flags
from polyloom.mdh.native.build import version_of
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


def choose(wanted: str | None, *, driver_patch: bool = True, threads: int | None = None) -> DeviceModel:
    """Return the device that a user means: ``native``, with a compiler or the first one, or one of OpenCL.

    ``threads``: of ``native``; None: as many as this process may run at a time.

    Errors: ``native-compiler``, ``native-threads``; those of ``choose_device``.
    """
    kind, _, name = (wanted or "").strip().partition(":")
    if kind.lower() != NATIVE:
        if threads is not None:
            helps = ["leave the number of threads out, or `--device native`"]
            raise PolyloomError(error("native-threads", "OpenCL chooses its threads", helps=helps))
        return choose_device(wanted, driver_patch=driver_patch)
    compiler = c_compiler(name) if name else next(c_compilers(), None)
    if compiler is None:
        raise PolyloomError(_no_compiler(name))
    if threads is not None and not 1 <= threads <= MOST_THREADS:
        message = f"a program does not run on {threads} threads"
        raise PolyloomError(error("native-threads", message, helps=[f"from 1 to {MOST_THREADS}"]))
    return _model(compiler, threads or available_threads())


def opened(model: DeviceModel) -> OpenDevice | NativeDevice:
    """Return a device to run on. Errors: ``native-compiler``; those of ``open_device``."""
    if model.platform != NATIVE:
        return open_device(model)
    compiler = c_compiler(model.version)
    if compiler is None:
        raise PolyloomError(_no_compiler(model.version))
    return NativeDevice(model, compiler)


def _no_compiler(name: str) -> Diagnostic:
    message = f"there is no C compiler `{name}`" if name else "no C compiler was found"
    notes = [f"there is {compiler.name}: {' '.join(compiler.command)}" for compiler in c_compilers()]
    helps = ["install gcc or clang, or `pip install ziglang`", "or run on OpenCL: without `--device native`"]
    return error("native-compiler", message, notes=notes, helps=helps)


@cache
def _model(compiler: CCompiler, threads: int) -> DeviceModel:
    """Return what is known of the processor; ``version`` is the compiler, to be found again."""
    return DeviceModel(
        index=-1,
        name=_processor(),
        platform=NATIVE,
        vendor="",
        driver=f"{compiler.name} {version_of(compiler)}".strip(),
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
        has_double=True,
        has_half=True,
        shares_memory=True,
        follows_guards=True,
    )


def _vector_bytes() -> int:
    flags = processor_flags()
    return 64 if "avx512f" in flags else 32 if "avx2" in flags or "avx" in flags else 16


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return what the processor is called."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
