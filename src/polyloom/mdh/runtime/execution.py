"""Running a prepared program on the arrays of a caller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import Buffer, HostProgram, MdHom, Nest, Role
from polyloom.mdh.device.devices import DeviceModel, OpenDevice
from polyloom.mdh.lowering.kernels.nodes import nest_kernels
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.sequential_nest import plain_nest
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import Borrowed, DeviceArray
from polyloom.mdh.runtime.driver import Driver, Memory
from polyloom.mdh.runtime.host_program import Emitter, Prepared, prepare
from polyloom.mdh.runtime.opencl import driver_of

NDArray = npt.NDArray[Any]


@dataclass(frozen=True)
class Timing:
    """Where the time of a run went, in seconds.

    ``prepare``: emitting and building, 0 where that was done before; ``total``: the run with all copies;
    ``device``: the sum over launches of the time between their start and end, 0 where it was not measured.
    """

    prepare: float
    total: float
    device: float
    launches: int


class Timed(Protocol):
    """A part of a run that was timed: a node of the program, and its seconds on the device."""

    @property
    def node(self) -> str:
        """What it carries out."""

    @property
    def seconds(self) -> float:
        """How long all its runs took."""

    @property
    def runs(self) -> int:
        """How often it was done."""


@dataclass(frozen=True, eq=False)
class Execution:
    """What a run left in every buffer that the program wrote, and how long it took."""

    arrays: dict[str, NDArray | DeviceArray]
    timing: Timing
    events: tuple[Timed, ...]


def plain_launch(node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
    """Return kernels without any decision about a schedule: an ``Emitter``."""
    return nest_kernels(node if isinstance(node, Nest) else plain_nest(node), program, device)


class Executable:
    """A host program on a device; kernels are made once for each set of parameter values."""

    def __init__(
        self,
        program: HostProgram,
        device: OpenDevice | Driver,
        emit: Emitter = plain_launch,
        *,
        fuse: bool = True,
    ) -> None:
        self.program, self.device, self.emit, self.fuse = program, device, emit, fuse
        self._driver = driver_of(device)
        self._prepared: dict[tuple[tuple[str, int], ...], Prepared] = {}
        self._scratch: dict[str, Memory] = {}

    def forget(self) -> None:
        """Forget the kernels that were made."""
        self._prepared.clear()

    def prepared(self, parameters: Mapping[str, int]) -> Prepared:
        """Return the kernels for these parameters. Errors: those of ``prepare``."""
        key = tuple(sorted(parameters.items()))
        if key not in self._prepared:
            made = prepare(self.program, parameters, self._driver, self.emit, fuse=self.fuse)
            self._prepared[key] = made
        return self._prepared[key]

    def resident(self, array: NDArray) -> DeviceArray:
        """Return a copy of an array on the device."""
        return DeviceArray(self._driver, array)

    def run(self, bound: Bound, *, timed: bool = False) -> Execution:
        """Run once. Arrays that the program writes are changed in place; outputs not given are made.

        Errors: ``device-build``, ``device-resources``, ``device-failure``.
        """
        begin = time.perf_counter()
        prepared = self.prepared(bound.parameters)
        ready = time.perf_counter()
        arrays = dict(bound.arrays)
        with self._driver.errors():
            for buffer in self.program.buffers:
                if buffer.role is Role.OUTPUT and buffer.name not in arrays:
                    arrays[buffer.name] = np.zeros(prepared.shape(buffer.name), buffer.type.dtype)
            lent = {
                n: self._lent(n, a, bound.beside.get(n))
                for n, a in arrays.items()
                if isinstance(a, np.ndarray)
            }
            memory = {b.name: self._memory(b, arrays, lent, prepared) for b in self.program.buffers}
            events = prepared.run(memory, timed=timed)
            for borrowed in lent.values():
                borrowed.finish()
        end = time.perf_counter()
        seconds = sum(event.seconds for event in events)
        timing = Timing(ready - begin, end - ready, seconds, prepared.state.launches)
        written = {b.name: arrays[b.name] for b in self.program.buffers if _written(b)}
        return Execution(written, timing, tuple(events))

    def _lent(self, name: str, array: NDArray, rows: slice | None) -> Borrowed:
        return Borrowed(self._driver, array, written=_written(self.program.buffer(name)), rows=rows)

    def _memory(
        self,
        buffer: Buffer,
        arrays: Mapping[str, NDArray | DeviceArray],
        lent: Mapping[str, Borrowed],
        prepared: Prepared,
    ) -> Memory:
        """Return the device memory of a buffer; that of local buffers is kept from run to run."""
        if buffer.name in lent:
            return lent[buffer.name].buffer
        given = arrays.get(buffer.name)
        if isinstance(given, DeviceArray):
            return given.buffer
        size = prepared.sizes[buffer.name]
        kept = self._scratch.get(buffer.name)
        if kept is None or kept.size < size:
            kept = self._scratch[buffer.name] = self._driver.allocate(size)
        return kept


def _written(buffer: Buffer) -> bool:
    return buffer.role in (Role.OUTPUT, Role.UPDATED)
