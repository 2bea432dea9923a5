"""When chains may start: as early as can be proved to let no PEs wait in a ring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.diagnostics import Unsupported
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.codegen.border import border_works
from polyloom.wafer.dataflow.communication_order import unit_key
from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.program.activities import BEGIN, Patience, Unit, units_on
from polyloom.wafer.program.deadlock import Activity, Ring, Schedule, find_ring, ring_diagnostic
from polyloom.wafer.roles.builder import RoleBuilder
from polyloom.wafer.roles.roles import Role
from polyloom.wafer.routing.border_routes import ColoredAdapter


def choose_patience(
    analysis: LayerAnalysis,
    roles: Sequence[Role],
    border_roles: Sequence[Role],
    adapters: Sequence[ColoredAdapter],
) -> Patience:
    """Return the first kind of patience with which no PEs can wait in a ring.

    Raises Unsupported ``wafer-deadlock`` where there is none.
    """
    border = [_border_schedule(analysis, adapters, role) for role in border_roles]
    places = _places(analysis)
    ring: Ring | None = None
    for patience in Patience:
        ring = find_ring([*(_schedule(analysis, role, patience) for role in roles), *border], places)
        if ring is None:
            return patience
    assert ring is not None
    raise Unsupported(ring_diagnostic(analysis.mapping, ring))


def _schedule(analysis: LayerAnalysis, role: Role, patience: Patience) -> Schedule:
    units = units_on(RoleBuilder(analysis, role), patience)
    keys = {unit.name: unit.key for unit in units}
    return Schedule(analysis.border.to_given(role.pes), tuple(_activity(unit, keys) for unit in units))


def _activity(unit: Unit, keys: dict[str, str]) -> Activity:
    return Activity(unit.key, unit.stalls, frozenset(keys[n] for n in unit.needs if n != BEGIN))


def _border_schedule(analysis: LayerAnalysis, adapters: Sequence[ColoredAdapter], role: Role) -> Schedule:
    """Adapters do one thing after the other."""
    works = border_works(RoleBuilder(analysis, role), adapters)
    keys = [_adapter_key(analysis, work.adapter.tensor, work.adapter.side) for work in works]
    return Schedule(
        role.pes, tuple(Activity(key, True, frozenset(keys[:place])) for place, key in enumerate(keys))
    )


def _adapter_key(analysis: LayerAnalysis, tensor: str, side: Side) -> str:
    """Return the key of the stream that an adapter sends, or of the chain that it takes."""
    going: list[Stream | Chain] = [*analysis.graph.streams]
    going += [c for result in analysis.graph.results for c in result.leave if c.leaves]
    return next(unit_key(one) for one in going if (one.tensor, one.side) == (tensor, side))


def _places(analysis: LayerAnalysis) -> dict[str, isl.Map]:
    """Return ``{ PE[x, y] -> [line] }`` for each unit: its row or column; with adapters all lines are one."""
    graph, border = analysis.graph, analysis.border
    found = {f"compute_{simd.task.statement.name}": _PLACES["pe"] for simd in analysis.simd}
    for stream in graph.streams:
        adapted = border.adapter(stream.tensor, stream.side) is not None
        found[unit_key(stream)] = _PLACES["all" if adapted else stream.side.line]
    for step in _steps(analysis):
        if isinstance(step, Move):
            found[unit_key(step)] = _PLACES[step.high.line]
        else:
            adapted = step.leaves and border.adapter(step.tensor, step.side) is not None
            found[unit_key(step)] = _PLACES["all" if adapted else step.side.line]
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
