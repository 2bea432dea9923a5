"""The C side of the simulator of CSL programs as ctypes: functions of native/csl_api.c."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_void_p
from functools import cache
from pathlib import Path

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.library import (
    MOST_INSTRUCTIONS,
    OF_ALL_FABRICS,
    MachineC,
    loaded,
    machine_fields,
)


class GoalC(Structure):
    """``struct csl_goal``."""

    _fields_ = [("kind", c_int32), ("node_or_index", c_int32), ("count", c_int64)]


_PE = (c_void_p, c_int32, c_int32)
_SIGNATURES = {
    **OF_ALL_FABRICS,
    "csl_create": (c_void_p, (POINTER(MachineC), c_int32, c_int32, c_int32, c_int32, c_int32, c_int64)),
    "csl_destroy": (None, (c_void_p,)),
    "csl_loose": (None, (c_void_p,)),
    "csl_program_name": (c_char_p, (c_int64,)),
    "csl_program_bytes": (c_int64, (c_int64,)),
    "csl_function_name": (c_char_p, (c_int64, c_int64)),
    "csl_place": (None, (*_PE, c_int64, c_int32, c_int32)),
    "csl_color": (None, (*_PE, c_int32, c_void_p)),
    "csl_write": (None, (*_PE, c_int64, c_int64, c_char_p, c_char_p)),
    "csl_read": (None, (*_PE, c_int64, c_int64, c_void_p, c_void_p)),
    "csl_inject": (c_int32, (*_PE, c_int32, c_int32, c_int64, c_void_p, c_void_p)),
    "csl_sink": (c_int32, (*_PE, c_int32, c_int32)),
    "csl_sink_count": (c_int64, (c_void_p, c_int32)),
    "csl_take": (None, (c_void_p, c_int32, c_int64, c_void_p, c_void_p, c_void_p)),
    "csl_call": (c_int32, (*_PE, c_char_p, c_int64, c_void_p)),
    "csl_goals": (None, (c_void_p, c_int64, POINTER(GoalC))),
    "csl_run_for": (c_int32, (c_void_p, c_double)),
    "csl_let_pass": (c_int32, (c_void_p, c_int64, c_double)),
    "csl_finish": (None, (c_void_p,)),
    "csl_line_count": (c_int64, (c_void_p,)),
    "csl_line": (c_char_p, (c_void_p, c_int64, POINTER(c_int64), POINTER(c_int32), POINTER(c_int32))),
    "csl_operation_count": (c_int64, ()),
    "csl_operation_name": (c_char_p, (c_int64,)),
}

SAME_WIDTH = {
    **dict.fromkeys(("and16", "or16", "xor16", "fscaleh", "fnormh"), "add16"),
    **dict.fromkeys(("sll16", "slr16", "sar16"), "fmaxs"),
    **dict.fromkeys(("fh2xp16", "xp162fh"), "fmaxh"),
}
"""Operations that the documentation's table of widths puts on a line with another one.

Source: SDK 2.10 documentation, appendix. ``fmaxs`` and ``fmaxh`` stand for 1 on WSE-2, 4 and 8 on WSE-3.
"""


@cache
def load_csl_library(path: Path) -> ctypes.CDLL:
    """Load linked units and declare the simulator's functions; a library stays loaded.

    Errors: ``simulator-load``.
    """
    return loaded(path, _SIGNATURES)


def csl_machine(library: ctypes.CDLL, machine: Machine) -> MachineC:
    """Return the machine as the C side reads it, with the widths of the DSD operations.

    A program may fill all of a PE's memory: how long its code is, nobody knows here.
    """
    names = [library.csl_operation_name(i).decode() for i in range(library.csl_operation_count())]
    widths = [machine.simd_width(SAME_WIDTH.get(name, name)) for name in names]
    fields = machine_fields(machine) | {"memory_bytes": machine.sram_bytes}
    return MachineC(widths=(c_int32 * MOST_INSTRUCTIONS)(*widths), **fields)
