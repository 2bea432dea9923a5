"""PoCL as it runs best: on processors that its LLVM does not know, its threads each on a core of its own.

The PoCL wheel brings LLVM 14. On a newer processor it asks LLVM for the name, is told ``generic``, and then
every build fails ("unknown target CPU"), although the processor runs code for older ones. A Zen 4 is told to
be a Zen 3, which has no AVX-512, while PoCL links its library for AVX-512: vectors are passed differently on
the two sides, results are wrong or LLVM ends the process. There is no setting for the name, so the one that
PoCL has stored is replaced in its device structure: the pointer to that text which stands right behind the
pointer to the target triple. The memory is read through
``/proc/self/mem``, where a wrong address is an error and no crash. That happens when the device is opened, is
said on stderr, and can be refused (``--no-driver-patch``). Nothing is touched where PoCL names the
processor rightly, or where the structure does not look exactly so.

PoCL links each kernel by ``ld``, which it looks for in ``PATH``, and ends the process where it finds none.

Short kernels end before the system has spread PoCL's threads over the cores: some launches then run on one
core, and take twice as long.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path

from polyloom.programs import find_program

_AFFINITY = "POCL_AFFINITY"
_UNKNOWN = "generic"
_VERSION = "x86_64-unknown-linux-gnu-"
_STRUCTURE = 4096
"""How many bytes of the device structure are looked at."""

_PROCESSORS = (
    (
        "skylake-avx512",
        "avx512f avx512bw avx512cd avx512dq avx512vl avx2 fma bmi1 bmi2 abm movbe f16c adx clflushopt clwb",
    ),
    ("haswell", "avx2 fma bmi1 bmi2 abm movbe f16c"),
    ("ivybridge", "avx f16c popcnt pclmulqdq"),
    ("sandybridge", "avx popcnt pclmulqdq"),
    ("penryn", "sse4_1 ssse3"),
    ("core2", "ssse3"),
    ("x86-64", ""),
)
"""LLVM's name and the processor flags that it stands for, best first: one for each of PoCL's libraries."""

_kept: list[ctypes.Array[ctypes.c_char]] = []
"""Names that PoCL points to; they live as long as the process."""

ReadMemory = Callable[[int, int], bytes]


def processor_for(flags: frozenset[str]) -> str:
    """Return the best processor name of LLVM 14 whose instructions this processor has."""
    return next(name for name, needed in _PROCESSORS if flags.issuperset(needed.split()))


def processor_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> frozenset[str]:
    """Return what the processor can do, in the kernel's words; empty where that cannot be read."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return frozenset(flags.split())


def keep_threads_apart(cores: frozenset[int] | None = None) -> None:
    """Ask PoCL, before it is loaded, to bind each of its threads to a core, unless the user has decided.

    ``cores``: those that this process may use; None: as the system says. PoCL counts cores from 0, so that
    nothing is asked of it where some are not for this process.
    """
    allowed = _cores() if cores is None else cores
    if allowed == frozenset(range(os.cpu_count() or 0)):
        os.environ.setdefault(_AFFINITY, "1")


def let_linker_be_found() -> None:
    """Add the system's own folders to ``PATH`` where it is not set, or has no ``ld``."""
    if find_program("ld") is None or "PATH" not in os.environ:
        given = os.environ.get("PATH", "")
        os.environ["PATH"] = os.pathsep.join(filter(None, (given, os.defpath)))


def _cores() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def stored_name(device_version: str) -> str:
    """Return what PoCL calls the processor, the end of its version text; "" for other drivers."""
    _, is_so, name = device_version.rstrip().rpartition(_VERSION)
    return name if is_so and "PoCL HSTR" in device_version else ""


def needs_repair(device_version: str, flags: frozenset[str]) -> bool:
    """Return whether PoCL's name for a processor with these ``flags`` is none, or one without AVX-512."""
    name = stored_name(device_version)
    return name == _UNKNOWN or (name.startswith("znver") and processor_for(flags) == _PROCESSORS[0][0])


def repair(device_address: int, old: str, new: str) -> bool:
    """Give PoCL's device at ``device_address`` another processor name; return whether that was possible."""
    field = _field(device_address, old)
    if field is None:
        return False
    text = ctypes.create_string_buffer(new.encode())
    _kept.append(text)
    ctypes.c_uint64.from_address(field).value = ctypes.addressof(text)
    return True


def is_repairable(device_address: int, old: str) -> bool:
    """Return whether ``repair`` would find what it changes."""
    return _field(device_address, old) is not None


def _field(device_address: int, old: str) -> int | None:
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:

            def read(address: int, count: int) -> bytes:
                try:
                    memory.seek(address)
                    return memory.read(count)
                except (OSError, OverflowError, ValueError):
                    return b""

            return name_field(device_address, old, read)
    except OSError:
        return None


def name_field(structure: int, name: str, read: ReadMemory) -> int | None:
    """Return the address of the one pointer to a text ``name`` that follows a pointer to a target triple."""
    data = read(structure, _STRUCTURE)
    pointers = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
    found = [
        structure + 8 * k
        for k in range(1, len(pointers))
        if _text(pointers[k], read) == name.encode() and b"-linux" in _text(pointers[k - 1], read)
    ]
    return found[0] if len(found) == 1 else None


def _text(address: int, read: ReadMemory) -> bytes:
    plausible = 4096 < address < 1 << 47
    return read(address, 64).partition(b"\0")[0] if plausible else b""
