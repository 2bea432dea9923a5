"""The cost model: how many cycles a compiled layer is likely to take, without running it.

A PE does one thing at a time, so its tasks add up; PEs wait for each other along chains and moves, whose
latency adds up along the way; a stream brings at most one wavelet a cycle. The largest PE decides:

cycles = setup + max(feed, most work) + sum over chains and moves(stages * latency)

Adapters delay what comes through them, and take what leaves by them (``adapters``); where elements are passed
on along a line, PEs wait for all that those before them take at a time (``passing``); where they send in
turn, for those before them (``in_turn``).

The work of one invocation has two parts, what a PE does on its own and what begins with results of others:
chains, moves, and statements behind them. The slowest role at the one holds up the slowest at the other.

Work: each task's dispatch and what its code states (``code``), for as many elements as arrive. Nothing
is enumerated: of a role one PE is looked at, of a loop and of a stream a few iterations. Not in the papers;
validated against the simulator by ``benchmarks/placement_model.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce

import islpy as isl

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.machine.model import Machine
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.pe_program.tree import DataTask
from polyloom.wafer.placement.cost.adapters import Arrival, adapter_cycles
from polyloom.wafer.placement.cost.code import HALF_WAVELET, Pricer
from polyloom.wafer.placement.cost.in_turn import (
    ends_of_line,
    filtered,
    least_turns_cycles,
    point_set,
    turning_ends,
    turns_cycles,
)
from polyloom.wafer.placement.cost.latency import phases_latency, stage_cycles
from polyloom.wafer.placement.cost.passing import line_of, passing_cycles
from polyloom.wafer.placement.cost.role import data_task_cycles, ends_of, on_pe, pricer_at, ranges_of
from polyloom.wafer.program.resources import check_queues
from polyloom.wafer.program.wafer_program import RoleProgram, WaferProgram
from polyloom.wafer.roles.activities import Activity, RoleActivities
from polyloom.wafer.roles.adapter_work import AdapterRole
from polyloom.wafer.roles.work import StreamOnRole
from polyloom.wafer.simd.decision import SimdAnalysis

_DIM = isl.dim_type
_INDEX_SAMPLES = 5


@dataclass(frozen=True)
class Estimate:
    """``setup``, ``work``: of the role with the most; ``feed``: wavelets and way of the slowest stream;
    ``waiting``: latency of chains and moves; ``shared``: wavelets of the busiest link that a stream and
    results go along, with the latency; 0 without one.
    """

    setup: float
    work: float
    feed: float
    waiting: float
    shared: float = 0.0

    @property
    def cycles(self) -> float:
        """The estimate."""
        return self.setup + max(max(self.work, self.feed) + self.waiting, self.shared)


def estimated_cycles(program: WaferProgram) -> float:
    """Return the estimated cycles of one invocation with dense data."""
    return estimate(program).cycles


def estimate(program: WaferProgram) -> Estimate:
    """Return where the cycles of one invocation go."""
    priced = [_role(program.analysis, program.machine, role) for role in program.roles]
    setup, together = max(p.setup for p in priced), max(p.together for p in priced)
    border = adapter_cycles(program)
    alone = max(p.until(border.arrivals) for p in priced)
    work = alone - setup + together + border.leaving
    latency = sum(_latencies(program))
    shared = _shared(program)
    return Estimate(
        setup=setup,
        work=work,
        feed=_feed(program),
        waiting=latency + sum(_turning(program)),
        shared=shared and shared + latency,
    )


class TooSlow(Exception):  # never leaves the cost model's callers
    """A layer takes more ``cycles`` than its caller wants to know of, at least so many."""

    def __init__(self, cycles: float) -> None:
        super().__init__(f"at least {cycles:.0f} cycles")
        self.cycles = cycles


@dataclass
class Watch:
    """What the roles of a layer take at least, as their programs are made: no more than ``limit`` lets go on.

    ``alone``, ``together``: the most of a role so far, as in ``_Priced``; ``passing``: what moves wait for on
    these roles (``passing``); ``cycles``: what the layer takes at least. Whether elements travel in pairs is
    known when all roles are: here they do wherever that saves cycles. ``turning``: what chains wait for whose
    PEs send in turn, once the roles at both ends of a line, ``ends``, have a program.
    """

    analysis: LayerAnalysis
    machine: Machine
    limit: float
    alone: float = 0.0
    together: float = 0.0
    cycles: float = 0.0
    passing: dict[Move, float] = field(default_factory=dict)
    turning: dict[Chain, float] = field(default_factory=dict)
    ends: list[RoleProgram] = field(default_factory=list)

    def urgent(self, role: RoleActivities) -> bool:
        """Whether a role is on a line whose PEs wait for each other: that may be most of all cycles."""
        return role.role.overlaps(self._slow)

    def see(self, role: RoleProgram) -> None:
        """Look at the next role. Raises TooSlow where the layer takes more cycles than the limit.

        Errors: ``wafer-queues`` where the machine has fewer queues than the role takes.
        """
        check_queues(self.analysis.mapping, self.machine, role)
        pairs = self.machine.wavelet_elements > 1
        found = _role(self.analysis, self.machine, role, pairs=pairs)
        self.alone = max(self.alone, found.setup + found.own)
        self.together = max(self.together, found.together)
        for move in self._moves:
            passing = passing_cycles(self.machine, move, [role], pairs=pairs)
            self.passing[move] = self.passing.get(move, 0.0) + passing
        if isinstance(role.work, RoleActivities):
            self._turn(role)
        moving = sum(_move_latency(self.analysis, self.machine, m, self.passing[m]) for m in self._moves)
        self.cycles = self.alone + self.together + self._waiting + moving + sum(self.turning.values())
        if self.cycles > self.limit:
            raise TooSlow(self.cycles)

    @cached_property
    def _waiting(self) -> float:
        return sum(_least_waiting(self.analysis, self.machine))

    def _turn(self, role: RoleProgram) -> None:
        """Look at which lines have roles at both ends now, whose PEs wait for each other's turn."""
        for chain, ends in self._turning.items():
            if chain not in self.turning and role.role.overlaps(ends):
                self.ends.append(role)
                if ends.is_subset(reduce(isl.Set.union, (end.role.pes for end in self.ends))):
                    self.turning[chain] = least_turns_cycles(self.machine, chain, self.ends)

    @cached_property
    def _turning(self) -> dict[Chain, isl.Set]:
        chains = (chain for result in self.analysis.graph.results for chain in result.chains)
        return {chain: turning_ends(chain) for chain in chains if chain.turns is not None}

    @cached_property
    def _slow(self) -> isl.Set:
        """PEs that wait for each other: of each line that of the first source, and what sends in turn."""
        nobody = isl.Set("{ PE[x, y] : false }")
        return reduce(isl.Set.union, (*map(line_of, self._moves), *self._turning.values()), nobody)

    @cached_property
    def _moves(self) -> tuple[Move, ...]:
        return tuple(move for result in self.analysis.graph.results for move in result.moves)


