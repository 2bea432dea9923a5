"""What a page says of each kernel of a run: its time, work and traffic, its schedule and its tuning."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.host import HostProgram
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.lowering.flops import operation_count
from polyloom.mdh.lowering.tuning_targets import TuneTarget, tune_targets
from polyloom.mdh.running import RunResult
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.signature import key_of, options_of
from polyloom.mdh.tuning.choose import tuning_results
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter


@dataclass(frozen=True)
class Timing:
    """A schedule that was timed when the kernel was tuned: seconds, and whether that was the careful one."""

    seconds: float
    confirmed: bool


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A node of the program in a run.

    ``seconds``: of all its launches; ``origin``: of its schedule. ``operations`` and ``bytes`` of all
    launches, None where they are not known: arithmetic, and the elements of its arrays, each counted once a
    launch. ``iterators``, ``extents``: its points; ``history``: in the order in which they were timed.
    """

    name: str
    launches: int
    seconds: float
    origin: str
    operations: int | None = None
    bytes: int | None = None
    iterators: tuple[str, ...] = ()
    extents: tuple[int, ...] = ()
    schedule: Schedule | None = None
    history: tuple[Timing, ...] = ()

    @property
    def rate(self) -> float | None:
        """Operations a second."""
        return self.operations / self.seconds if self.operations and self.seconds else None

    @property
    def intensity(self) -> float | None:
        """Operations for each byte of memory."""
        return self.operations / self.bytes if self.operations and self.bytes else None


def kernels_of(
    result: RunResult, program: CompiledProgram, database: Path | None = None
) -> tuple[Kernel, ...]:
    """Return the kernels of a run, the slowest first; ``database``: of tuning, None: the user's own."""
    specialised = specialise(result.program, result.parameters)
    targets = {target.node.name: target for target in tune_targets(specialised)}
    schedules = _schedules(program)
    with tuning_results(database) or nullcontext() as results:
        return tuple(
            _kernel(
                entry,
                specialised,
                targets.get(entry["name"]),
                schedules.get(entry["name"]),
                _history(results, targets.get(entry["name"]), program.device.id),
            )
            for entry in result.kernels()
        )


def _schedules(program: CompiledProgram) -> Mapping[str, Schedule]:
    if not isinstance(program.emitter, TunedEmitter):
        return {}
    return {name: choice.schedule for name, choice in program.emitter.choices.items()}


def _kernel(
    entry: dict[str, Any],
    program: HostProgram,
    target: TuneTarget | None,
    schedule: Schedule | None,
    history: tuple[Timing, ...],
) -> Kernel:
    known = {"name": entry["name"], "launches": entry["launches"], "seconds": entry["seconds"]}
    if target is None:
        return Kernel(**known, origin=entry["schedule"])
    hom = target.launched
    return Kernel(
        **known,
        origin=entry["schedule"],
        operations=target.executions * operation_count(hom),
        bytes=target.executions * _bytes(target),
        iterators=hom.iterators,
        extents=tuple(integer(extent, {}) for extent in hom.extents),
        schedule=schedule,
        history=history,
    )


def _bytes(target: TuneTarget) -> int:
    """Return the bytes of the arrays of one launch, of each at most an element a point."""
    hom = target.launched
    points = prod(integer(extent, {}) for extent in hom.extents)
    used = {view.buffer for view in (*hom.inputs, *hom.outputs)}
    buffers = [buffer for buffer in target.buffers if buffer.name in used]
    return sum(min(prod(shape_of(buffer, {})), points) * buffer.type.size for buffer in buffers)


def _history(results: Database | None, target: TuneTarget | None, device: str) -> tuple[Timing, ...]:
    if results is None or target is None:
        return ()
    key = key_of(target.node, target.buffers, device, options_of(strict=target.strict))
    entries = sorted(results.entries(key), key=lambda entry: entry.at)
    found = ((entry.outcome.seconds, entry.confirmed) for entry in entries)
    return tuple(Timing(seconds, confirmed) for seconds, confirmed in found if seconds is not None)
