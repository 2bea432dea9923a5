"""What goes from PEs to their neighbours, step by step: moves inside the rectangle, and along border lines.

All of it that goes one way shares two colors, which alternate from PE to PE as those of chains do: every PE
deals with all of it in one order, so what comes first is what is waited for first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.border.adapters import Adapter
from polyloom.wafer.border.flows import Kind
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.dataflow.transfers import MEMORY
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.routing.types import RAMP, Route, alternating_uses

_None = isl.Set("{ PE[x, y] : false }")


@dataclass(frozen=True, eq=False)
class Traffic:
    """What goes to the neighbours on side ``ahead``: which PEs of the given rectangle send, which ones take.

    ``tensors``: what goes there.
    """

    ahead: Side
    senders: isl.Set
    receivers: isl.Set
    tensors: frozenset[str]


def neighbour_traffic(
    graph: TaskGraph, border: Border, adapters: Sequence[tuple[Adapter, tuple[Kind, ...]]]
) -> tuple[Traffic, ...]:
    """Return the directions in which anything goes."""
    steps = [*_of_moves(graph, border), *(t for adapter, kinds in adapters for t in _of(adapter, kinds))]
    found: list[Traffic] = []
    for side in Side:
        here = [step for step in steps if step.ahead is side]
        if here:
            found.append(_together(here))
    return tuple(found)


def _together(parts: Sequence[Traffic]) -> Traffic:
    first, *others = parts
    senders, receivers, tensors = first.senders, first.receivers, first.tensors
    for other in others:
        senders, receivers = senders.union(other.senders), receivers.union(other.receivers)
        tensors = tensors | other.tensors
    return Traffic(first.ahead, senders.coalesce(), receivers.coalesce(), tensors)


def _of_moves(graph: TaskGraph, border: Border) -> Iterator[Traffic]:
    for result in graph.results:
        for move in (move for move in result.moves if not move.link):
            tensors = frozenset({move.tensor})
            for kind in move.kinds:
                pes = border.to_given(kind.pes)
                if kind.origin != MEMORY:
                    yield Traffic(move.side(kind.origin).opposite, _None, pes, tensors)
                for target in kind.targets:
                    if target != MEMORY:
                        yield Traffic(move.side(target), pes, _None, tensors)


def _of(adapter: Adapter, kinds: Sequence[Kind]) -> Iterator[Traffic]:
    tensors = frozenset({adapter.tensor})
    for kind in kinds:
        pes = kind.on(adapter)
        if kind.origin.step:
            yield Traffic(adapter.line.towards(kind.origin.step).opposite, _None, pes, tensors)
        for target in kind.targets:
            if target.step:
                yield Traffic(adapter.line.towards(target.step), pes, _None, tensors)


def traffic_routes(traffic: Traffic, pair: tuple[int, int]) -> Iterator[Route]:
    """From each PE to its neighbour, on a color that alternates."""
    ahead, back = traffic.ahead.value, traffic.ahead.opposite.value
    for odd, color in enumerate(pair):
        yield Route(color, _parity(traffic.senders, traffic.ahead, odd), RAMP, (ahead,))
        yield Route(color, _parity(traffic.receivers, traffic.ahead, 1 - odd), back, (RAMP,))


def _parity(pes: isl.Set, side: Side, odd: int) -> isl.Set:
    axis = "x" if side.axis == "PE_X" else "y"
    return pes.intersect(isl.Set(f"{{ PE[x, y] : {axis} mod 2 = {odd} }}"))


def traffic_colors(
    traffic: Sequence[Traffic], pairs: Mapping[Side, tuple[int, int]]
) -> Iterator[tuple[int, str]]:
    """Yield each color and what it carries."""
    for going in traffic:
        what = f"{', '.join(sorted(going.tensors))} to the {going.ahead.value} neighbour"
        yield from alternating_uses(what, pairs[going.ahead])
