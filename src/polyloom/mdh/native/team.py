"""The team of threads of this process, and calls of functions that it runs together (``team.c``)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from polyloom.c_compilers import CCompiler
from polyloom.diagnostics import PolyloomError, error
from polyloom.mdh.native.build import Unit, shared_object
from polyloom.mdh.print.team import TEAM

MOST_THREADS = 1024


@dataclass(frozen=True, eq=False)
class Team:
    """Threads that run functions together: ``address`` of the C structure, ``run`` of the C function."""

    address: int
    run: Callable[..., Any]


@cache
def team(threads: int, shared: Path) -> Team:
    """Return the team with so many threads; the caller's is one of them. They start with the first run.

    ``shared``: the shared object of its code (``team_library``).
    """
    library = load_library(shared)
    library.new_crew.restype, library.new_crew.argtypes = ctypes.c_void_p, [ctypes.c_int64]
    library.run_together.restype = None
    address = library.new_crew(max(1, min(threads, MOST_THREADS)))
    if not address:
        raise PolyloomError(error("memory", "there is not enough memory", helps=["use fewer threads"]))
    return Team(address, library.run_together)


@cache
def team_library(compiler: CCompiler) -> Path:
    """Return the shared object of ``team.c`` and ``calls.c``. Errors: ``native-build``."""
    texts = tuple((files(__package__) / name).read_text(encoding="utf-8") for name in ("team.c", "calls.c"))
    header = f"#include <stdint.h>\n\n{TEAM}"
    return shared_object(Unit(texts, headers=(("team.h", header),)), compiler)


def borrow_threads(shared: Path, openmp: Path) -> bool:
    """Let all teams of this code run on the threads of an OpenMP runtime; whether there is one.

    Where other code of this process uses the runtime, two teams would take turns on the same cores.
    ``shared``: as for ``team``. ``openmp``: a library that the process has loaded, which is the runtime or
    is linked to it. A child that is forked later has threads of its own.
    """
    names = "GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads"
    try:
        runtime = ctypes.CDLL(str(openmp))
        functions = [ctypes.cast(getattr(runtime, name), ctypes.c_void_p) for name in names]
    except (OSError, AttributeError):
        return False
    library = load_library(shared)
    library.borrow_threads.restype = None
    library.borrow_threads(*functions)
    return True


def load_library(path: Path) -> ctypes.CDLL:
    """Load a shared object that was just built. Errors: ``native-load``."""
    try:
        return ctypes.CDLL(str(path))
    except OSError as fault:
        message = f"the program `{path}`, which was just built, cannot be loaded"
        helps = ["name a folder that programs may be run from by the variable XDG_CACHE_HOME"]
        raise PolyloomError(error("native-load", message, notes=[str(fault)], helps=helps)) from fault


class Call:
    """A call of a C function with arrays and integers that stay; repeated calls allocate nothing.

    ``arrays``: addresses, which may be changed between calls.
    """

    def __init__(self, team: Team, function: int, arrays: Sequence[int], integers: Sequence[int]) -> None:
        self.arrays = (ctypes.c_int64 * max(1, len(arrays)))(*arrays)
        self._integers = (ctypes.c_int64 * max(1, len(integers)))(*integers)
        words = team.address, function, ctypes.addressof(self.arrays), ctypes.addressof(self._integers), 0
        self._words = (ctypes.c_int64 * len(words))(*words)
        self._given = ctypes.c_void_p(ctypes.addressof(self._words))
        self._run = team.run

    def __call__(self) -> None:
        """Run once."""
        self._run(self._given)

    def timed(self, nodes: int) -> list[tuple[float, int]]:
        """Run once a function with marks; return for each node its seconds, and how often it was done."""
        times = (ctypes.c_int64 * (1 + 2 * nodes))()
        self._words[-1] = ctypes.addressof(times)
        self()
        self._words[-1] = 0
        return [(times[1 + 2 * k] * 1e-9, times[2 + 2 * k]) for k in range(nodes)]


def available_threads() -> int:
    """Return how many threads this process may run at a time."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, min(len(os.sched_getaffinity(0)), _quota()))
    return os.cpu_count() or 1


def _quota(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Return the processors that the process's group may use, where that is limited."""
    try:
        quota, period = file.read_text().split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return MOST_THREADS
