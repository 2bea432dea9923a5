"""The order of all streams, reductions and moves of a layer, which every PE keeps where it may stall.

An adapter PE deals with one tensor after the other; so that it never waits for something that waits for it,
compute PEs take what it sends in the same order.
"""

from __future__ import annotations

from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.streams import Stream
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.dataflow.transfers import Move
from polyloom.wafer.mapping.grid import Side


def communication_order(graph: TaskGraph) -> dict[tuple[str, Side], int]:
    """Return the place of every stream, and of every chain that leaves, by tensor and side."""
    going = [s for s in _in_order(graph) if isinstance(s, Stream) or (isinstance(s, Chain) and s.leaves)]
    return {(one.tensor, one.side): place for place, one in enumerate(going)}


def total_order(graph: TaskGraph) -> dict[str, int]:
    """Return the place of every stream, chain and move, by ``activity_key``."""
    return {activity_key(one): place for place, one in enumerate(_in_order(graph))}


def activity_key(one: Stream | Chain | Move) -> str:
    """Return a name that is unique among the streams, chains and moves of a layer."""
    return f"stream {one.name}" if isinstance(one, Stream) else one.name


def _in_order(graph: TaskGraph) -> list[Stream | Chain | Move]:
    """A stream comes after those that its statements wait for, and after the reductions that they wait for; a
    chain after all streams that wait for no later reduction.
    """
    steps = [step for result in graph.results for step in result.steps]
    found: list[Stream | Chain | Move] = []
    for level in range(-1, len(steps)):
        streams = [s for s in graph.streams if last_awaited(graph, s) == level]
        streams.sort(key=lambda s: (graph.stream_order.index(s.tensor), list(Side).index(s.side)))
        found += [*streams, *steps[level + 1 : level + 2]]
    return found


def last_awaited(graph: TaskGraph, stream: Stream) -> int:
    """Return the place of the last step that must end, on any PE, before the stream is taken, or -1."""
    tensors = graph.awaited.get(stream.tensor, frozenset())
    numbers = (
        place
        for place, chain in enumerate(step for result in graph.results for step in result.steps)
        if chain.tensor in tensors and not chain.leaves
    )
    return max(numbers, default=-1)
