"""Routes of what one PE of a line sends to others of it: both ways, down the ramp of each that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.routing.types import RAMP, Route


@dataclass(frozen=True, eq=False, kw_only=True)
class Broadcast:
    """A link: the PE of each line that sends, and those that take. ``tensors``: what goes there, in order."""

    link: str
    tensors: tuple[str, ...]
    high: Side
    senders: isl.Set
    takers: isl.Set


def broadcasts_of(graph: TaskGraph) -> tuple[Broadcast, ...]:
    """Return the links of a layer, each with all moves that share it."""
    found: dict[str, Broadcast] = {}
    for move in (move for result in graph.results for move in result.moves if move.link):
        sending, taking = move.kinds
        before = found[move.link].tensors if move.link in found else ()
        found[move.link] = Broadcast(
            link=move.link,
            tensors=(*before, move.tensor),
            high=move.high,
            senders=sending.pes,
            takers=taking.pes,
        )
    return tuple(found.values())


def broadcast_routes(broadcast: Broadcast, grid: Grid, color: int) -> Iterator[Route]:
    """Yield the routes: past PEs that take nothing, too, as far as the last one that does."""
    senders, takers, sides = broadcast.senders, broadcast.takers, (broadcast.high.opposite, broadcast.high)
    ways = {side: _reached(senders, takers, grid, side) for side in sides}
    begins = {side: senders.intersect(_before(ways[side], side)) for side in sides}
    low, high = sides
    both = begins[low].intersect(begins[high])
    yield Route(color, both, RAMP, (low.value, high.value))
    for side in sides:
        yield Route(color, begins[side].subtract(both), RAMP, (side.value,))
        onwards = ways[side].intersect(_before(ways[side], side))
        source, ends = side.opposite.value, ways[side].subtract(onwards)
        yield Route(color, onwards.intersect(takers), source, (RAMP, side.value))
        yield Route(color, onwards.subtract(takers), source, (side.value,))
        yield Route(color, ends, source, (RAMP,))


def _reached(senders: isl.Set, takers: isl.Set, grid: Grid, side: Side) -> isl.Set:
    """Return the PEs towards a side from the sender of their line, up to the last one that takes anything."""
    towards = grid.towards(side)
    behind = senders.apply(towards)
    wanted = takers.union(takers.apply(towards.reverse()))
    return behind.intersect(wanted).coalesce()


def _before(pes: isl.Set, side: Side) -> isl.Set:
    """Return the PEs whose neighbour on a side is one of some."""
    dx, dy = side.step
    return pes.apply(isl.Map(f"{{ PE[x, y] -> PE[x - {dx}, y - {dy}] }}"))