# One role.


@dataclass(frozen=True)
class _Priced:
    """One PE of a role in one invocation; ``setup``: its ``main``.

    ``own``: what it does by itself, of that ``behind`` of streams, by tensor, with the statements that run
    when they are there; ``together``: what begins with results of other PEs. Adapters have none of these.
    """

    setup: float
    own: float = 0.0
    together: float = 0.0
    behind: Mapping[str, float] = field(default_factory=dict)

    def until(self, arrivals: Mapping[str, Arrival]) -> float:
        """Return when the PE is done by itself, streams of adapters arriving so late."""
        late = [arrivals[t].until(cycles) for t, cycles in self.behind.items() if t in arrivals]
        return max([self.setup + self.own, *late])


def _role(analysis: LayerAnalysis, machine: Machine, role: RoleProgram, *, pairs: bool = False) -> _Priced:
    pe, _ = ends_of(role)
    pricer = replace(pricer_at(machine, role, pe), pairs=pairs)
    setup = pricer.code(role.code.main)
    if isinstance(role.work, AdapterRole):
        return _Priced(setup)
    streams = {f"receive_{here.label}": here.stream.tensor for here in role.work.streams}
    statements = {a.name for a in role.work.activities if isinstance(a.work, SimdAnalysis)}
    waiting = _waiting_tasks(analysis, role.work)
    awaited = {
        f"receive_{s.label}": filtered(machine, role, s)
        / (2 if pairs and s.stream.type.size == HALF_WAVELET else 1)
        for s in role.work.streams
    }
    own = together = computing = 0.0
    behind = dict.fromkeys(streams.values(), 0.0)
    for local in role.code.local_tasks:
        cycles = pricer.code(local.body) + pricer.once(local.body)
        if local.name in waiting:
            together += cycles
            continue
        cycles += awaited.get(local.name, 0.0)
        own += cycles
        computing += cycles if local.name in statements else 0.0
        if local.name in streams:
            behind[streams[local.name]] += cycles
    for task in role.code.data_tasks:
        here = next((here for here in role.work.streams if here.queue == task.queue), None)
        if here is not None:
            cycles = _data_task(here, pricer, task, pe)
            own += cycles
            behind[here.stream.tensor] += cycles
    return _Priced(setup, own, together, {tensor: c + computing for tensor, c in behind.items()})


def _waiting_tasks(analysis: LayerAnalysis, role: RoleActivities) -> set[str]:
    """Return the local tasks that begin with what other PEs send: chains, moves, statements behind them."""
    behind = {r.tensor for r in analysis.graph.results if r.reduce or r.moves}
    return {a.name for a in role.activities if _waits(a, behind)}


def _waits(activity: Activity, behind: set[str]) -> bool:
    steps = isinstance(activity.work, Chain | Move)
    return steps or (isinstance(activity.work, SimdAnalysis) and bool(activity.reads & behind))


