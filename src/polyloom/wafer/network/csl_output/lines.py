"""Exchanges in a CSL layout: the programs and routes of their lines, by the coordinates of their stage.

What ``program`` says in C about lines, for CSL, where routes are stated for sets of PEs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import greatest_coordinate
from polyloom.polyhedra.loops.generate import IntExpression, Number
from polyloom.wafer.csl_output.layout import Routed, Tile, color_text, port_color
from polyloom.wafer.mapping.grid import Side
from polyloom.wafer.network.blocks import Line
from polyloom.wafer.network.colors import Colors
from polyloom.wafer.network.exchange import BEHIND, BUS_IN, BUS_OUT, FROM_LAYER, TO_LAYER
from polyloom.wafer.network.floor_plan import Place

_OUTWARD = {Side.NORTH: (0, -1), Side.SOUTH: (0, 1), Side.WEST: (-1, 0), Side.EAST: (1, 0)}


@dataclass(frozen=True)
class StageColors:
    """The colors of a stage's own numbers on the mesh; in CSL an array where the number depends on the PE."""

    name: str
    numbers: tuple[int, ...]

    @property
    def constant(self) -> str:
        """The array."""
        return f"const {self.name}_colors = [{len(self.numbers)}]u16 {{{', '.join(map(str, self.numbers))}}};"

    def text(self, color: IntExpression) -> str:
        """Return the color for a stage's own one."""
        if isinstance(color, Number):
            return str(self.numbers[color.value])
        return f"{self.name}_colors[{color_text(color)}]"


@dataclass(frozen=True)
class LineParts:
    """What a line adds to the area of its stage."""

    tiles: tuple[Tile, ...]
    routes: tuple[Routed, ...]


def line_parts(place: Place, line: Line, stream: int, colors: Colors) -> LineParts:
    """Return the programs and routes of a line. ``stream``: the color of its stream."""
    found = _Line(place, line, stream, colors)
    tiles, routes = (found.distributors() if line.inward else found.collectors()), found.passing()
    return LineParts(tuple(tiles), tuple(routes))


class _Line:
    """A line by the coordinates of its stage, PE (0, 0) being the stage's."""

    def __init__(self, place: Place, line: Line, stream: int, colors: Colors) -> None:
        self.line, self.stream = line, str(stream)
        self.chain = str(colors.chains.get(line.name, stream))
        own = StageColors(line.stage, colors.stages[line.stage])
        self.color = own.text(port_color(line.group))
        (x, y), (xs, ys) = place.origin, place.line_box(line)
        self.all = box((xs[0] - x, xs[1] - x), (ys[0] - y, ys[1] - y))
        self.ports = self._ports_at(line.depth)
        self.low, self.high = (self._at(position) for position in (line.low, line.high))
        first = line.group.color.intersect_domain(isl.Set(f"{{ port[{line.low}] }}")).range()
        self.unused = own.text(Number(greatest_coordinate(first, 0).to_python()))
        self.outer, self.inner = line.side.value, line.side.opposite.value
        self.onward, self.back = ("east", "west") if line.is_row else ("south", "north")
        self.coming = "west" if line.is_row else "north"

    def _ports_at(self, depth: int) -> isl.Set:
        """Return the PEs at a distance from the stage that face its ports."""
        dx, dy = (step * (depth - 1) for step in _OUTWARD[self.line.side])
        external = self.line.group.ports.range_factor_domain().range()
        return external.apply(isl.Map(f"{{ PE[x, y] -> PE[x + {dx}, y + {dy}] }}"))

    def _at(self, position: int) -> isl.Set:
        axis = "x" if self.line.is_row else "y"
        return self.all.intersect(isl.Set(f"{{ PE[x, y] : {axis} = {position} }}"))

    def passing(self) -> Iterator[Routed]:
        """Yield the routes: between the stage and the line, in the line, and between both."""
        way = (self.outer, self.inner) if self.line.inward else (self.inner, self.outer)
        for depth in range(1, self.line.depth):
            yield Routed(self._ports_at(depth), self.color, way[0], (way[1],))
        yield from self._distributing() if self.line.inward else self._collecting()

    def _distributing(self) -> Iterator[Routed]:
        yield Routed(self.ports.subtract(self.high), self.stream, self.coming, ("ramp", self.onward))
        yield Routed(self.high, self.stream, self.coming, ("ramp",))
        between = self.all.subtract(self.ports)
        if not between.is_empty():
            yield Routed(between, self.stream, self.coming, (self.onward,))
        yield Routed(self.ports, self.color, "ramp", (self.inner,))

    def _collecting(self) -> Iterator[Routed]:
        for pes, sent, behind in self._turns():
            yield Routed(pes, sent, "ramp", (self.back,))
            rest = pes.subtract(self.high)
            if not rest.is_empty():
                yield Routed(rest, behind, self.onward, ("ramp",))
        yield Routed(self.ports, self.color, self.inner, ("ramp",))

    def _turns(self) -> Iterator[tuple[isl.Set, str, str]]:
        """Yield the PEs of the line that send on the stream's color, and those that send on the other one,
        with that color and the one of what comes from behind.
        """
        axis = "x" if self.line.is_row else "y"
        for odd, ways in enumerate(((self.stream, self.chain), (self.chain, self.stream))):
            pes = self.all.intersect(isl.Set(f"{{ PE[x, y] : ({axis} - {self.line.low}) mod 2 = {odd} }}"))
            if not pes.is_empty():
                yield pes, *ways

    def distributors(self) -> Iterator[Tile]:
        """Yield the programs of a line that takes the stream in front of ports."""
        colors = {BUS_IN: self.stream, TO_LAYER: self.color}
        yield Tile(file=f"{self.line.name}.csl", pes=self.ports, colors=colors)

    def collectors(self) -> Iterator[Tile]:
        """Yield the programs of a line that gives the stream: where a port is, between ports, the last."""
        name = self.line.name
        for pes, sent, behind in self._turns():
            inner = pes.subtract(self.high)
            for here, source in (
                (inner.intersect(self.ports), self.color),
                (inner.subtract(self.ports), self.unused),
            ):
                if not here.is_empty():
                    colors = {FROM_LAYER: source, BEHIND: behind, BUS_OUT: sent}
                    yield Tile(file=f"{name}.csl", pes=here, colors=colors)
            last = pes.intersect(self.high)
            if not last.is_empty():
                yield Tile(file=f"{name}_last.csl", pes=last, colors={FROM_LAYER: self.color, BUS_OUT: sent})


def box(x: tuple[int, int], y: tuple[int, int]) -> isl.Set:
    """Return ``{ PE[x, y] }`` of columns and rows."""
    return isl.Set(f"{{ PE[x, y] : {x[0]} <= x <= {x[1]} and {y[0]} <= y <= {y[1]} }}")
