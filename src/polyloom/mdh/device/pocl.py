"""PoCL as it runs best: on processors that its LLVM does not know, its threads each on a core of its own.

The PoCL wheel brings LLVM 14. On a newer processor it asks LLVM for the name, is told ``generic``, and then
every build fails ("unknown target CPU"), although the processor runs code for older ones. There is no setting
for the name, so the one that PoCL has stored is replaced in its device structure: the pointer to the text
``generic`` that stands right behind the pointer to the target triple. The memory is read through
``/proc/self/mem``, where a wrong address is an error and no crash. That happens when the device is opened, is
said on stderr, and can be refused (``--no-driver-patch``). Nothing is touched where PoCL knows the
processor, or where the structure does not look exactly so.

Short kernels end before the system has spread PoCL's threads over the cores: some launches then run on one
core, and take twice as long.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path

_AFFINITY = "POCL_AFFINITY"
_UNKNOWN = b"generic"
_STRUCTURE = 4096
"""How many bytes of the device structure are looked at."""

_AVX2 = 32
"""Bytes of its vectors."""

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


def _cores() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def needs_repair(device_version: str) -> bool:
    """Return whether PoCL found no name for the processor; its version text ends in triple and name."""
    return "PoCL HSTR" in device_version and device_version.rstrip().endswith(
        "x86_64-unknown-linux-gnu-generic"
    )


def widest_vector(device_version: str, bytes_: int) -> int:
    """Return the bytes of the widest vectors that PoCL builds, of the ``bytes_`` that its device states.

    Its LLVM takes a Zen 4 for a Zen 3, which has no AVX-512, and PoCL states vectors of AVX-512 all the same:
    kernels with such vectors end the process ("do not know how to scalarize this operator's operand").
    """
    name = device_version.rstrip().rpartition("-")[2]
    return min(bytes_, _AVX2) if "PoCL HSTR" in device_version and name.startswith("znver") else bytes_


def repair(device_address: int, name: str) -> bool:
    """Give PoCL's device at ``device_address`` another processor name; return whether that was possible."""
    field = _field(device_address)
    if field is None:
        return False
    text = ctypes.create_string_buffer(name.encode())
    _kept.append(text)
    ctypes.c_uint64.from_address(field).value = ctypes.addressof(text)
    return True


def is_repairable(device_address: int) -> bool:
    """Return whether ``repair`` would find what it changes."""
    return _field(device_address) is not None


def _field(device_address: int) -> int | None:
    try:
        with Path("/proc/self/mem").open("rb", buffering=0) as memory:

            def read(address: int, count: int) -> bytes:
                try:
                    memory.seek(address)
                    return memory.read(count)
                except (OSError, OverflowError, ValueError):
                    return b""

            return name_field(device_address, read)
    except OSError:
        return None


def name_field(structure: int, read: ReadMemory) -> int | None:
    """Return the address of the one pointer to ``generic`` that follows a pointer to a target triple."""
    data = read(structure, _STRUCTURE)
    pointers = struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8])
    found = [
        structure + 8 * k
        for k in range(1, len(pointers))
        if _text(pointers[k], read) == _UNKNOWN and b"-linux" in _text(pointers[k - 1], read)
    ]
    return found[0] if len(found) == 1 else None


def _text(address: int, read: ReadMemory) -> bytes:
    plausible = 4096 < address < 1 << 47
    return read(address, 64).partition(b"\0")[0] if plausible else b""
