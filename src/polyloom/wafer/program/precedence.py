"""Which activities of a role must end before which one starts.

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
from polyloom.wafer.dataflow.communication_order import total_order
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.roles.activities import Activity, RoleActivities
from polyloom.wafer.roles.work import StreamOnRole

BEGIN = "begin"


class SynchronisationPolicy(Enum):
    """What a chain or move waits for before it may stall its PE; the value is its name in JSON."""

    EAGER = "eager"
    """The streams that feed its statement, and what may stall before it."""
    CONSERVATIVE = "careful"
    """All streams before it in the common order, too."""


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
