"""The order in which all PEs deal with streams and chains, where adapters share the work of several.

An adapter PE deals with one tensor after the other; so that it never waits for something that waits for it,
compute PEs take what it sends in the same order.
"""

from __future__ import annotations

from polyloom.wafer.chains import Chain
from polyloom.wafer.sides import Side
from polyloom.wafer.streams import Stream
from polyloom.wafer.tasks import TaskGraph


def communication_order(graph: TaskGraph) -> dict[tuple[str, Side], int]:
    """Return the place of every stream, and of every chain that leaves, by tensor and side.

    A stream comes after those that its statements wait for, and after the reductions that they wait for; a
    chain after all streams that wait for no later reduction.
    """
    chains = [step for result in graph.results for step in result.steps]
    found: list[tuple[str, Side]] = []
    for level in range(-1, len(chains)):
        streams = [s for s in graph.streams if last_awaited(graph, s) == level]
        streams.sort(key=lambda s: (graph.stream_order.index(s.tensor), list(Side).index(s.side)))
        found += [(s.tensor, s.side) for s in streams]
        if level + 1 < len(chains):
            chain = chains[level + 1]
            found += [(chain.tensor, chain.side)] if isinstance(chain, Chain) and chain.leaves else []
    return {key: place for place, key in enumerate(found)}


def last_awaited(graph: TaskGraph, stream: Stream) -> int:
    """Return the place of the last step that must end, on any PE, before the stream is taken, or -1."""
    tensors = graph.awaited.get(stream.tensor, frozenset())
    numbers = (
        place
        for place, chain in enumerate(step for result in graph.results for step in result.steps)
        if chain.tensor in tensors and not chain.leaves
    )
    return max(numbers, default=-1)
