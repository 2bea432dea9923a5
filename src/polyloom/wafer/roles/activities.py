"""Activities: what the PEs of a role do in one invocation: streams, local statements, chains and moves."""

from __future__ import annotations

from dataclasses import dataclass

from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.communication_order import activity_key
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.tasks import TaskKind
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.roles.work import StreamOnRole, kinds_on, parts_on, streams_on
from polyloom.wafer.simd.decision import SimdAnalysis


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
    reads = {a.buffer for d in here.drives for a in d.task.statement.reads} - {tensor}
    writes = {d.task.statement.write.buffer for d in here.drives}
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
        reads=frozenset(access.buffer for access in statement.reads),
        writes=frozenset({statement.write.buffer}),
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
