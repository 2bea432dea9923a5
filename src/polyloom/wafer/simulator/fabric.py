"""A simulated wafer: a compiled program on a machine, with what is fed to it and what comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from polyloom.wafer.machine.model import Machine
from polyloom.wafer.simulator.held import HeldFabric, check_rectangle
from polyloom.wafer.simulator.library import load_library, machine_structure
from polyloom.wafer.simulator.result import Result

Side = Literal["north", "south", "east", "west"]
SIDES: tuple[Side, ...] = ("north", "south", "east", "west")
SLICE_SECONDS = 0.2
GOES_ON = 0

PROGRAMS_FOR_THREADS = 4096
"""Fewer PEs with a program have too little to do in a cycle: threads would wait for each other."""

Integers = npt.ArrayLike
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Progress = Callable[[int, int], None]


class Fabric(HeldFabric):
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
        there are processors from ``PROGRAMS_FOR_THREADS`` PEs that have a program on).
        ``backwards`` visits the PEs of a cycle in the opposite order, which changes nothing (tests use it).
        Errors: ``ValueError`` for a rectangle that is empty or larger than the machine.
        """
        check_rectangle(machine, width, height)
        library = load_library(binary)
        limit = -1 if max_cycles is None else max_cycles
        description = machine_structure(library, machine)
        handle = library.fabric_create(description, width, height, invocations, int(trace), limit)
        super().__init__(
            *(library, handle, library.fabric_destroy, (width, height)),
            trace_only=trace_only,
            backwards=backwards,
        )
        self._ran = False
        self.threads = _threads(library.fabric_programs(handle)) if threads is None else threads
        library.fabric_use_threads(handle, self.threads)

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
        return Result(**self._counted(), error=self.error(), trace=self.trace())


def _threads(programs: int) -> int:
    if programs < PROGRAMS_FOR_THREADS or not hasattr(os, "sched_getaffinity"):
        return 1
    return len(os.sched_getaffinity(0))
