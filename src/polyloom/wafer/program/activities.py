"""Activities: the parts of an invocation on the PEs of a role, and which must end before which one starts.

All streams, reductions and moves of a layer have one order (``dataflow/communication_order``), in which data
allow them. An activity that may stall its PE (a chain, a move, a dense stream that is received in a loop)
waits for such activities before it, so that PEs stall in the same order; by the conservative policy it waits
for every stream before it as well. Whether what is left can wait in a ring is checked (``deadlock``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.communication_order import activity_key, total_order
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.roles.work import StreamOnRole, kinds_on, parts_on, streams_on
from polyloom.wafer.simd.decision import SimdAnalysis

BEGIN = "begin"


class SynchronisationPolicy(Enum):
    """What a chain or move waits for before it may stall its PE; the value is its name in JSON."""

    EAGER = "eager"
    """The streams that feed its statement, and what may stall before it."""
    CONSERVATIVE = "careful"
    """All streams before it in the common order, too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Activity:
    """A stream, local statement, chain or move on the PEs of a role.

    ``name``: of its task; ``key``: its name among all activities of the layer; ``stalls``: whether it may
    hold the PE's main thread; ``writes``: the tensors that it completes.
    """

    name: str
    key: str
    work: StreamOnRole | SimdAnalysis | Chain | Move
    stalls: bool
    reads: frozenset[str]
    writes: frozenset[str]


@dataclass(frozen=True, eq=False)
class RoleActivities:
    """What happens on the PEs of a role in one invocation, in an order in which it can happen."""

    role: Role
    activities: tuple[Activity, ...]

    @property
    def streams(self) -> tuple[StreamOnRole, ...]:
        """The streams that the role receives."""
        return tuple(a.work for a in self.activities if isinstance(a.work, StreamOnRole))


def activities_on(analysis: LayerAnalysis, role: Role) -> RoleActivities:
    """Return what happens on the role's PEs."""
    found = [_of_stream(here) for here in streams_on(analysis, role)]
    local = (a for a in analysis.simd if a.task.kind is TaskKind.LOCAL)
    found += [_of_statement(a) for a in local if role.overlaps(a.task.pes)]
    for result in analysis.graph.results:
        found += [_of_step(step) for step in result.steps if _takes_part(role, step)]
    return RoleActivities(role, tuple(found))


def _takes_part(role: Role, step: Chain | Move) -> bool:
    return bool(kinds_on(role, step) if isinstance(step, Move) else parts_on(role, step))


def _of_stream(here: StreamOnRole) -> Activity:
    tensor = here.stream.tensor
    reads = {a.tensor for d in here.drives for a in d.task.statement.reads} - {tensor}
    writes = {d.task.statement.write.tensor for d in here.drives}
    if here.store is not None:
        writes.add(tensor)
    return Activity(
        name=f"receive_{here.label}",
        key=activity_key(here.stream),
        work=here,
        stalls=here.stalls,
        reads=frozenset(reads),
        writes=frozenset(writes),
    )


def _of_statement(analysis: SimdAnalysis) -> Activity:
    statement = analysis.task.statement
    name = f"compute_{statement.name}"
    return Activity(
        name=name,
        key=name,
        work=analysis,
        stalls=False,
        reads=frozenset(access.tensor for access in statement.reads),
        writes=frozenset({statement.write.tensor}),
    )


def _of_step(step: Chain | Move) -> Activity:
    tensor = frozenset({step.tensor})
    leaves = isinstance(step, Chain) and step.leaves
    return Activity(
        name=f"move_{step.name}" if isinstance(step, Move) else _chain_task(step),
        key=activity_key(step),
        work=step,
        stalls=True,
        reads=tensor,
        writes=frozenset() if leaves else tensor,
    )


def _chain_task(chain: Chain) -> str:
    """Return the name of the task that does a chain's work."""
    verb = "send" if chain.leaves else chain.verb
    side = f"_{chain.side.value}" if chain.leaves or chain.level else ""
    level = f"_level_{chain.level}" if chain.level else ""
    return f"{verb}_{chain.tensor}{side}{level}"


def needs_of(
    analysis: LayerAnalysis, here: RoleActivities, policy: SynchronisationPolicy
) -> dict[str, tuple[str, ...]]:
    """Return, by an activity's name, ``BEGIN`` and the names of the activities that end before it starts."""
    rule = _Rule(
        total_order(analysis.graph),
        policy,
        bool(analysis.border.adapters),
        analysis.options.machine.microthreads,
    )
    return {one.name: (BEGIN, *rule.before(one, here.activities)) for one in here.activities}


@dataclass(frozen=True)
class _Rule:
    """``order``: of all streams, chains and moves, by their keys; ``in_turn``: adapters send in it."""

    order: Mapping[str, int]
    policy: SynchronisationPolicy
    in_turn: bool
    microthreads: int

    def before(self, activity: Activity, others: Sequence[Activity]) -> list[str]:
        """Return what must end before an activity starts: what completes what it reads, and by the order."""
        late = _microthread_before(activity, others, self.microthreads)
        return [
            other.name
            for other in others
            if other is not activity
            and (_feeds(other, activity) or self.precedes(other, activity) or other is late)
        ]

    def precedes(self, first: Activity, second: Activity) -> bool:
        """Whether an activity must end before another one, though that one does not read what it writes."""
        if first.key not in self.order or second.key not in self.order:
            return False
        if self.order[first.key] > self.order[second.key]:
            return False
        waits = second.stalls and (first.stalls or self.policy is SynchronisationPolicy.CONSERVATIVE)
        both = isinstance(first.work, StreamOnRole) and isinstance(second.work, StreamOnRole)
        return waits or (both and self.in_turn)


def _feeds(first: Activity, second: Activity) -> bool:
    steps = isinstance(first.work, Chain | Move) and isinstance(second.work, Chain | Move)
    return bool(first.writes & second.reads) and not steps


def _microthread_before(activity: Activity, others: Sequence[Activity], microthreads: int) -> Activity | None:
    """Return the dense stream whose end leaves a microthread for this one; None while there are enough."""
    dense = [a for a in others if isinstance(a.work, StreamOnRole) and not a.work.stream.sparse]
    place = next((k for k, other in enumerate(dense) if other is activity), 0)
    return dense[place - microthreads] if place >= microthreads else None
