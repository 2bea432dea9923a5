"""The C side of the simulator as ctypes: structures as in native/fabric.h, functions of native/api.c."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from polyloom.diagnostics import PolyloomError, error
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.profile import LineUseC, ProfileC

MOST_QUEUES = 16
MOST_INSTRUCTIONS = 256
TRACE_EVENT = np.dtype(
    [
        ("start", np.int64),
        ("duration", np.int64),
        ("pe", np.uint32),
        ("kind", np.uint16),
        ("lane", np.uint16),
        ("name", np.uint32),
        ("line", np.uint32),
    ]
)
"""``pe`` is y * width + x; ``kind`` a ``TraceKind``; ``lane`` a microthread or a side; ``name`` an index of
names; ``line`` a line of the emitted C, or 0."""


class MachineC(Structure):
    """``struct machine``."""

    _fields_ = [
        *(
            (name, c_int32)
            for name in ["operation", "load", "store", "multiplication", "iteration", "branch"]
        ),
        *((name, c_int32) for name in ["simd_launch", "configure", "set_base_address", "set_length"]),
        ("data_task_dispatch", c_int32),
        *(
            (name, c_int32)
            for name in ["local_task_activate", "send", "receive", "hop_latency", "ramp_latency"]
        ),
        *(
            (name, c_int32)
            for name in ["colors", "router_buffer", "microthreads", "microthread_wake", "same_bank_cycles"]
        ),
        *((name, c_int32) for name in ["input_queues", "output_queues"]),
        ("input_lengths", c_int32 * MOST_QUEUES),
        ("output_lengths", c_int32 * MOST_QUEUES),
        ("memory_bytes", c_int32),
        ("widths", c_int32 * MOST_INSTRUCTIONS),
    ]


class FailureC(Structure):
    """``struct failure``."""

    _fields_ = [
        ("cycle", c_int64),
        *((name, c_int32) for name in ("x", "y", "line", "present")),
        ("kind", c_char * 32),
        ("message", c_char * 512),
        ("task", c_char * 96),
        ("file", c_char * 160),
        ("details", c_char * 8192),
    ]


class StatisticsC(Structure):
    """``struct statistics``."""

    _fields_ = [
        *((name, c_int64) for name in ("cycle", "events", "wavelets", "hops", "simd_operations")),
        *((name, c_int64) for name in ("simd_instructions", "scalar_operations", "max_link_use")),
    ]


_PORT = (c_int32, c_int32, c_int32)
_PES = (c_void_p, c_int64, c_void_p, c_void_p)
OF_ALL_FABRICS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "fabric_visit_backwards": (None, (c_void_p,)),
    "fabric_trace_only": (None, _PES),
    "fabric_statistics": (None, (c_void_p, POINTER(StatisticsC))),
    "fabric_cycle": (c_int64, (c_void_p,)),
    "fabric_failure": (POINTER(FailureC), (c_void_p,)),
    "fabric_busy": (None, (c_void_p, c_void_p)),
    "fabric_link_use": (None, (c_void_p, c_void_p)),
    "fabric_trace_count": (c_int64, (c_void_p,)),
    "fabric_trace": (c_void_p, (c_void_p,)),
    "fabric_line_count": (c_int64, (c_void_p,)),
    "fabric_line": (c_void_p, (c_void_p, c_int64)),
    "fabric_line_role": (c_char_p, (c_void_p, c_int64)),
    "fabric_profile": (c_void_p, (c_void_p,)),
    "fabric_name_count": (c_int64, (c_void_p,)),
    "fabric_name": (c_char_p, (c_void_p, c_int64)),
}
"""Functions of lifetime.c and results.c."""

_SIGNATURES = {
    **OF_ALL_FABRICS,
    "fabric_create": (c_void_p, (POINTER(MachineC), c_int32, c_int32, c_int32, c_int32, c_int64)),
    "fabric_destroy": (None, (c_void_p,)),
    "fabric_programs": (c_int64, (c_void_p,)),
    "fabric_use_threads": (None, (c_void_p, c_int32)),
    "fabric_memory_bytes": (None, (*_PES, c_void_p)),
    "fabric_load": (None, (*_PES, c_int64, c_int64, c_void_p, c_void_p, c_int64)),
    "fabric_read": (None, (*_PES, c_int64, c_int64, c_void_p, c_void_p)),
    "fabric_source": (None, (c_void_p, *_PORT, c_int64, c_void_p, c_void_p)),
    "fabric_sink": (None, (c_void_p, *_PORT, c_int64)),
    "fabric_received_count": (c_int64, (c_void_p, *_PORT)),
    "fabric_received": (None, (c_void_p, *_PORT, c_void_p, c_void_p, c_void_p)),
    "fabric_run": (c_int32, (c_void_p, c_double)),
    "fabric_events": (c_int64, (c_void_p,)),
    "fabric_instruction_count": (c_int64, ()),
    "fabric_instruction_name": (c_char_p, (c_int64,)),
    "fabric_struct_bytes": (c_int64, (c_int32,)),
}


@cache
def load_library(path: Path) -> ctypes.CDLL:
    """Load a compiled program and declare its functions; a library stays loaded.

    Errors: ``simulator-load``.
    """
    library = loaded(path, _SIGNATURES)
    _check_structures(library)
    return library


def loaded(path: Path, signatures: Mapping[str, tuple[Any, tuple[Any, ...]]]) -> ctypes.CDLL:
    """Load a library, and declare the results and arguments of its functions. Errors: ``simulator-load``."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as fault:
        message = f"the simulator `{path}`, which was just built, cannot be loaded"
        helps = ["name a folder that programs may be run from by the variable XDG_CACHE_HOME"]
        raise PolyloomError(error("simulator-load", message, notes=[str(fault)], helps=helps)) from fault
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _check_structures(library: ctypes.CDLL) -> None:
    kinds = (MachineC, FailureC, StatisticsC, LineUseC, ProfileC)
    sizes = [*(ctypes.sizeof(kind) for kind in kinds), TRACE_EVENT.itemsize]
    native = [library.fabric_struct_bytes(i) for i in range(len(sizes))]
    if sizes != native:
        raise AssertionError(f"structures of C and Python differ in size: {native}, {sizes}")


