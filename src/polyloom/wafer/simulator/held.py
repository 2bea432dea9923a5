"""A simulation that lives in C and that Python holds: given back when closed, and what can be asked of it."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.library import TRACE_EVENT, StatisticsC
from polyloom.wafer.simulator.profile import read_profile
from polyloom.wafer.simulator.result import Counts, SimulationError, Trace

LINKS = ("north", "south", "east", "west", "ramp")
"""The outputs of a router; the ramp leads to its PE."""


class HeldFabric:
    """A ``struct fabric`` of a loaded library, ``width`` x ``height`` PEs, and what it has counted."""

    def __init__(
        self,
        library: ctypes.CDLL,
        handle: int,
        destroy: Callable[[int], None],
        size: tuple[int, int],
        *,
        trace_only: Sequence[tuple[int, int]] | None,
        backwards: bool,
    ) -> None:
        """Hold what ``handle`` points to; ``destroy`` takes it back.

        ``trace_only``: a simulation that records does so for these PEs (x, y) only. ``backwards`` visits the
        PEs of a cycle in the opposite order, which changes nothing (tests use it).
        """
        self.width, self.height = size
        self._library, self._handle = library, handle
        self._release = weakref.finalize(self, destroy, handle)
        if backwards:
            library.fabric_visit_backwards(handle)
        if trace_only is not None:
            xs, ys = (np.array([pe[k] for pe in trace_only], np.int32) for k in (0, 1))
            library.fabric_trace_only(handle, xs.size, xs.ctypes.data, ys.ctypes.data)

    def close(self) -> None:
        """Give the memory of the simulation back; the object cannot be used any more."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def counts(self) -> Counts:
        """Return what has been counted so far."""
        return Counts(**self._counted())

    def _statistics(self) -> StatisticsC:
        found = StatisticsC()
        self._library.fabric_statistics(self._handle, found)
        return found

    def _counted(self) -> dict[str, Any]:
        s = self._statistics()
        busy = np.zeros((self.height, self.width), np.int64)
        self._library.fabric_busy(self._handle, busy.ctypes.data)
        link_use = np.zeros((self.height, self.width, len(LINKS)), np.int64)
        self._library.fabric_link_use(self._handle, link_use.ctypes.data)
        names = ("events", "wavelets", "hops", "simd_operations", "simd_instructions", "scalar_operations")
        most = s.max_link_use / s.cycle if s.cycle else 0.0
        counted = {name: getattr(s, name) for name in names}
        return {"cycles": s.cycle, "max_link_use": most, "busy": busy, "link_use": link_use, **counted}

    def error(self) -> SimulationError | None:
        """Return what stopped the simulation, if anything did."""
        pointer = self._library.fabric_failure(self._handle)
        if not pointer:
            return None
        e = pointer.contents
        return SimulationError(
            kind=e.kind.decode(),
            message=e.message.decode(errors="replace"),
            cycle=e.cycle,
            pe=(e.x, e.y) if e.x >= 0 else None,
            task=e.task.decode() or None,
            place=(e.file.decode(), e.line) if e.file else None,
            details=tuple(e.details.decode(errors="replace").splitlines()),
        )

    def trace(self) -> Trace | None:
        """Return what has happened when, ordered by start; None if it is not recorded."""
        library, handle = self._library, self._handle
        pointer = library.fabric_trace(handle)
        if not pointer:
            return None
        count = library.fabric_trace_count(handle)
        events: npt.NDArray[np.void] = np.frombuffer(
            ctypes.string_at(pointer, count * TRACE_EVENT.itemsize), TRACE_EVENT
        )
        order = np.lexsort((events["lane"], events["kind"], events["pe"], events["start"]))
        names = [library.fabric_name(handle, i) for i in range(library.fabric_name_count(handle))]
        profile = read_profile(library, handle, self._statistics().cycle)
        return Trace(self.width, events[order], tuple(name.decode() for name in names), profile)


def check_rectangle(machine: Machine, width: int, height: int) -> None:
    """Check that a rectangle lies on a machine. Errors: ``ValueError``."""
    if not (1 <= width <= machine.grid[0] and 1 <= height <= machine.grid[1]):
        raise ValueError(f"{width} x {height} PEs on a machine of {machine.grid[0]} x {machine.grid[1]}")
