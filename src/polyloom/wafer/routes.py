"""Colors and routes: how each stream and chain passes through the routers, as sets of PEs.

A stream has one color. A chain has two, which alternate along the line, since a router takes a color from
one direction only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.diagnostics import Unsupported, error
from polyloom.wafer.chains import Chain
from polyloom.wafer.sides import Grid, Side
from polyloom.wafer.streams import Stream
from polyloom.wafer.tasks import TaskGraph

RAMP = "ramp"
"""The way between a router and its PE."""


@dataclass(frozen=True, eq=False)
class Route:
    """On ``pes``, wavelets of a color that come from ``source`` go to ``targets`` (sides or RAMP)."""

    color: int
    pes: isl.Set
    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ColoredStream:
    """A stream with its color."""

    stream: Stream
    color: int


@dataclass(frozen=True, eq=False)
class ColoredChain:
    """A chain with its two colors: a PE sends on ``colors[c % 2]``, c its coordinate along the line."""

    chain: Chain
    colors: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Routing:
    """All colors and routes of a layer."""

    streams: tuple[ColoredStream, ...]
    chains: tuple[ColoredChain, ...]
    routes: tuple[Route, ...]

    @property
    def colors(self) -> tuple[tuple[int, str], ...]:
        """Each color and what it carries."""
        named = [(s.color, f"{s.stream.tensor} from the {s.stream.side.value}") for s in self.streams]
        for c in self.chains:
            where = f"{c.chain.tensor} to the {c.chain.side.value}"
            named += [(color, f"{where}, {('even', 'odd')[k]} PEs") for k, color in enumerate(c.colors)]
        return tuple(named)


def route(graph: TaskGraph, colors: int) -> Routing:
    """Give every stream and chain its colors and routes.

    Raises Unsupported ``wafer-colors`` where the machine has fewer than are needed.
    """
    streams = tuple(ColoredStream(stream, k) for k, stream in enumerate(graph.streams))
    chains: list[ColoredChain] = []
    free = len(streams)
    for result in graph.results:
        for chain in result.chains:
            chains.append(ColoredChain(chain, (free, free + 1)))
            free += 2
    if free > colors:
        message = f"the layer needs {free} colors, the machine has {colors}"
        span = graph.mapping.span("iport_map") or graph.mapping.span("compute_map")
        helps = ["a stream takes one color, an output or a reduction two: keep more tensors in PE memory"]
        raise Unsupported(error("wafer-colors", message, span, helps=helps))
    routes: list[Route] = []
    for colored in streams:
        routes += _stream_routes(graph.mapping.grid, colored)
    for chain_ in chains:
        routes += _chain_routes(chain_)
    return Routing(streams, tuple(chains), tuple(r for r in routes if not r.pes.is_empty()))


def _stream_routes(grid: Grid, colored: ColoredStream) -> Iterator[Route]:
    """From the port's side straight on, and down the ramp of every receiver."""
    stream, source = colored.stream, colored.stream.side
    forward = source.opposite
    goes_on = stream.passes.intersect(_behind(stream.passes, forward))
    ends = stream.passes.subtract(goes_on)
    taken = stream.receivers
    yield Route(colored.color, goes_on.intersect(taken), source.value, (RAMP, forward.value))
    yield Route(colored.color, goes_on.subtract(taken), source.value, (forward.value,))
    yield Route(colored.color, ends, source.value, (RAMP,))


def _behind(pes: isl.Set, side: Side) -> isl.Set:
    """Return the PEs whose neighbour on a side is one of ``pes``."""
    dx, dy = side.step
    return pes.apply(isl.Map(f"{{ PE[x, y] -> PE[x - {dx}, y - {dy}] }}"))


def _parity(pes: isl.Set, side: Side, odd: int) -> isl.Set:
    """Restrict PEs to those with an even or odd coordinate along the line."""
    axis = "x" if side.axis == "PE_X" else "y"
    return pes.intersect(isl.Set(f"{{ PE[x, y] : {axis} mod 2 = {odd} }}"))


def _chain_routes(colored: ColoredChain) -> Iterator[Route]:
    """From the PE before along the line into the PE, from the PE on; past the last one straight on."""
    chain = colored.chain
    side, back = chain.side, chain.side.opposite
    members = chain.members()
    senders = members if chain.leaves else members.subtract(chain.last)
    receivers = members.intersect(chain.upstream.domain())
    for odd, color in enumerate(colored.colors):
        yield Route(color, _parity(senders, side, odd), RAMP, (side.value,))
        yield Route(color, _parity(receivers, side, 1 - odd), back.value, (RAMP,))
        if chain.leaves:
            passed = _parity(chain.last, side, odd).apply(chain.nearer)
            yield Route(color, passed.subtract(members), back.value, (side.value,))
