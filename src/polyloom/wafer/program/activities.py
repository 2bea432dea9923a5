"""Units: the pieces of an invocation on the PEs of a role, and which must end before which one starts.

All streams, reductions and moves of a layer have one order (``dataflow/communication_order``), in which data
allow them. A unit that may stall its PE (a chain, a move, a dense stream that is received in a loop) waits
for such units before it, so that PEs stall in the same order; with ``CAREFUL`` it waits for every stream
before it as well. Whether what is left can wait in a ring is checked (``deadlock``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from polyloom.wafer.codegen.moves import kinds_on
from polyloom.wafer.codegen.streams import StreamOnRole, store_instruction, streams_on, whole_instruction
from polyloom.wafer.dataflow.communication_order import total_order, unit_key
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.simd.decision import SimdAnalysis

BEGIN = "begin"


class Patience(Enum):
    """What a chain or move waits for before it may stall its PE."""

    EAGER = "eager"
    """The streams that feed its statement, and what may stall before it."""
    CAREFUL = "careful"
    """All streams before it in the common order, too."""


@dataclass(frozen=True, eq=False)
class Unit:
    """A stream, local statement, chain or move. ``needs``: units that end before it starts.

    ``writes``: the tensors that it completes; ``key``: its name among all units of the layer; ``stalls``:
    whether it may hold the PE's main thread.
    """

    name: str
    key: str
    work: StreamOnRole | SimdAnalysis | Chain | Move
    stalls: bool
    needs: tuple[str, ...]
    reads: frozenset[str]
    writes: frozenset[str]


def units_on(builder: RoleBuilder, patience: Patience) -> tuple[Unit, ...]:
    """Return what happens on the role's PEs in one invocation, in an order in which it can happen."""
    found = [_stream_unit(builder, here) for here in streams_on(builder)]
    present = [a for a in builder.analysis.simd if a.task.kind is TaskKind.LOCAL and _runs(builder, a)]
    found += [_local_unit(analysis) for analysis in present]
    for result in builder.analysis.graph.results:
        found += [_step_unit(step) for step in result.steps if _takes_part(builder, step)]
    rule = _Rule(
        total_order(builder.analysis.graph),
        patience,
        bool(builder.analysis.border.adapters),
        builder.analysis.options.machine.microthreads,
    )
    return tuple(_with_needs(unit, found, rule) for unit in found)


def parts_on(builder: RoleBuilder, chain: Chain) -> frozenset[Part]:
    """Return what a role's PEs do with elements of a chain."""
    return frozenset(part for part, pes in chain.busy.items() if builder.role.overlaps(pes))


def _runs(builder: RoleBuilder, analysis: SimdAnalysis) -> bool:
    return builder.role.overlaps(analysis.task.pes)


def _takes_part(builder: RoleBuilder, step: Chain | Move) -> bool:
    if isinstance(step, Move):
        return bool(kinds_on(builder, step))
    return bool(parts_on(builder, step))


def _stream_unit(builder: RoleBuilder, here: StreamOnRole) -> Unit:
    tensor = here.stream.tensor
    reads = {a.tensor for d in here.drives for a in d.task.statement.reads} - {tensor}
    writes = {d.task.statement.write.tensor for d in here.drives}
    if here.store is not None:
        writes.add(tensor)
    key = unit_key(here.stream)
    stalls = not here.stream.sparse and not _beside(builder, here)
    return Unit(f"receive_{here.label}", key, here, stalls, (), frozenset(reads), frozenset(writes))


def _beside(builder: RoleBuilder, here: StreamOnRole) -> bool:
    """Whether one instruction beside the main thread receives a dense stream."""
    scratch = RoleBuilder(builder.analysis, builder.role)
    return bool(store_instruction(scratch, here, "") or whole_instruction(scratch, here, ""))


def _local_unit(analysis: SimdAnalysis) -> Unit:
    statement = analysis.task.statement
    reads = frozenset(access.tensor for access in statement.reads)
    name = f"compute_{statement.name}"
    return Unit(name, name, analysis, False, (), reads, frozenset({statement.write.tensor}))


def _step_unit(chain: Chain | Move) -> Unit:
    if isinstance(chain, Move):
        both = frozenset({chain.tensor})
        return Unit(f"move_{chain.name}", unit_key(chain), chain, True, (), both, both)
    writes = frozenset() if chain.leaves else frozenset({chain.tensor})
    verb = "send" if chain.leaves else chain.verb
    side = f"_{chain.side.value}" if chain.leaves or chain.level else ""
    level = f"_level_{chain.level}" if chain.level else ""
    name = f"{verb}_{chain.tensor}{side}{level}"
    return Unit(name, unit_key(chain), chain, True, (), frozenset({chain.tensor}), writes)


@dataclass(frozen=True)
class _Rule:
    """``order``: of all streams, chains and moves, by their keys; ``in_turn``: adapters send in it."""

    order: Mapping[str, int]
    patience: Patience
    in_turn: bool
    microthreads: int

    def precedes(self, first: Unit, second: Unit) -> bool:
        """Whether a unit must end before another one, though that one does not read what it writes."""
        if first.key not in self.order or second.key not in self.order:
            return False
        if self.order[first.key] > self.order[second.key]:
            return False
        if isinstance(first.work, StreamOnRole) and isinstance(second.work, StreamOnRole):
            return self.in_turn or (first.stalls and second.stalls) or self._is_late(first, second)
        return second.stalls and (first.stalls or self.patience is Patience.CAREFUL)

    def _is_late(self, first: Unit, second: Unit) -> bool:
        return self.patience is Patience.CAREFUL and second.stalls


def _with_needs(unit: Unit, units: Sequence[Unit], rule: _Rule) -> Unit:
    """Add the units that must end before this one starts: what completes what it reads, and the order."""
    late = _microthread_before(unit, units, rule.microthreads)
    needs = [
        other.name
        for other in units
        if other is not unit and (_feeds(other, unit) or rule.precedes(other, unit) or other is late)
    ]
    return replace(unit, needs=(BEGIN, *needs))


def _feeds(first: Unit, second: Unit) -> bool:
    steps = isinstance(first.work, Chain | Move) and isinstance(second.work, Chain | Move)
    return bool(first.writes & second.reads) and not steps


def _microthread_before(unit: Unit, units: Sequence[Unit], microthreads: int) -> Unit | None:
    """Return the dense stream whose end leaves a microthread for this one; None while there are enough."""
    dense = [u for u in units if isinstance(u.work, StreamOnRole) and not u.work.stream.sparse]
    place = next((k for k, other in enumerate(dense) if other is unit), 0)
    return dense[place - microthreads] if place >= microthreads else None
