"""Colors and routes: how each stream, chain and adapter passes through the routers, as sets of PEs.

Each use of the fabric first gets a number of its own; colors are found by graph colouring (``coloring``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import islpy as isl

from polyloom.diagnostics import Unsupported, error
from polyloom.polyhedra.effort import naming
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.reductions import Chain, Part
from polyloom.wafer.dataflow.tasks import TaskGraph
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.routing.border_routes import (
    ColoredAdapter,
    adapter_routes,
    chain_crossing,
    color_adapters,
    stream_crossing,
)
from polyloom.wafer.routing.broadcast_routes import broadcast_routes, broadcasts_of
from polyloom.wafer.routing.coloring import Use, color_uses, greedy_clique
from polyloom.wafer.routing.neighbour_links import Traffic, neighbour_traffic, traffic_colors, traffic_routes
from polyloom.wafer.routing.types import (
    RAMP,
    ColoredChain,
    ColoredLink,
    ColoredStream,
    Route,
    alternating_uses,
    split_by_color,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Routing:
    """All colors and routes of a layer, on PEs of the given rectangle.

    ``neighbours``: the colors of what goes to the neighbour on a side, from even and odd PEs; ``links``: what
    routers copy along lines.
    """

    streams: tuple[ColoredStream, ...]
    chains: tuple[ColoredChain, ...]
    links: tuple[ColoredLink, ...]
    neighbours: dict[Side, tuple[int, int]]
    traffic: tuple[Traffic, ...]
    adapters: tuple[ColoredAdapter, ...]
    routes: tuple[Route, ...]

    @property
    def uses(self) -> tuple[tuple[int, str], ...]:
        """Each color, or number before colors are found, and what it carries; the same may come twice."""
        named = [(s.color, f"{s.stream.tensor} from the {s.stream.side.value}") for s in self.streams]
        for c in self.chains:
            where = f"{c.chain.tensor} to the {c.chain.side.value}"
            named += alternating_uses(where, c.colors)
        named += [(link.color, link.what) for link in self.links]
        for adapter in self.adapters:
            named += adapter.colors
        named += traffic_colors(self.traffic, self.neighbours)
        return tuple(named)

    @cached_property
    def colors(self) -> tuple[tuple[int, str], ...]:
        """Each color that any router has a route for, and all that it carries, in their order."""
        routed = sorted({route.color for route in self.routes})
        texts = {c: dict.fromkeys(what for color, what in self.uses if color == c) for c in routed}
        return tuple((color, "; ".join(texts[color])) for color in routed)

    @cached_property
    def passed(self) -> Mapping[int, isl.Set]:
        """The PEs ``{ PE[x, y] }`` on whose routers each color has a route."""
        pes: dict[int, isl.Set] = {}
        for route_ in self.routes:
            known = pes.get(route_.color)
            pes[route_.color] = route_.pes if known is None else known.union(route_.pes)
        return {color: pes[color].coalesce() for color in sorted(pes)}

    def recolored(self, colors: Mapping[int, int]) -> Routing:
        """Return the same with other colors: ``colors`` says which one each becomes."""
        return Routing(
            streams=tuple(replace(s, color=colors[s.color]) for s in self.streams),
            chains=tuple(replace(c, colors=_both(colors, c.colors)) for c in self.chains),
            links=tuple(replace(link, color=colors[link.color]) for link in self.links),
            neighbours={side: _both(colors, pair) for side, pair in self.neighbours.items()},
            traffic=self.traffic,
            adapters=tuple(
                replace(a, ports={e: colors[c] for e, c in a.ports.items()}) for a in self.adapters
            ),
            routes=tuple(replace(route, color=colors[route.color]) for route in self.routes),
        )


def _both(colors: Mapping[int, int], pair: tuple[int, int]) -> tuple[int, int]:
    return colors[pair[0]], colors[pair[1]]


def route(graph: TaskGraph, border: Border, colors: int) -> Routing:
    """Give every stream, chain and adapter its colors and routes.

    Raises Unsupported ``wafer-colors`` where the machine has fewer than are needed.
    """
    with naming("the routes"):
        numbered = _numbered(graph, border)
    with naming("the colors of the routes"):
        uses = _uses(numbered)
        found = color_uses(list(uses.values()), colors)
    if found is None:
        raise _too_many(graph, list(uses.values()), colors)
    known = dict(zip(uses, found, strict=True))
    return numbered.recolored(known | _as_the_other(numbered, known))


def _as_the_other(numbered: Routing, known: Mapping[int, int]) -> dict[int, int]:
    """Give a number without routes the color of the other one of its pair."""
    pairs = [*(chain.colors for chain in numbered.chains), *numbered.neighbours.values()]
    colors = {number: 0 for number, _ in numbered.uses if number not in known}
    for pair in pairs:
        here = [known[number] for number in pair if number in known]
        colors.update({number: here[0] for number in pair if here and number not in known})
    return colors


def _numbered(graph: TaskGraph, border: Border) -> Routing:
    """Return all routes, with a number for each use instead of its color."""
    streams = tuple(ColoredStream(stream, k) for k, stream in enumerate(graph.streams))
    chains: list[ColoredChain] = []
    free = len(streams)
    for result in graph.results:
        for chain in result.chains:
            chains.append(ColoredChain(chain, (free, free + 1)))
            free += 2
    broadcasts = broadcasts_of(graph)
    links = tuple(ColoredLink(b.link, b.tensors, free + k) for k, b in enumerate(broadcasts))
    adapters, free = color_adapters(border, free + len(links))
    traffic = neighbour_traffic(graph, border, [(a.adapter, a.kinds) for a in adapters])
    neighbours = {going.ahead: (free + 2 * k, free + 2 * k + 1) for k, going in enumerate(traffic)}
    inside: list[Route] = []
    crossing: list[Route] = []
    for colored in streams:
        with naming(f"the routes of `{colored.stream.tensor}`"):
            inside += _stream_routes(colored)
            crossing += stream_crossing(border, colored)
    for chain_ in chains:
        with naming(f"the routes of the sums of `{chain_.chain.tensor}`"):
            inside += _chain_routes(chain_)
            crossing += chain_crossing(border, chain_)
    with naming("the routes along lines"):
        for link, broadcast in zip(links, broadcasts, strict=True):
            inside += broadcast_routes(broadcast, border.compute.grid, link.color)
    routes = [replace(r, pes=border.to_given(r.pes)) for r in inside] + crossing
    for adapter in adapters:
        with naming(f"the routes of `{adapter.adapter.tensor}` along the border"):
            routes += adapter_routes(adapter)
    with naming("the routes between neighbours"):
        for going in traffic:
            routes += traffic_routes(going, neighbours[going.ahead])
    used = tuple(r for r in routes if not r.pes.is_empty())
    return Routing(
        streams=streams,
        chains=tuple(chains),
        links=links,
        neighbours=neighbours,
        traffic=traffic,
        adapters=adapters,
        routes=used,
    )


def _uses(numbered: Routing) -> dict[int, Use]:
    """Return what passes any router, by its number."""
    texts = dict(reversed(numbered.uses))
    return {number: Use(texts[number], pes) for number, pes in numbered.passed.items()}


def _too_many(graph: TaskGraph, uses: Sequence[Use], colors: int) -> Unsupported:
    """Say where most colors meet, and what they carry."""
    pes, here = greedy_clique(uses)
    carried = "; ".join(use.what for use in here)
    if len(here) > colors:
        message = f"{len(here)} colors meet on the routers of {pes}, the machine has {colors}"
    else:
        message = f"no way was found to route the layer with the machine's {colors} colors"
    span = graph.mapping.span("iport_map") or graph.mapping.span("compute_map")
    helps = [
        "a stream takes one color, what goes from PE to PE two: keep more tensors in PE memory",
        "let tensors enter and leave on other rows or columns: what meets nowhere shares a color",
    ]
    notes = [f"on the routers of {pes}: {carried}"]
    return Unsupported(error("wafer-colors", message, span, notes=notes, helps=helps))


def _stream_routes(colored: ColoredStream) -> Iterator[Route]:
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


def _chain_routes(colored: ColoredChain) -> Iterator[Route]:
    """From each PE to the next that takes part, past those between; past the last one straight on."""
    chain = colored.chain
    if chain.turns is not None:
        yield from _routes_in_turn(chain, colored.colors[0])
        return
    side, back = chain.side, chain.side.opposite
    members = chain.members()
    handing_on = members.subtract(chain.last)
    for color, pes in zip(colored.colors, split_by_color(chain), strict=True):
        senders = handing_on.intersect(pes)
        leaving = chain.last.intersect(members).intersect(pes) if chain.leaves else None
        yield Route(color, senders if leaving is None else senders.union(leaving), RAMP, (side.value,))
        yield Route(color, senders.apply(chain.onwards(chain.step, chain.step)), back.value, (RAMP,))
        if chain.step > 1:
            yield Route(color, senders.apply(chain.onwards(1, chain.step - 1)), back.value, (side.value,))
        if leaving is not None:
            passed = leaving.apply(chain.nearer)
            yield Route(color, passed.subtract(members), back.value, (side.value,))


def _routes_in_turn(chain: Chain, color: int) -> Iterator[Route]:
    """From the first PE of a line straight out; other routers let pass, or take what their PE has."""
    ahead, back = (chain.side.value,), chain.side.opposite.value
    own, passed = chain.busy[Part.OWN], chain.busy[Part.FORWARD].union(chain.trailing())
    yield Route(color, own.subtract(passed), RAMP, ahead)
    yield Route(color, own.intersect(passed), back, ahead, then=RAMP)
    yield Route(color, passed.subtract(own), back, ahead)
