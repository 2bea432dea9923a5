"""The cost model of schedules against the device: expected and measured times, and what its choice loses.

    python benchmarks/schedule_model.py                       ResNet-50 and the workloads of benchmarks/opencl
    python benchmarks/schedule_model.py --every 4 matmul_pp   every fourth kernel of ResNet-50, a workload
    python benchmarks/schedule_model.py --device native       loop programs in C, one thread: LOOPS

For each md_hom: its default schedule, random ones, and small changes of the best of these in the model's
opinion. Printed: how many; Spearman's rank correlation of expected and measured times; how much slower the
default is than the best one measured. Nothing may run beside OpenCL kernels: a busy core doubles their time.
Of C the time is that of the processor, which others change less. md_homs that take less than 20 us are left
out of the last line: of them, PoCL's start is measured.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from random import Random

import click
import loop_programs as loops
import numpy as np
from ranks import rank_correlation
from rich.console import Console
from rich.table import Table

from polyloom.ir.conversion.to_host_program import host_program
from polyloom.ir.evaluation.random_inputs import random_inputs
from polyloom.ir.host import HostProgram, MdHom, Nest
from polyloom.ir.integers import integer
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.compiled import CompiledProgram
from polyloom.mdh.device.devices import DeviceModel, choose_device, open_device
from polyloom.mdh.lowering.launch import Launch
from polyloom.mdh.lowering.lower import emit_md_hom
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.lowering.tiles.pipeline import lower_scheduled
from polyloom.mdh.lowering.tuning_targets import TuneTarget, tune_targets
from polyloom.mdh.native.device import NATIVE, NativeDevice, choose, opened
from polyloom.mdh.native.entry import built
from polyloom.mdh.native.execution import address
from polyloom.mdh.native.team import Call
from polyloom.mdh.runtime.arrays import DeviceArray
from polyloom.mdh.schedule.choice import one_kernel_schedule, preferred_schedule
from polyloom.mdh.schedule.schedules import Schedule
from polyloom.mdh.schedule.search_space import ScheduleSpace, space_of
from polyloom.mdh.schedule.signature import key_of
from polyloom.mdh.schedule.tiling import has_tiles
from polyloom.mdh.tree.registers import final
from polyloom.mdh.tuning.schedule_lookup import TunedEmitter
from polyloom.sources import Reading, load_host_programs, load_model

sys.path.insert(0, str(Path(__file__).parent / "opencl"))
from workloads import WORKLOADS, Workload

ROUNDS, RUNS, SECONDS = 2, 5, 0.02
"""Each schedule is timed in so many rounds, of so many runs and seconds at least; the best run counts."""

MOST_ROUNDS, SETTLED = 16, 0.03
"""Of C: rounds at most; the part by which a round may still find less."""

SHORT = 2e-5
LONGEST = 0.1
"""Schedules that are expected to take longer than so many seconds are not timed."""


LOOPS = ("gemm", "covariance", "trmm", "syrk", "heat-3d", "jacobi-2d", "gesummv", "doitgen")
"""Loop programs in double and float: products, triangles, stencils, sums of rows."""


@dataclass(frozen=True)
class Point:
    """One schedule: seconds expected, seconds measured."""

    expected: float
    measured: float


class _Fixed(TunedEmitter):
    """Emits md_homs under one schedule."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__()
        self.schedule = schedule

    def __call__(self, node: MdHom | Nest, program: HostProgram, device: DeviceModel) -> Launch:
        assert isinstance(node, MdHom)
        return emit_md_hom(node, program, device, self.schedule, one_kernel_schedule)


def targets(chosen: Sequence[str], every: int, device: DeviceModel) -> Iterator[tuple[str, TuneTarget]]:
    """Yield the md_homs, those that differ in names alone once."""
    if device.platform == NATIVE:
        yield from _of_loops(chosen or LOOPS)
        return
    from model_speed import resnet

    found = {}
    if not chosen or every > 1:
        for target in tune_targets(host_program(load_model(resnet(), {}).program)):
            key = key_of(target.node, target.buffers, device.id)
            found.setdefault(key, (f"ResNet-50 {target.node.name}", target))
    yield from list(found.values())[::every]
    for workload in WORKLOADS:
        if workload.name in chosen or not chosen:
            yield from ((workload.title, t) for t in tune_targets(_program(workload)))


def _of_loops(names: Sequence[str]) -> Iterator[tuple[str, TuneTarget]]:
    """Yield the md_hom of each program that has the most points, in both types."""
    for name in names:
        for real in ("double", "float"):
            reading = Reading(function="kernel", defines={"REAL": real})
            program = load_host_programs(loops.source(name), reading)[0].program
            known = specialise(program, loops.sizes(name, "medium"))
            yield f"{name}, {real}", max(tune_targets(known), key=_points)


def _points(target: TuneTarget) -> int:
    return prod(integer(extent, {}) for extent in target.launched.extents)


def _program(workload: Workload) -> HostProgram:
    sizes = {name: str(value) for name, value in workload.sizes.items()}
    reading = Reading(function=workload.kernel, defines=sizes)
    return load_host_programs(workload.source, reading)[0].program


def schedules(space: ScheduleSpace, count: int, rng: Random) -> list[Schedule]:
    """Return the default first, then as many random schedules as changed ones."""
    default = preferred_schedule(space)
    drawn = [space.sample(rng) for _ in range(4 * count)]
    best = sorted(drawn, key=space.predicted)[:4]
    near = [n for each in (default, *best) for n in space.neighbours(each, rng)]
    changed = sorted(near, key=space.predicted)
    return list(dict.fromkeys([default, *drawn[:count], *changed[:count]]))


