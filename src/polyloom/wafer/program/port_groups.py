"""What a host feeds and takes: the ports of one tensor on one side of the given rectangle, their colors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import islpy as isl

from polyloom.ir.types import ElementType
from polyloom.wafer.analysis import LayerAnalysis
from polyloom.wafer.border.peeling import Border
from polyloom.wafer.dataflow.streams import on_side
from polyloom.wafer.mapping.grid import Grid, Side
from polyloom.wafer.program.paired_wavelets import Net, chain_net, port_net, stream_net
from polyloom.wafer.routing.all_routes import Routing
from polyloom.wafer.routing.types import ColoredChain, ColoredStream, split_by_color


@dataclass(frozen=True, eq=False, kw_only=True)
class PortGroup:
    """``ports``: ``{ x[i] -> [PE[x, y] -> index[k]] }`` with external PEs of one side.

    ``color``: ``{ port[p] -> color[c] }`` for the ports by their position on the side; ``block``: where
    two elements travel in a wavelet, after how many one ends in any case; else None.
    """

    tensor: str
    type: ElementType
    side: Side
    sparse: bool
    ports: isl.Map
    color: isl.Map
    block: int | None = None


def inputs_of(analysis: LayerAnalysis, routing: Routing, blocks: Mapping[Net, int]) -> tuple[PortGroup, ...]:
    """Return what the host feeds; ``blocks``: of the nets with two elements in a wavelet."""
    border = analysis.border
    straight = [s for s in routing.streams if border.adapter(s.stream.tensor, s.stream.side) is None]
    return (*(_fed(border, s, blocks) for s in straight), *_adapted(routing, blocks, inward=True))


def outputs_of(analysis: LayerAnalysis, routing: Routing, blocks: Mapping[Net, int]) -> tuple[PortGroup, ...]:
    """Return what the host takes."""
    border = analysis.border
    leaving = [c for c in routing.chains if c.chain.leaves]
    straight = [c for c in leaving if border.adapter(c.chain.tensor, c.chain.side) is None]
    return (*(_taken(border, c, blocks) for c in straight), *_adapted(routing, blocks, inward=False))


def _fed(border: Border, colored: ColoredStream, blocks: Mapping[Net, int]) -> PortGroup:
    """The ports of a straight stream, on the rows or columns that have a PE which it passes."""
    stream, grid = colored.stream, border.given.grid
    ports = on_side(border.given.inputs[stream.tensor], grid, stream.side)
    used = _facing(ports, grid, stream.side, border.to_given(stream.passes))
    color = _one_color(stream.side, used, colored.color)
    return PortGroup(
        tensor=stream.tensor,
        type=stream.type,
        side=stream.side,
        sparse=stream.sparse,
        ports=used,
        color=color,
        block=blocks.get(stream_net(stream.tensor, stream.side)),
    )


def _facing(ports: isl.Map, grid: Grid, side: Side, pes: isl.Set) -> isl.Map:
    """Restrict ports to those that face rows or columns with one of some PEs."""
    line = "x" if side.line == "PE_X" else "y"
    same = isl.Map(f"{{ PE[x, y] -> PE[x1, y1] : {line} = {line}1 }}")
    index = ports.range().unwrap().range()
    external = pes.apply(same).intersect(grid.external(side))
    return ports.intersect_range(isl.Map.from_domain_and_range(external, index).wrap())


def _one_color(side: Side, ports: isl.Map, color: int) -> isl.Map:
    line = "x" if side.line == "PE_X" else "y"
    positions = ports.range_factor_domain().range()
    return positions.apply(isl.Map(f"{{ PE[x, y] -> [port[{line}] -> color[{color}]] }}")).unwrap()


def _taken(border: Border, colored: ColoredChain, blocks: Mapping[Net, int]) -> PortGroup:
    chain = colored.chain
    ports = on_side(border.given.outputs[chain.tensor], border.given.grid, chain.side)
    color = last_color(border, colored, "port")
    return PortGroup(
        tensor=chain.tensor,
        type=chain.type,
        side=chain.side,
        sparse=chain.sparse,
        ports=ports,
        color=color,
        block=blocks.get(chain_net(chain)),
    )


def last_color(border: Border, colored: ColoredChain, name: str) -> isl.Map:
    """Return the color on which the last PE of each row or column sends, ``{ name[position] -> color[c] }``.

    Positions are those of the given rectangle.
    """
    chain = colored.chain
    line = "x" if chain.side.line == "PE_X" else "y"
    shift = border.origin[0 if line == "x" else 1]
    found: list[isl.Map] = []
    for color, sending in zip(colored.colors, split_by_color(chain), strict=True):
        send = isl.Map(f"{{ PE[x, y] -> [{name}[{line} + {shift}] -> color[{color}]] }}")
        found.append(chain.last.intersect(sending).apply(send).unwrap())
    return found[0].union(found[1]).coalesce()


def _adapted(routing: Routing, blocks: Mapping[Net, int], *, inward: bool) -> Iterator[PortGroup]:
    for colored in routing.adapters:
        adapter = colored.adapter
        if adapter.inward is inward:
            for entry, color in colored.ports.items():
                side, ports = adapter.line.side_of(entry), adapter.outer(entry)
                of = _one_color(side, ports, color)
                yield PortGroup(
                    tensor=adapter.tensor,
                    type=adapter.type,
                    side=side,
                    sparse=adapter.sparse,
                    ports=ports,
                    color=of,
                    block=blocks.get(port_net(adapter, entry)),
                )