def _data_task(here: StreamOnRole, pricer: Pricer, task: DataTask, pe: tuple[int, int]) -> float:
    """Return the cycles of all elements and ends of chunk of a sparse stream."""
    names = [f"{here.label}_{name}" for name in here.stream.index_names[:-1]]
    return data_task_cycles(pricer, task, names, ranges_of(on_pe(here.stream.indices(), pe)))


# Between PEs.


def _feed(program: WaferProgram) -> float:
    """Return the wavelets that the busiest side's first port brings, and the way through the rectangle."""
    by_side = _wavelets_by_side(program, program.analysis.graph.streams)
    grid, machine = program.analysis.border.given.grid, program.machine
    way = max(grid.width, grid.height) * machine.hop_latency + machine.ramp_latency
    return max(by_side.values(), default=0.0) + (way if by_side else 0)


def _wavelets_by_side(program: WaferProgram, streams: Iterable[Stream]) -> dict[Side, float]:
    """Return the wavelets that the first ports of the sides bring of some streams together."""
    by_side: dict[Side, float] = {}
    pairs = {group.tensor for group in program.inputs if group.block is not None}
    for stream in streams:
        bounds = ranges_of(_first_port(stream.ports).range().unwrap().range())
        count = math.prod(r[-1] - r[0] + 1 for r in bounds) if bounds else 0
        count = -(-count // 2) if stream.tensor in pairs else count
        by_side[stream.side] = by_side.get(stream.side, 0.0) + count
    return by_side


def _shared(program: WaferProgram) -> float:
    """Return the wavelets of the busiest link that brings a PE streams and results.

    Streams go on to the last PE of a line, past all before it that keep a part of them.
    """
    chains = (chain for result in program.analysis.graph.results for chain in result.chains)
    return max((_along(program, chain) for chain in chains), default=0.0)


def _along(program: WaferProgram, chain: Chain) -> float:
    """Return the wavelets of a chain and of streams that come to its last PE; 0 where no stream does."""
    _, near = ends_of_line(chain)
    streams = [s for s in program.analysis.graph.streams if s.side is chain.side.opposite]
    beside = _wavelets_by_side(program, [s for s in streams if point_set(near).is_subset(s.receivers)])
    if not beside:
        return 0.0
    ranges = (ranges_of(on_pe(chain.positions(part), near)) for part in (Part.COMBINE, Part.FORWARD))
    coming = sum(math.prod(map(len, each)) for each in ranges if each)
    pairs = any(group.tensor == chain.tensor and group.block is not None for group in program.outputs)
    return coming and coming / (2 if pairs else 1) + sum(beside.values())


def _first_port(ports: isl.Map) -> isl.Map:
    """Restrict ``{ x[i] -> [PE -> index] }`` to one port."""
    pairs = ports.range().unwrap()
    first = pairs.domain().lexmin()
    return ports.intersect_range(pairs.intersect_domain(first).wrap())


def _turning(program: WaferProgram) -> Iterator[float]:
    """Yield what PEs wait for that send in turn."""
    for result in program.analysis.graph.results:
        for chain in result.chains:
            if chain.turns is not None:
                yield turns_cycles(program, chain)


def _latencies(program: WaferProgram) -> Iterator[float]:
    """Yield the latency of chains whose PEs do not send in turn, and of moves."""
    yield from _least_waiting(program.analysis, program.machine)
    for result in program.analysis.graph.results:
        for move in result.moves:
            passing = passing_cycles(program.machine, move, program.roles)
            yield _move_latency(program.analysis, program.machine, move, passing)


def _least_waiting(analysis: LayerAnalysis, machine: Machine) -> Iterator[float]:
    """Yield what of ``_latencies`` is known before there are programs of roles, but moves."""
    staged = {(r.tensor, r.side): r for r in analysis.reductions if len(r.chosen.groups) > 1}
    for reduction in staged.values():
        yield _levels_latency(reduction.chosen.groups, machine)
    for result in analysis.graph.results:
        for chain in result.chains:
            if chain.turns is None and (chain.tensor, chain.side.value) not in staged:
                yield _chain_latency(chain, machine)


def _move_latency(analysis: LayerAnalysis, machine: Machine, move: Move, passing: float) -> float:
    """Return the latency of a move along a line, on which PEs wait so long for what others pass on."""
    grid = analysis.border.given.grid
    stages = (grid.width if move.high.step[0] else grid.height) - 1
    if move.link:
        return stages * machine.hop_latency + stage_cycles(machine) + machine.simd_launch
    if move.phases == 1:
        return max(stages * stage_cycles(machine) + machine.simd_launch, passing)
    return phases_latency(move.phases, machine) + (move.phases + 1) / 4 * passing


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
    low, high = integer_bounds(members.coalesce())[axis]
    out = machine.ramp_latency + machine.hop_latency if chain.leaves else 0
    return (high - low) * stage_cycles(machine) + out