def points_of(target: TuneTarget, device: DeviceModel, count: int, seed: int) -> list[Point]:
    """Time the schedules of an md_hom, the default first."""
    program = target.program()
    space = space_of(target.launched, program, device)
    if device.platform == NATIVE:
        return _in_c(target, space, opened(device), count, seed)
    opened_device = open_device(device)
    arrays = {n: DeviceArray(opened_device, a) for n, a in random_inputs(program, seed).items()}
    default, *others = schedules(space, count, Random(seed))
    chosen = [default, *(s for s in others if space.predicted(s) < LONGEST)]
    compiled = [CompiledProgram(program, opened_device, _Fixed(s)) for s in chosen]
    best = [float("inf")] * len(chosen)
    for _ in range(ROUNDS):
        best = [min(b, seconds(c, arrays)) for b, c in zip(best, compiled, strict=True)]
    return [Point(space.predicted(s), b) for s, b in zip(chosen, best, strict=True)]


def _in_c(
    target: TuneTarget, space: ScheduleSpace, native: NativeDevice, count: int, seed: int
) -> list[Point]:
    """Time schedules as C on this thread, by the time that the processor spends."""
    program = target.program()
    arrays = random_inputs(program, seed)
    default, *others = schedules(space, count, Random(seed))
    chosen = [default, *(s for s in others if space.predicted(s) < LONGEST)]
    calls = []
    for schedule in chosen:
        lower = lower_scheduled(program, lambda hom, around, found=schedule: found)
        function = final(program_tree(program, lower))
        entry = built(function, native.compiler, 1)
        calls.append(entry.call([address(arrays[p.name]) for p in function.parameters]))
    best = settled([lambda call=call: _spent(call) for call in calls])
    return [Point(space.predicted(s), b) for s, b in zip(chosen, best, strict=True)]


def settled(measures: Sequence[Callable[[], float]]) -> list[float]:
    """Return the least that each measure gives, in rounds in which they take turns.

    After ``ROUNDS`` it goes on while a round finds one that is less by more than ``SETTLED``: then others
    were at work before. What the measures say of each other has no part in when it ends.
    """
    best = [float("inf")] * len(measures)
    for done in range(1, MOST_ROUNDS + 1):
        before, best = best, [min(b, measure()) for b, measure in zip(best, measures, strict=True)]
        if done >= ROUNDS and all(b >= (1 - SETTLED) * a for a, b in zip(before, best, strict=True)):
            break
    return best


def _spent(call: Call) -> float:
    """Return the least time of some runs, the first one not counted."""
    call()
    times: list[float] = []
    while len(times) < RUNS or (sum(times) < SECONDS and len(times) < 100 * RUNS):
        begin = time.thread_time()
        call()
        times.append(time.thread_time() - begin)
    return min(times)


def seconds(compiled: CompiledProgram, arrays: Mapping[str, DeviceArray]) -> float:
    """Return the least time of some runs on the device, the first one not counted."""
    compiled.run(**arrays)
    times: list[float] = []
    while len(times) < RUNS or (sum(times) < SECONDS and len(times) < 100 * RUNS):
        times.append(compiled.run(timed=True, **arrays).timing.device)
    return min(times)


def loss(points: Sequence[Point]) -> float:
    """Return how much slower the default is than the best one."""
    return points[0].measured / min(p.measured for p in points)


@click.command()
@click.option(
    "--schedules", "count", metavar="N", default=12, show_default=True, help="Random ones; as many changed."
)
@click.option("--every", metavar="N", default=1, show_default=True, help="Every Nth kernel of ResNet-50.")
@click.option("--seed", default=0, show_default=True)
@click.option("--device", "wanted", default="cpu", show_default=True)
@click.argument("chosen", nargs=-1)
def main(count: int, every: int, seed: int, wanted: str, chosen: tuple[str, ...]) -> None:
    """Print a table of the md_homs."""
    native = wanted.partition(":")[0] == "native"
    device = choose(wanted, threads=1) if native else choose_device(wanted)
    table = Table(
        "md_hom", "sizes", "schedules", "rank correlation", "default, us", "best, us", "loss", box=None
    )
    correlations, losses = [], []
    for name, target in targets(chosen, every, device):
        if not has_tiles(target.node):
            continue
        points = points_of(target, device, count, seed)
        sizes = " x ".join(str(getattr(n, "value", "?")) for n in target.launched.extents)
        correlation = rank_correlation([p.expected for p in points], [p.measured for p in points])
        if points[0].measured >= SHORT:
            correlations.append(correlation)
            losses.append(loss(points))
        times = [f"{1e6 * t:.4g}" for t in (points[0].measured, min(p.measured for p in points))]
        row = [name, sizes, str(len(points)), f"{correlation:.2f}", *times, f"{loss(points):.2f}"]
        table.add_row(*row)
        click.echo("  ".join(row), err=True)
    Console(width=140).print(table)
    known = [c for c in correlations if not np.isnan(c)]
    click.echo(
        f"{len(losses)} md_homs: rank correlation {np.mean(known):.2f} (mean), {min(known):.2f} at least; "
        f"loss {np.exp(np.mean(np.log(losses))):.2f} (geometric mean), {max(losses):.2f} at most"
    )


if __name__ == "__main__":
    main()
