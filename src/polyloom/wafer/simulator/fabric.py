"""A simulated wafer: a compiled program on a machine, with what is fed to it and what comes out."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.library import TRACE_EVENT, StatisticsC, load_library, machine_structure
from polyloom.wafer.simulator.profile import read_profile
from polyloom.wafer.simulator.result import Result, SimulationError, Trace

Side = Literal["north", "south", "east", "west"]
SIDES: tuple[Side, ...] = ("north", "south", "east", "west")
LINKS = (*SIDES, "ramp")
"""The outputs of a router; the ramp leads to its PE."""
SLICE_SECONDS = 0.2
GOES_ON = 0

PES_FOR_THREADS = 4096
"""Smaller fabrics have too little to do in a cycle to share it."""

Integers = npt.ArrayLike
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Progress = Callable[[int, int], None]


class Fabric:
    """One simulation. Load memories, declare sources and sinks, then ``run`` once.

    x grows to the east, y to the south. A port is a side of the rectangle and a position on it: x for
    ``north`` and ``south``, y for ``east`` and ``west``.
    """

    def __init__(
        self,
        binary: Path,
        machine: Machine,
        width: int,
        height: int,
        invocations: int = 1,
        *,
        trace: bool = False,
        trace_only: Sequence[tuple[int, int]] | None = None,
        max_cycles: int | None = None,
        threads: int | None = None,
        backwards: bool = False,
    ) -> None:
        """Lay the program out on ``width`` x ``height`` PEs; mistakes of the layout show in the result of
        ``run``.

        ``trace`` records what happens when, on all PEs or on those of ``trace_only`` (x, y).
        ``max_cycles`` ends a simulation that goes on for longer, with an error.
        ``threads`` share the rows; bits and cycles are the same for any number (None: one, and as many as
        there are processors from ``PES_FOR_THREADS`` PEs on).
        ``backwards`` visits the PEs of a cycle in the opposite order, which changes nothing (tests use it).
        Errors: ``ValueError`` for a rectangle that is empty or larger than the machine.
        """
        if not (1 <= width <= machine.grid[0] and 1 <= height <= machine.grid[1]):
            raise ValueError(f"{width} x {height} PEs on a machine of {machine.grid[0]} x {machine.grid[1]}")
        self.width, self.height = width, height
        self._library = load_library(binary)
        limit = -1 if max_cycles is None else max_cycles
        description = machine_structure(self._library, machine)
        self._handle = self._library.fabric_create(description, width, height, invocations, int(trace), limit)
        self._release = weakref.finalize(self, self._library.fabric_destroy, self._handle)
        self._ran = False
        count = _threads(width * height) if threads is None else threads
        self._library.fabric_use_threads(self._handle, count)
        if trace_only is not None:
            xs, ys = [x for x, _ in trace_only], [y for _, y in trace_only]
            self._library.fabric_trace_only(*self._pes(*self._coordinates(xs, ys)))
        if backwards:
            self._library.fabric_visit_backwards(self._handle)

    def close(self) -> None:
        """Give the memory of the simulation back; the object cannot be used any more."""
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ---- Memory

    def memory_bytes(self, xs: Integers, ys: Integers) -> npt.NDArray[np.int64]:
        """Return how many bytes of data the PEs at these coordinates have, int64[n]; 0 for one without a
        program.
        """
        x, y = self._coordinates(xs, ys)
        sizes = np.zeros(x.size, np.int64)
        self._library.fabric_memory_bytes(*self._pes(x, y), sizes.ctypes.data)
        return sizes

    def load(
        self, xs: Integers, ys: Integers, offset: int, data: Bytes, mask: Flags, element_size: int
    ) -> None:
        """Write initial memory: ``data`` uint8[n, nbytes] at ``offset`` bytes, where ``mask`` bool[n,
        elements] says so.

        What is written counts as initialised. Errors: ``ValueError`` if shapes or addresses do not fit.
        """
        x, y = self._coordinates(xs, ys)
        count = data.shape[1] if data.ndim == 2 else -1
        elements = count // element_size
        if data.shape != (x.size, elements * element_size) or mask.shape != (x.size, elements):
            raise ValueError(
                f"data {data.shape}, mask {mask.shape}: {x.size} PEs, elements of {element_size} bytes"
            )
        self._check_range(x, y, offset, count)
        given, chosen = np.ascontiguousarray(data, np.uint8), np.ascontiguousarray(mask, np.uint8)
        self._library.fabric_load(
            *self._pes(x, y), offset, count, given.ctypes.data, chosen.ctypes.data, element_size
        )  # fmt: skip

    def read(self, xs: Integers, ys: Integers, offset: int, nbytes: int) -> tuple[Bytes, Flags]:
        """Return memory, uint8[n, nbytes], and which 16-bit words are initialised, bool[n, nbytes // 2].

        Errors: ``ValueError`` for addresses outside of a PE's memory, or odd ones.
        """
        x, y = self._coordinates(xs, ys)
        self._check_range(x, y, offset, nbytes)
        data, known = np.zeros((x.size, nbytes), np.uint8), np.zeros((x.size, nbytes // 2), np.uint8)
        self._library.fabric_read(*self._pes(x, y), offset, nbytes, data.ctypes.data, known.ctypes.data)
        return data, known.astype(np.bool_)

    def _pes(self, x: npt.NDArray[np.int32], y: npt.NDArray[np.int32]) -> tuple[Any, ...]:
        return self._handle, x.size, x.ctypes.data, y.ctypes.data

    def _coordinates(self, xs: Integers, ys: Integers) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        x, y = np.ascontiguousarray(xs, np.int32).ravel(), np.ascontiguousarray(ys, np.int32).ravel()
        if x.size != y.size:
            raise ValueError(f"{x.size} x and {y.size} y coordinates")
        return x, y

    def _check_range(
        self, x: npt.NDArray[np.int32], y: npt.NDArray[np.int32], offset: int, nbytes: int
    ) -> None:
        if offset % 2 or nbytes % 2:
            raise ValueError("memory is read and written in words of 16 bits")
        sizes = self.memory_bytes(x, y)
        if offset < 0 or nbytes < 0 or bool((offset + nbytes > sizes).any()):
            raise ValueError(f"bytes {offset} to {offset + nbytes} lie outside of a PE's memory")

    # ---- Ports

    def source(self, side: Side, position: int, color: int, payload: Words, control: Flags) -> None:
        """Feed wavelets into the rectangle on a color: ``payload`` uint32[n], ``control`` bool[n] for ends of
        chunk.
        """
        words, flags = np.ascontiguousarray(payload, np.uint32), np.ascontiguousarray(control, np.uint8)
        if words.ndim != 1 or words.shape != flags.shape:
            raise ValueError(f"payload {words.shape} and control {flags.shape}")
        port = self._port(side, position, color)
        self._library.fabric_source(self._handle, *port, words.size, words.ctypes.data, flags.ctypes.data)

    def sink(self, side: Side, position: int, color: int, expected: int) -> None:
        """Take what leaves the rectangle there; another number of wavelets than ``expected`` is an error.

        A negative number: so many ends of chunk, and any number of elements between them.
        """
        self._library.fabric_sink(self._handle, *self._port(side, position, color), expected)

    def received(self, side: Side, position: int, color: int) -> tuple[Words, Flags, npt.NDArray[np.int64]]:
        """Return what a sink got: payload uint32[n], control bool[n], cycle of arrival int64[n]."""
        port = self._port(side, position, color)
        count = self._library.fabric_received_count(self._handle, *port)
        if count < 0:
            raise ValueError(f"no sink {side} {position} on color {color}")
        payload, control, cycle = (
            np.zeros(count, np.uint32),
            np.zeros(count, np.uint8),
            np.zeros(count, np.int64),
        )
        arrays = (payload.ctypes.data, control.ctypes.data, cycle.ctypes.data)
        self._library.fabric_received(self._handle, *port, *arrays)
        return payload, control.astype(np.bool_), cycle

    def _port(self, side: Side, position: int, color: int) -> tuple[int, int, int]:
        extent = self.width if side in ("north", "south") else self.height
        if not 0 <= position < extent:
            raise ValueError(f"position {position} on a side of {extent} PEs")
        return SIDES.index(side), position, color

    # ---- Running

    def run(self, progress: Progress | None = None) -> Result:
        """Simulate to the end; calls ``progress`` with events and cycle about every 0.2 s. An error is in the
        result.
        """
        if self._ran:
            raise ValueError("a fabric runs once")
        self._ran = True
        while self._library.fabric_run(self._handle, SLICE_SECONDS) == GOES_ON:
            if progress is not None:
                progress(self._library.fabric_events(self._handle), self._library.fabric_cycle(self._handle))
        return self._result()

    def _result(self) -> Result:
        s = StatisticsC()
        self._library.fabric_statistics(self._handle, s)
        busy = np.zeros((self.height, self.width), np.int64)
        self._library.fabric_busy(self._handle, busy.ctypes.data)
        link_use = np.zeros((self.height, self.width, len(LINKS)), np.int64)
        self._library.fabric_link_use(self._handle, link_use.ctypes.data)
        return Result(
            cycles=s.cycle,
            events=s.events,
            wavelets=s.wavelets,
            hops=s.hops,
            max_link_use=s.max_link_use / s.cycle if s.cycle else 0.0,
            simd_operations=s.simd_operations,
            simd_instructions=s.simd_instructions,
            scalar_operations=s.scalar_operations,
            busy=busy,
            link_use=link_use,
            error=self._error(),
            trace=self._trace(s.cycle),
        )

    def _trace(self, cycles: int) -> Trace | None:
        trace = read_trace(self._library, self._handle, self.width)
        if trace is None:
            return None
        return replace(trace, profile=read_profile(self._library, self._handle, cycles))

    def _error(self) -> SimulationError | None:
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


def read_trace(library: ctypes.CDLL, handle: int, width: int) -> Trace | None:
    """Return what a simulation has recorded, ordered by start; None if it does not record."""
    pointer = library.fabric_trace(handle)
    count = library.fabric_trace_count(handle)
    if not pointer:
        return None
    events = np.frombuffer(ctypes.string_at(pointer, count * TRACE_EVENT.itemsize), TRACE_EVENT)
    order = np.lexsort((events["lane"], events["kind"], events["pe"], events["start"]))
    name_count = library.fabric_name_count(handle)
    names = [library.fabric_name(handle, i) for i in range(name_count)]
    return Trace(width, events[order], tuple(name.decode() for name in names))


def _threads(pes: int) -> int:
    return len(os.sched_getaffinity(0)) if pes >= PES_FOR_THREADS and hasattr(os, "sched_getaffinity") else 1
