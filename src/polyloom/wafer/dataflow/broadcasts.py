"""Moves from one PE of a line to others of it, copied by routers: no PE waits for another to pass them on.

A maximum that was reduced to the last PE of each row goes to all of the row in one cycle a hop. PEs that took
all of it before they passed it on would let the far end wait for each of them in turn.
Source: Luczynski et al., HPDC 2024 (multicast). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from polyloom.wafer.dataflow.reductions import Results
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.dataflow.transfers import LINE, MEMORY, Move, MoveKind
from polyloom.wafer.machine.model import Machine

_LINES = {
    "PE_X": isl.Map("{ PE[x, y] -> PE[x1, y1] : x = x1 }"),
    "PE_Y": isl.Map("{ PE[x, y] -> PE[x1, y1] : y = y1 }"),
}
"""From a PE to those of its column, and of its row."""


def with_broadcasts(graph: TaskGraph, machine: Machine, adapters: int) -> TaskGraph:
    """Let routers copy what goes from one PE of each line: of the first links as many as there is room for.

    Moves between the same PEs share a link, since all PEs deal with them in one order. ``adapters``: how many
    there are on the border.
    """
    links: list[Move] = []
    for move in _moves(graph):
        found = _broadcast(move, links)
        if found is not None:
            links.append(found)
    names = tuple(dict.fromkeys((move.high, move.link) for move in links))
    for count in range(len(names), 0, -1):
        chosen = {move.name: move for move in links if (move.high, move.link) in names[:count]}
        changed = replace(graph, results=tuple(_with(result, chosen) for result in graph.results))
        if _fits(changed, machine, adapters) or _takes_less(changed):
            return changed
    return graph


def _moves(graph: TaskGraph) -> tuple[Move, ...]:
    return tuple(move for result in graph.results for move in result.moves)


def _with(result: Results, chosen: Mapping[str, Move]) -> Results:
    return replace(result, moves=tuple(chosen.get(move.name, move) for move in result.moves))


def _broadcast(move: Move, links: Sequence[Move]) -> Move | None:
    """Return a move by routers, over a link that there is already if one leads to the same PEs."""
    sources, sinks = move.sources.domain().coalesce(), move.sinks.intersect_range(move.sources.range())
    takers, same = sinks.domain().coalesce(), _LINES[move.high.line]
    one = same.intersect_domain(sources).reverse().is_single_valued()
    everything = same.intersect_domain(takers).apply_range(move.sources)
    if not one or not everything.is_equal(sinks) or not takers.is_disjoint(sources):
        return None
    if takers.is_subset(_beside(move, sources)):  # an empty move, too
        return None
    kinds = (MoveKind(MEMORY, (LINE,), move.sources, 0), MoveKind(LINE, (MEMORY,), sinks, 0))
    name = next((m.link for m in links if _same_link(m, move.high.line, sources, takers)), None)
    return replace(move, kinds=kinds, link=name or _new_link(move, links))


def _beside(move: Move, pes: isl.Set) -> isl.Set:
    """Return the neighbours on the line: what goes no further needs nobody to pass it on."""
    dx, dy = move.high.step
    ways = (isl.Map(f"{{ PE[x, y] -> PE[x + {dx * k}, y + {dy * k}] }}") for k in (-1, 1))
    low, high = (pes.apply(way) for way in ways)
    return low.union(high)


def _same_link(other: Move, line: str, sources: isl.Set, takers: isl.Set) -> bool:
    if other.high.line != line:
        return False
    sending, taking = (kind.pes for kind in other.kinds)
    return bool(sending.is_equal(sources) and taking.is_equal(takers))


def _new_link(move: Move, links: Sequence[Move]) -> str:
    known = {m.link for m in links if m.high is move.high}
    lines = "rows" if move.high.line == "PE_Y" else "columns"
    return f"along_{lines}" + (f"_{len(known) + 1}" if known else "")


def _fits(graph: TaskGraph, machine: Machine, adapters: int) -> bool:
    """Whether queues and colors last even if all that the layer has met on one PE."""
    chains = sum(len(result.chains) for result in graph.results)
    links, directions = links_and_directions(_moves(graph))
    colors = len(graph.streams) + 2 * chains + links + 2 * directions + 2 * adapters
    inputs, outputs = len(graph.streams) + chains, chains
    return (
        inputs + links + directions <= len(machine.input_queues)
        and outputs + links + directions <= len(machine.output_queues)
        and colors <= machine.colors
    )


def _takes_less(graph: TaskGraph) -> bool:
    """Whether no PE has more queues or colors than if PEs passed all on: a link takes the place of these."""
    moves = _moves(graph)
    axes = {move.high for move in moves}
    return all(len({move.link for move in moves if move.high is axis}) == 1 for axis in axes) and all(
        move.link for move in moves
    )


def links_and_directions(moves: Sequence[Move]) -> tuple[int, int]:
    """Return how many links there are, and in how many directions PEs may pass elements on."""
    links = {move.link for move in moves if move.link}
    return len(links), 2 * len({move.high for move in moves if not move.link})
