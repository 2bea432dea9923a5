"""The cost model: how many cycles a compiled layer is likely to take, without running it.

A PE does one thing at a time, so its tasks add up; PEs wait for each other along chains and moves, whose
latency adds up along the way; a stream brings at most one wavelet a cycle. The largest PE decides:

cycles = setup + max(feed, most work) + sum over chains and moves(stages * latency)

The work of one invocation has two parts, what a PE does on its own and what begins with results of others:
chains, moves, and statements behind them. The slowest role at the one holds up the slowest at the other.

Work: each task's dispatch and what its code states (``code``), for as many elements as arrive. Nothing
is enumerated: of a role one PE is looked at, of a loop and of a stream a few iterations. Not in the papers;
validated against the simulator by ``benchmarks/placement_model.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.pe_program.tree import DataTask
from polyloom.wafer.placement.cost.code import Pricer, evenly
from polyloom.wafer.placement.cost.latency import phases_latency, stage_cycles
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram
from polyloom.wafer.roles.activities import Activity, RoleActivities
from polyloom.wafer.roles.adapter_work import AdapterRole
from polyloom.wafer.simd.decision import SimdAnalysis

_DIM = isl.dim_type
_INDEX_SAMPLES = 5


@dataclass(frozen=True)
class Estimate:
    """``setup``, ``work``: of the role with the most; ``feed``: wavelets and way of the slowest stream;
    ``waiting``: latency of chains and moves.
    """

    setup: float
    work: float
    feed: float
    waiting: float

    @property
    def cycles(self) -> float:
        """The estimate."""
        return self.setup + max(self.work, self.feed) + self.waiting


def estimated_cycles(program: WaferProgram) -> float:
    """Return the estimated cycles of one invocation with dense data."""
    return estimate(program).cycles


def estimate(program: WaferProgram) -> Estimate:
    """Return where the cycles of one invocation go."""
    priced = [_role(program, role) for role in program.roles]
    setup, own, together = (max((p[k] for p in priced), default=0.0) for k in range(3))
    return Estimate(setup, own + together, _feed(program), sum(_waiting(program)))


# One role.


def _role(program: WaferProgram, role: RoleProgram) -> tuple[float, float, float]:
    """Return the cycles of ``main`` and of one invocation on one of the role's PEs.

    The latter in two parts: what the PE does on its own, and what begins with results of other PEs.
    """
    machine, code = program.machine, role.code
    waiting = _waiting_tasks(program, role)
    pricer = Pricer(
        machine,
        _coordinates(role),
        {array.name: array for array in code.arrays},
        {f.name: f.offset for f in role.memory},
    )
    setup = pricer.code(code.main)
    own = together = 0.0
    for local in code.local_tasks:
        cycles = pricer.code(local.body) + pricer.once(local.body)
        if local.name in waiting:
            together += cycles
        else:
            own += cycles
    own += sum(_data_task(program, role, pricer, task) for task in code.data_tasks)
    return setup, own, together


def _waiting_tasks(program: WaferProgram, role: RoleProgram) -> set[str]:
    """Return the local tasks that begin with what other PEs send: chains, moves, statements behind them."""
    if isinstance(role.work, AdapterRole):
        return set()
    behind = {r.tensor for r in program.analysis.graph.results if r.reduce or r.moves}
    return {a.name for a in role.work.activities if _waits(a, behind)}


def _waits(activity: Activity, behind: set[str]) -> bool:
    steps = isinstance(activity.work, Chain | Move)
    return steps or (isinstance(activity.work, SimdAnalysis) and bool(activity.reads & behind))


def _coordinates(role: RoleProgram) -> dict[str, int]:
    point = role.role.pes.lexmin().sample_point()
    return {
        name: int(point.get_coordinate_val(_DIM.set, k).to_python()) for k, name in enumerate(PE_PARAMETERS)
    }


def _data_task(program: WaferProgram, role: RoleProgram, pricer: Pricer, task: DataTask) -> float:
    """Return the cycles of all elements and ends of chunk of a sparse stream."""
    machine = program.machine
    handled = _handled(program, role, task)
    if handled is None:
        return 0.0
    stream, prefix = handled
    indices = _arriving(stream, pricer)
    if not indices:
        return 0.0
    chunks = math.prod(1 + index[-1] for index in indices[:-1])
    count = math.prod(len(index) for index in indices)
    sampled = 0.0
    rounds = evenly(_INDEX_SAMPLES, _INDEX_SAMPLES)
    names = [f"{prefix}_{n}" for n in stream.index_names[:-1]] + ["index"]
    for n in rounds:
        for name, index in zip(names, indices, strict=True):
            pricer.environment[name] = index[(len(index) - 1) * n // max(1, len(rounds) - 1)]
        sampled += pricer.code(task.body)
    ends = chunks * (machine.data_task_dispatch + pricer.code(task.end)) + pricer.once(task.end)
    return count * (machine.data_task_dispatch + sampled / len(rounds)) + ends


def _handled(program: WaferProgram, role: RoleProgram, task: DataTask) -> tuple[Stream, str] | None:
    """Return the stream whose elements a task takes, and what the names of its index variables begin with.

    Adapters send the elements on to their row or column; what they keep until it goes on is not priced.
    """
    if isinstance(role.work, RoleActivities):
        return next((here.stream, here.label) for here in role.work.streams if here.queue == task.queue)
    for work in role.work.works:
        if work.adapter.spread and task.queue in work.queues()[0]:
            sent = work.adapter.tensor, work.adapter.side
            streams = program.analysis.graph.streams
            return next((s, task.queue) for s in streams if (s.tensor, s.side) == sent)
    return None


def _arriving(stream: Stream, pricer: Pricer) -> list[range]:
    """Return the values of each index that arrive on the PE; empty where nothing does."""
    indices = stream.indices()
    for name in PE_PARAMETERS:
        at = indices.find_dim_by_name(_DIM.param, name)
        if at >= 0:
            indices = indices.fix_val(_DIM.param, at, isl.Val(pricer.environment[name]))
    steps = (max(1, int(indices.get_stride(k).to_python())) for k in range(indices.dim(_DIM.set)))
    return [range(low, high + 1, step) for (low, high), step in zip(_ranges(indices), steps, strict=False)]


def _ranges(points: isl.Set) -> list[tuple[int, int]]:
    if points.is_empty():
        return []
    dims = range(points.dim(_DIM.set))
    return [(int(points.dim_min_val(k).to_python()), int(points.dim_max_val(k).to_python())) for k in dims]


# Between PEs.


def _feed(program: WaferProgram) -> float:
    """Return the wavelets that the busiest side's first port brings, and the way through the rectangle."""
    by_side: dict[str, float] = {}
    pairs = {group.tensor for group in program.inputs if group.block is not None}
    for stream in program.analysis.graph.streams:
        bounds = _ranges(_first_port(stream.ports).range().unwrap().range())
        count = math.prod(high - low + 1 for low, high in bounds) if bounds else 0
        count = -(-count // 2) if stream.tensor in pairs else count
        by_side[stream.side.value] = by_side.get(stream.side.value, 0.0) + count
    grid, machine = program.analysis.border.given.grid, program.machine
    way = max(grid.width, grid.height) * machine.hop_latency + machine.ramp_latency
    return max(by_side.values(), default=0.0) + (way if by_side else 0)


def _first_port(ports: isl.Map) -> isl.Map:
    """Restrict ``{ x[i] -> [PE -> index] }`` to one port."""
    pairs = ports.range().unwrap()
    first = pairs.domain().lexmin()
    return ports.intersect_range(pairs.intersect_domain(first).wrap())


def _waiting(program: WaferProgram) -> Iterator[float]:
    machine, grid = program.machine, program.analysis.border.given.grid
    staged = {(r.tensor, r.side): r for r in program.analysis.reductions if len(r.chosen.groups) > 1}
    for reduction in staged.values():
        yield _levels_latency(reduction.chosen.groups, machine)
    for result in program.analysis.graph.results:
        for chain in result.chains:
            if (chain.tensor, chain.side.value) not in staged:
                yield _chain_latency(chain, machine)
        for move in result.moves:
            yield _move_latency(move, (grid.width if move.high.step[0] else grid.height) - 1, machine)


def _move_latency(move: Move, stages: int, machine: Machine) -> float:
    """Return the latency of a move along a line of so many stages."""
    if move.phases == 1:
        return stages * stage_cycles(machine) + machine.simd_launch
    return phases_latency(move.phases, machine)


def _levels_latency(groups: Sequence[int], machine: Machine) -> float:
    """Return the latency of chains in groups, one level after the other: PEs are farther apart at each."""
    cycles, apart = 0, 1
    for pes in groups:
        cycles += (pes - 1) * (stage_cycles(machine) + (apart - 1) * machine.hop_latency)
        apart *= pes
    return cycles


def _chain_latency(chain: Chain, machine: Machine) -> float:
    members = chain.members()
    if members.is_empty():
        return 0.0
    axis = 0 if chain.side.step[0] else 1
    bounds = _ranges(members.coalesce())[axis]
    out = machine.ramp_latency + machine.hop_latency if chain.leaves else 0
    return (bounds[1] - bounds[0]) * stage_cycles(machine) + out
