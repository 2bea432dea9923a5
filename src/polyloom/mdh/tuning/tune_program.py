"""Tuning of whole host programs on a device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from polyloom.ir.host import HostProgram
from polyloom.ir.integers import integer
from polyloom.ir.transform.narrow_integers import narrow_integers
from polyloom.ir.transform.plainer_reductions import plainer_reductions
from polyloom.mdh.device.devices import DeviceModel
from polyloom.mdh.lowering.flops import operation_count
from polyloom.mdh.lowering.tuning_targets import TuneTarget, tune_targets
from polyloom.mdh.native.device import NATIVE
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.signature import Key, key_of, options_of
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.mdh.tuning.adaptation import seeded_space
from polyloom.mdh.tuning.candidates.trial import Trial
from polyloom.mdh.tuning.cluster.measure import ClusterMeasure
from polyloom.mdh.tuning.database import Database
from polyloom.mdh.tuning.timing import DeviceMeasure
from polyloom.mdh.tuning.tune import Observer, Tuned, TuneOptions, TuningTask, tune
from polyloom.workers.cluster import Cluster

EMITTER = "polyloom.mdh.tuning.schedule_lookup:emit_with_text"
NATIVE_EMITTER = "polyloom.mdh.tuning.schedule_lookup:code_with_text"
LEAST_SHARE = 0.02
"""No md_hom gets less of the budget than this, times its share of their number."""


def tune_programs(
    programs: Sequence[HostProgram],
    device: DeviceModel,
    database: Database,
    options: TuneOptions,
    observer: Observer | None = None,
    cluster: Cluster | None = None,
) -> tuple[Tuned, ...]:
    """Tune every md_hom of programs whose parameters are folded; equal ones once.

    ``cluster``: whose workers time candidates; None: this machine.

    Md_homs without schedules (scans, histograms as plain nests) are left out.

    Errors: those of ``tune.tune``.
    """
    if device.platform == NATIVE:
        programs = [narrow_integers(plainer_reductions(program)) for program in programs]
    found = [target for program in programs for target in tune_targets(program)]
    targets = _distinct(found, device)
    with ExitStack() as stack:
        tasks = [_task(key, target, device, options, stack, cluster) for key, target in targets]
        return tune(_weighted(tasks), database, options, observer)


def _distinct(targets: Sequence[TuneTarget], device: DeviceModel) -> list[tuple[Key, TuneTarget]]:
    found: dict[Key, TuneTarget] = {}
    for target in targets:
        if has_tiles(target.node):
            found.setdefault(
                key_of(target.node, target.buffers, device.id, options_of(strict=target.strict)), target
            )
    return list(found.items())


def _task(
    key: Key,
    target: TuneTarget,
    device: DeviceModel,
    options: TuneOptions,
    stack: ExitStack,
    cluster: Cluster | None,
) -> TuningTask[Schedule]:
    folder = stack.enter_context(TemporaryDirectory(prefix="polyloom-", ignore_cleanup_errors=True))
    space = seeded_space(target.launched, target.program(), device, node=target.node)
    trial = Trial(
        program=target.program(),
        device=device,
        emitter=NATIVE_EMITTER if device.platform == NATIVE else EMITTER,
        folder=str(Path(folder)),
        seed=options.seed,
        jobs=options.jobs,
    )
    measure = _measure(trial, cluster)
    stack.callback(measure.close)
    weight = target.executions * space.predicted(space.default())
    return TuningTask(
        key=key,
        name=target.node.name,
        space=space,
        measure=measure,
        weight=weight,
        operations=operation_count(target.launched),
        sizes=tuple(integer(extent, {}) for extent in target.launched.extents),
    )


def _measure(trial: Trial, cluster: Cluster | None) -> DeviceMeasure[Schedule] | ClusterMeasure[Schedule]:
    if cluster is None:
        return DeviceMeasure(trial, Schedule.text)
    return ClusterMeasure(cluster, trial, Schedule.text)


def _weighted(tasks: Sequence[TuningTask[Schedule]]) -> list[TuningTask[Schedule]]:
    """Return the tasks with shares of the budget, none too small; the heaviest last: it gets the rest."""
    total = sum(task.weight for task in tasks) or 1.0
    least = LEAST_SHARE / max(1, len(tasks))
    shared = [replace(task, weight=max(task.weight / total, least)) for task in tasks]
    return sorted(shared, key=lambda task: task.weight)