def machine_structure(library: ctypes.CDLL, machine: Machine) -> MachineC:
    """Return the machine as the C side reads it, with the widths in the order of its instruction table."""
    names = [library.fabric_instruction_name(i).decode() for i in range(library.fabric_instruction_count())]
    widths = [machine.simd_width(name) for name in names]
    return MachineC(widths=(c_int32 * MOST_INSTRUCTIONS)(*widths), **machine_fields(machine))


def machine_fields(machine: Machine) -> dict[str, Any]:
    """Return the fields of ``MachineC`` that do not depend on a table of instructions."""
    return {
        "operation": machine.scalar_operation,
        "load": machine.scalar_load,
        "store": machine.scalar_store,
        "multiplication": machine.scalar_multiplication,
        "iteration": machine.loop_iteration,
        "input_queues": len(machine.input_queues),
        "output_queues": len(machine.output_queues),
        "input_lengths": (c_int32 * MOST_QUEUES)(*machine.input_queues),
        "output_lengths": (c_int32 * MOST_QUEUES)(*machine.output_queues),
        **{name: getattr(machine, name) for name in _SAME_NAMES},
    }


_SAME_NAMES = (
    "branch",
    "simd_launch",
    "configure",
    "set_base_address",
    "set_length",
    "data_task_dispatch",
    "local_task_activate",
    "send",
    "receive",
    "hop_latency",
    "ramp_latency",
    "colors",
    "router_buffer",
    "microthreads",
    "microthread_wake",
    "same_bank_cycles",
    "memory_bytes",
)
