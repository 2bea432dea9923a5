"""When chains may start: as early as can be proved to let no PEs wait in a ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.diagnostics import Unsupported
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.dataflow.communication_order import activity_key
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.program.deadlock import Event, Ring, Schedule, find_ring, ring_diagnostic
from polyloom.wafer.program.precedence import BEGIN, SynchronisationPolicy, needs_of
from polyloom.wafer.roles.activities import RoleActivities
from polyloom.wafer.roles.adapter_work import AdapterRole


def choose_policy(
    analysis: LayerAnalysis, roles: Sequence[RoleActivities], border: Sequence[AdapterRole]
) -> SynchronisationPolicy:
    """Return the first policy by which no PEs can wait in a ring.

    Raises Unsupported ``wafer-deadlock`` where there is none.
    """
    adapters = [_border_schedule(analysis, here) for here in border]
    places = _places(analysis)
    ring: Ring | None = None
    for policy in SynchronisationPolicy:
        ring = find_ring([*(_schedule(analysis, here, policy) for here in roles), *adapters], places)
        if ring is None:
            return policy
    assert ring is not None
    raise Unsupported(ring_diagnostic(analysis.mapping, ring))


def _schedule(analysis: LayerAnalysis, here: RoleActivities, policy: SynchronisationPolicy) -> Schedule:
    keys = {activity.name: activity.key for activity in here.activities}
    needs = needs_of(analysis, here, policy)
    events = (
        Event(a.key, a.stalls, frozenset(keys[name] for name in needs[a.name] if name != BEGIN))
        for a in here.activities
    )
    return Schedule(analysis.border.to_given(here.role.pes), tuple(events))


def _border_schedule(analysis: LayerAnalysis, here: AdapterRole) -> Schedule:
    """Adapters do one thing after the other."""
    keys = [_adapter_key(analysis, work.adapter.tensor, work.adapter.side) for work in here.works]
    events = (Event(key, True, frozenset(keys[:place])) for place, key in enumerate(keys))
    return Schedule(here.role.pes, tuple(events))


def _adapter_key(analysis: LayerAnalysis, tensor: str, side: Side) -> str:
    """Return the key of the stream that an adapter sends, or of the chain that it takes."""
    going: list[Stream | Chain] = [*analysis.graph.streams]
    going += [c for result in analysis.graph.results for c in result.leave if c.leaves]
    return next(activity_key(one) for one in going if (one.tensor, one.side) == (tensor, side))


def _places(analysis: LayerAnalysis) -> dict[str, isl.Map]:
    """Return ``{ PE[x, y] -> [line] }`` for each activity: its row or column, all as one with adapters."""
    graph, border = analysis.graph, analysis.border
    found = {f"compute_{simd.task.statement.name}": _PLACES["pe"] for simd in analysis.simd}
    for stream in graph.streams:
        adapted = border.adapter(stream.tensor, stream.side) is not None
        found[activity_key(stream)] = _PLACES["all" if adapted else stream.side.line]
    for step in _steps(analysis):
        if isinstance(step, Move):
            found[activity_key(step)] = _PLACES[step.high.line]
        else:
            adapted = step.leaves and border.adapter(step.tensor, step.side) is not None
            found[activity_key(step)] = _PLACES["all" if adapted else step.side.line]
    return found


def _steps(analysis: LayerAnalysis) -> Iterator[Chain | Move]:
    for result in analysis.graph.results:
        yield from result.steps


_PLACES = {
    "PE_X": isl.Map("{ PE[x, y] -> [x] }"),
    "PE_Y": isl.Map("{ PE[x, y] -> [y] }"),
    "pe": isl.Map("{ PE[x, y] -> [x, y] }"),
    "all": isl.Map("{ PE[x, y] -> [] }"),
}
