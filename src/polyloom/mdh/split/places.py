"""Places that run rows of a program: devices of this process, and workers, each with its own processor."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polyloom.ir.host import HostProgram, Role
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.native.device import NativeDevice, choose, opened
from polyloom.mdh.native.execution import NativeExecutable
from polyloom.mdh.runtime.arguments import Bound
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.runtime.execution import Executable
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.workers.crew import Crew

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class PartRun:
    """A program for some rows, and what it takes; ``constants`` are the same for all rows and calls.

    ``key``: the same for the same program.
    """

    key: str
    program: HostProgram
    arrays: Arrays
    constants: Arrays


class Place(Protocol):
    """Those who run rows, one or several, each as fast as the others."""

    @property
    def names(self) -> Sequence[str]:
        """Those who run rows here."""

    def run(self, parts: Sequence[PartRun]) -> list[dict[str, npt.NDArray[Any]]]:
        """Run one part on each of the first of them; return what the parts wrote."""


class OneDevice:
    """A device of this process; of ``Place``."""

    def __init__(self, model: DeviceModel, database: Path | None = None) -> None:
        self.names = (model.id,)
        self._opened = opened(model)
        self._database = database
        self._made: dict[str, tuple[NativeExecutable | Executable, dict[str, DeviceArray]]] = {}

    def run(self, parts: Sequence[PartRun]) -> list[dict[str, npt.NDArray[Any]]]:
        """Run parts one after another."""
        return [self._run(part) for part in parts]

    def _run(self, part: PartRun) -> dict[str, npt.NDArray[Any]]:
        if part.key not in self._made:
            self._made[part.key] = self._make(part)
        executable, constants = self._made[part.key]
        found = executable.run(Bound({}, {**constants, **part.arrays})).arrays
        return {name: a.get() if isinstance(a, DeviceArray) else a for name, a in found.items()}

    def _make(self, part: PartRun) -> tuple[NativeExecutable | Executable, dict[str, DeviceArray]]:
        emitter, device = TunedEmitter(self._database), self._opened
        made: NativeExecutable | Executable
        if isinstance(device, NativeDevice):
            made = NativeExecutable(part.program, device, emitter.schedule, list(part.constants))
        else:
            made = Executable(part.program, device, emitter)
        return made, {name: made.resident(array) for name, array in part.constants.items()}


class Workers:
    """The workers of a crew, each on its processor; of ``Place``."""

    def __init__(self, crew: Crew) -> None:
        self.names = tuple(f"worker {k + 1}" for k in range(crew.size))
        self._crew = crew
        self._keys: dict[int, tuple[Arrays, str]] = {}

    def run(self, parts: Sequence[PartRun]) -> list[dict[str, npt.NDArray[Any]]]:
        """Run parts at a time. A worker that is lost costs its part a second run, on another one.

        Constants travel to a worker that does not have them yet. Errors: ``worker-lost``, ``cluster-lost``.
        """
        tasks = [_Task(self._key(part.constants), _without_constants(part)) for part in parts]
        found = self._crew.each(run_here, tasks)
        lacking = [k for k, result in enumerate(found) if result is None]
        again = self._crew.each(run_here, [_Task(tasks[k].key, parts[k]) for k in lacking])
        for k, result in zip(lacking, again, strict=True):
            found[k] = result
        return [result for result in found if result is not None]

    def _key(self, constants: Arrays) -> str:
        known = self._keys.get(id(constants))
        if known is None or known[0] is not constants:
            digest = hashlib.sha256(pickle.dumps({n: np.ascontiguousarray(a) for n, a in constants.items()}))
            known = self._keys[id(constants)] = constants, digest.hexdigest() if constants else ""
        return known[1]


@dataclass(frozen=True, eq=False)
class _Task:
    """``key``: of the constants, empty where there are none."""

    key: str
    part: PartRun


_CONSTANTS: dict[str, Arrays] = {"": {}}
"""Of a worker: what it was given before, by keys."""

_OWN: dict[str, OneDevice] = {}


def run_here(task: _Task) -> dict[str, npt.NDArray[Any]] | None:
    """Run a part on this worker's processor; None where the constants are lacking."""
    if task.part.constants:
        _CONSTANTS[task.key] = task.part.constants
    if task.key not in _CONSTANTS:
        return None
    if not _OWN:
        _OWN[""] = OneDevice(choose("native"))
    part = replace(task.part, constants=_CONSTANTS[task.key])
    return _OWN[""].run([part])[0]


def _without_constants(part: PartRun) -> PartRun:
    """Return a part without its constants."""
    return replace(part, constants={})


def written(program: HostProgram) -> tuple[str, ...]:
    """Return the arrays that a program changes for its caller."""
    return tuple(b.name for b in program.buffers if b.role in (Role.OUTPUT, Role.UPDATED))
