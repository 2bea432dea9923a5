"""What a page says of each kernel of a run: its time, work and traffic, its schedule and its tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from polyloom.ir.evaluation.inputs import shape_of
from polyloom.ir.integers import integer
from polyloom.ir.transform.fuse_maps import combined_dimensions
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

    Several md_homs that are one loop are one: ``iterators``, ``extents``, ``schedule`` and ``history`` are
    those of the reduction among them, whose loops carry the others out.

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
            _kernel(entry, _parts(entry["name"], targets), schedules, results, program.device.id)
            for entry in result.kernels()
        )


def _parts(name: str, targets: Mapping[str, TuneTarget]) -> list[TuneTarget]:
    """Return the md_homs of a kernel, that first whose loops are the kernel's."""
    found = [targets[part] for part in name.split(", ") if part in targets]
    return sorted(found, key=lambda target: not combined_dimensions(target.launched))


def _schedules(program: CompiledProgram) -> Mapping[str, Schedule]:
    if not isinstance(program.emitter, TunedEmitter):
        return {}
    return {name: choice.schedule for name, choice in program.emitter.choices.items()}


def _kernel(
    entry: dict[str, Any],
    parts: Sequence[TuneTarget],
    schedules: Mapping[str, Schedule],
    results: Database | None,
    device: str,
) -> Kernel:
    known = {"name": entry["name"], "launches": entry["launches"], "seconds": entry["seconds"]}
    if not parts:
        return Kernel(**known, origin=entry["schedule"])
    hom = parts[0].launched
    return Kernel(
        **known,
        origin=entry["schedule"],
        operations=sum(part.executions * operation_count(part.launched) for part in parts),
        bytes=max(part.executions for part in parts) * _bytes(parts),
        iterators=hom.iterators,
        extents=tuple(integer(extent, {}) for extent in hom.extents),
        schedule=schedules.get(hom.name),
        history=_history(results, parts[0], device),
    )


def _bytes(parts: Sequence[TuneTarget]) -> int:
    """Return the bytes of the arrays of one launch, each counted once, of each at most an element a point."""
    sizes: dict[str, int] = {}
    for part in parts:
        hom = part.launched
        points = prod(integer(extent, {}) for extent in hom.extents)
        used = {view.buffer for view in (*hom.inputs, *hom.outputs)}
        for buffer in (b for b in part.buffers if b.name in used):
            size = min(prod(shape_of(buffer, {})), points) * buffer.type.size
            sizes[buffer.name] = max(size, sizes.get(buffer.name, 0))
    return sum(sizes.values())


def _history(results: Database | None, target: TuneTarget, device: str) -> tuple[Timing, ...]:
    if results is None:
        return ()
    key = key_of(target.node, target.buffers, device, options_of(strict=target.strict))
    entries = sorted(results.entries(key), key=lambda entry: entry.at)
    found = ((entry.outcome.seconds, entry.confirmed) for entry in entries)
    return tuple(Timing(seconds, confirmed) for seconds, confirmed in found if seconds is not None)
