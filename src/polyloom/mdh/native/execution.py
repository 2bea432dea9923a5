"""Host programs as C functions of this process, run on the arrays of a caller."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np
import numpy.typing as npt

from polyloom.diagnostics import PolyloomError, error
from polyloom.ir.evaluation.host_inputs import shape_of
from polyloom.ir.host import Buffer, HostProgram, MdHom, Role
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.verification.passes import after_pass, at_the_end
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.native.device import NativeDevice
from polyloom.mdh.native.entry import Entry, built
from polyloom.mdh.native.team import Call
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import DeviceArray, is_usable
from polyloom.mdh.runtime.execution import Execution, Timing
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.tree.registers import final

NDArray = npt.NDArray[Any]


Schedules = Callable[[MdHom, HostProgram, DeviceModel], Schedule | None]
"""Chooses the schedule of an md_hom of a program; None: it stays a plain nest."""


def plain(hom: MdHom, program: HostProgram, device: DeviceModel) -> None:
    """Leave every md_hom a plain nest."""


class NativeArray(DeviceArray):
    """An array that stays in memory as programs want it; ``array`` is it."""

    def __init__(self, array: NDArray) -> None:
        self.array = np.array(array, order="C")
        self.shape, self.dtype = array.shape, array.dtype

    def get(self) -> NDArray:
        """Return a copy."""
        return self.array.copy()

    def _overwrite(self, array: NDArray) -> None:
        self.array[...] = array


@dataclass(frozen=True)
class Part:
    """A part of a run that was timed: ``node`` is the whole program."""

    node: str
    seconds: float


@dataclass(frozen=True, eq=False)
class Prepared:
    """A program that was built for its sizes. ``kept``: its local arrays; their memory stays."""

    entry: Entry
    call: Call
    kept: dict[str, NDArray]
    shapes: Mapping[str, tuple[int, ...]]


class NativeExecutable:
    """A host program on the processor: built once for each set of parameter values."""

    def __init__(self, program: HostProgram, device: NativeDevice, schedules: Schedules) -> None:
        self.program, self.device, self.schedules = program, device, schedules
        self.lock = RLock()
        self._prepared: dict[tuple[tuple[str, int], ...], Prepared] = {}

    def forget(self) -> None:
        """Forget what was built."""
        self._prepared.clear()

    def resident(self, array: NDArray) -> NativeArray:
        """Return an array that calls take where it lies."""
        return NativeArray(array)

    def prepared(self, parameters: Mapping[str, int]) -> Prepared:
        """Return the function for these parameters. Errors: ``native-build``, ``native-load``, ``memory``."""
        key = tuple(sorted(parameters.items()))
        with self.lock:
            if key not in self._prepared:
                self._prepared[key] = self._made(parameters)
            return self._prepared[key]

    def _made(self, parameters: Mapping[str, int]) -> Prepared:
        special = after_pass("specialisation", specialise(self.program, parameters))
        at_the_end("specialisation", special)
        lower = lower_scheduled(special, lambda hom: self.schedules(hom, special, self.device.model))
        entry = built(final(program_tree(special, lower)), self.device.compiler, self.device.threads)
        shapes = {b.name: shape_of(b, {}) for b in special.buffers}
        locals_ = [b for b in special.buffers if b.role is Role.LOCAL]
        kept = {b.name: _memory(shapes[b.name], b.type.dtype) for b in locals_}
        call = entry.call([address(kept[b.name]) if b.name in kept else 0 for b in special.buffers])
        return Prepared(entry, call, kept, shapes)

    def run(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once. Arrays that the program writes are changed in place; outputs not given are made.

        Errors: those of ``prepared``; ``memory``.
        """
        begin = time.perf_counter()
        prepared = self.prepared(bound.parameters)
        ready = time.perf_counter()
        arrays = dict(bound.arrays)
        lent: dict[str, NDArray] = {}
        for buffer in self.program.buffers:
            if buffer.role is not Role.LOCAL:
                name = buffer.name
                if name not in arrays:
                    arrays[name] = _memory(prepared.shapes[name], buffer.type.dtype)
                lent[name] = in_place(arrays[name], written=is_written(buffer), rows=bound.beside.get(name))
        with self.lock:
            for k, buffer in enumerate(self.program.buffers):
                if buffer.name in lent:
                    prepared.call.arrays[k] = address(lent[buffer.name])
            started = time.perf_counter()
            prepared.call()
            done = time.perf_counter()
        results = [b.name for b in self.program.buffers if is_written(b)]
        for name in results:
            bring_back(arrays[name], lent[name], bound.beside.get(name))
        end = time.perf_counter()
        seconds = done - started if timed else 0.0
        timing = Timing(ready - begin, end - ready, seconds, 1)
        events = (Part(self.program.name, seconds),) if timed else ()
        return Execution({name: arrays[name] for name in results}, timing, events)


def is_written(buffer: Buffer) -> bool:
    """Return whether a run changes what a caller may see."""
    return buffer.role in (Role.OUTPUT, Role.UPDATED)


def _memory(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray:
    """Return zeros. Errors: ``memory``."""
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError) as fault:
        notes = [str(fault)]
        raise PolyloomError(
            error("memory", "there is not enough memory", notes=notes, helps=["give smaller sizes"])
        ) from fault


def address(array: NDArray | DeviceArray) -> int:
    """Return where an array's elements begin."""
    given = array.array if isinstance(array, NativeArray) else array
    found: int = given.__array_interface__["data"][0]  # type: ignore[union-attr]
    return found


def in_place(array: NDArray | DeviceArray, *, written: bool, rows: slice | None) -> NDArray:
    """Return an array where it lies, or a copy where C cannot take it so."""
    if isinstance(array, NativeArray):
        return array.array
    assert isinstance(array, np.ndarray), "an array of another device"
    return array if is_usable(array, written=written, rows=rows) else np.array(array, order="C")


def bring_back(target: NDArray | DeviceArray, array: NDArray, rows: slice | None) -> None:
    """Bring what a run wrote into a copy into the caller's array."""
    if isinstance(target, NativeArray) or array is target:
        return
    assert isinstance(target, np.ndarray)
    if rows is not None and target.ndim:
        target[rows] = array[rows]
    else:
        target[...] = array
