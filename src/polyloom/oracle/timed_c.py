"""A static control part of a C program as a user's compiler builds it, timed in this process.

Not in the papers.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.caches import temporary_folder
from polyloom.diagnostics import PolyloomError, error
from polyloom.frontends.c.standalone import ENTRY, NotAlone, standalone
from polyloom.oracle.c_reference import CReference
from polyloom.oracle.compiled_c import EXTENTS
from polyloom.programs import ProgramFault, first_error, run_program

NDArray = npt.NDArray[Any]

LONGEST = 300.0
"""Seconds that the compiler may take."""


class _Slot(ctypes.Structure):
    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("elements", ctypes.c_longlong),
        ("extents", ctypes.c_longlong * EXTENTS),
    )


class TimedPart:
    """A part as ``command`` builds it (``gcc -O3``): called with all its arrays, it says how long it took.

    It runs in this process, so what it does to memory outside of its arrays is done to Polyloom: run it once
    as a ``CReference`` before. Errors: ``bench-build``.
    """

    def __init__(self, reference: CReference, command: Sequence[str]) -> None:
        try:
            alone = standalone(reference.part, reference.scop)
        except NotAlone as fault:
            raise _cannot_build(str(fault)) from fault
        self.names = [slot.name for slot in alone.slots]
        self.types = {p.name: p.type.dtype for p in reference.scop.parameters}
        folder = Path(mkdtemp(dir=temporary_folder()))  # a library of a known path would not be loaded again
        text, library = folder / "part.c", folder / "part.so"
        text.write_text(alone.text, encoding="utf-8")
        options = [*reference.options, *(["-Dconst="] if alone.unconst else [])]
        with as_file(files(__package__) / "native" / "timer.c") as timer:
            words = [*command, "-w", *options, "-shared", "-fPIC", str(text), str(timer)]
            _build([*words, "-o", str(library), "-lm"])
        self._library = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
        self._library.polyloom_seconds.restype = ctypes.c_double

    def __call__(self, parameters: Mapping[str, int], arrays: Mapping[str, NDArray]) -> float:
        """Run the part, which changes the arrays in place, and return its seconds."""
        scalars = {name: np.array(parameters[name], dtype) for name, dtype in self.types.items()}
        given = [{**arrays, **scalars}[name] for name in self.names]
        slots = (_Slot * len(given))(*map(_slot, given))
        self._library[ENTRY](slots)
        return float(self._library.polyloom_seconds())


def _slot(array: NDArray) -> _Slot:
    extents = [*array.shape, *([0] * EXTENTS)][:EXTENTS]
    return _Slot(array.ctypes.data, array.size, (ctypes.c_longlong * EXTENTS)(*extents))


def _build(command: Sequence[str]) -> None:
    try:
        done = run_program(command, seconds=LONGEST, temporary=temporary_folder())
    except ProgramFault as fault:
        raise _cannot_build(str(fault)) from fault
    if done.status:
        raise _cannot_build(f"{command[0]} does not build it: {first_error(done.err)}")


def _cannot_build(why: str) -> PolyloomError:
    message = f"the C program cannot be built to be timed: {why}"
    helps = ["name a compiler and its flags with `--cc`, as in `--cc 'gcc -O3 -march=native'`"]
    return PolyloomError(error("bench-build", message, helps=helps))
