"""Code regions as host programs describe them: parameters, routes and ports of rectangles of PEs.

Source: the API reference of the public SDK, `SdkLayout`, and its public examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyloom.diagnostics import PolyloomError, error

Place = tuple[int, int]


class Route(Enum):
    """Where words come from, or go."""

    RAMP = "RAMP"
    EAST = "EAST"
    WEST = "WEST"
    NORTH = "NORTH"
    SOUTH = "SOUTH"


class Edge(Enum):
    """A side of a region."""

    LEFT = "LEFT"
    RIGHT = "RIGHT"
    TOP = "TOP"
    BOTTOM = "BOTTOM"


OUTSIDE = {Edge.LEFT: Route.WEST, Edge.RIGHT: Route.EAST, Edge.TOP: Route.NORTH, Edge.BOTTOM: Route.SOUTH}
STEP = {Route.WEST: (-1, 0), Route.EAST: (1, 0), Route.NORTH: (0, -1), Route.SOUTH: (0, 1)}
OPPOSITE = {
    Route.WEST: Route.EAST,
    Route.EAST: Route.WEST,
    Route.NORTH: Route.SOUTH,
    Route.SOUTH: Route.NORTH,
}


@dataclass(eq=False)
class Color:
    """A color by name; its number is chosen when the layout is compiled, unless it is given."""

    name: str
    value: int | None = None
    parameter: str = ""

    @property
    def parameter_name(self) -> str:
        """The parameter of a program that gets its number."""
        return self.parameter or self.name


@dataclass(frozen=True)
class RoutingPosition:
    """Inputs and outputs of a color while its switch is at one position."""

    inputs: tuple[Route, ...] = ()
    outputs: tuple[Route, ...] = ()

    def set_input(self, routes: Sequence[Route]) -> RoutingPosition:
        """Return it with other inputs."""
        return RoutingPosition(tuple(routes), self.outputs)

    def set_output(self, routes: Sequence[Route]) -> RoutingPosition:
        """Return it with other outputs."""
        return RoutingPosition(self.inputs, tuple(routes))


class EdgeRouting(NamedTuple):
    """Other positions for the PEs of one side of a region."""

    edge: Edge
    positions: tuple[RoutingPosition, ...]


def get_edge_routing(edge: Edge, routes: Sequence[RoutingPosition]) -> EdgeRouting:
    """Return positions for the PEs of one side."""
    return EdgeRouting(edge, tuple(routes))


class IntVector(NamedTuple):
    """A column and a row."""

    x: int
    y: int


class IntRectangle(NamedTuple):
    """PEs from the upper left one on, up to the lower right one, which is outside."""

    upper_left: IntVector
    lower_right: IntVector

    def places(self) -> list[Place]:
        """Return its PEs."""
        columns = range(self.upper_left.x, self.lower_right.x)
        rows = range(self.upper_left.y, self.lower_right.y)
        return [(x, y) for y in rows for x in columns]


@dataclass(eq=False)
class Port:
    """One side of a region where words of a color go in, or out; ``size``: how many in all."""

    region: CodeRegion
    color: Color
    edge: Edge
    is_input: bool
    size: int

    def places(self) -> list[Place]:
        """Return its PEs on the wafer, from west to east or north to south."""
        x, y = self.region.origin
        return [(x + i, y + j) for i, j in self.region.side(self.edge)]


@dataclass(eq=False)
class CodeRegion:
    """A rectangle of PEs with one program; places are inside of it, from (0, 0) in the north-west."""

    path: Path
    name: str
    width: int
    height: int
    origin: Place = (0, 0)
    params: dict[Place, dict[str, int | Color]] = field(default_factory=dict)
    routes: dict[tuple[Place, Color], tuple[RoutingPosition, ...]] = field(default_factory=dict)
    symbols: list[tuple[str, Any]] = field(default_factory=list)

    def color(self, name: str, value: int | None = None) -> Color:
        """Return a new color of this region for the parameter of that name."""
        return Color(f"{self.name}_{name}", value, name)

    def place(self, x: int, y: int) -> None:
        """Put the region's north-west PE there."""
        self.origin = (x, y)

    def set_param_all(self, name: str | Color, value: int | Color | None = None) -> None:
        """Give a parameter to all PEs; a color alone is the parameter of its own name."""
        self._set(self._all(), name, value)

    def set_param(
        self, coordinates: Sequence[int], name: str | Color, value: int | Color | None = None
    ) -> None:
        """Give a parameter to one PE."""
        self._set([(coordinates[0], coordinates[1])], name, value)

    def set_param_range(
        self, rectangle: IntRectangle, name: str | Color, value: int | Color | None = None
    ) -> None:
        """Give a parameter to the PEs of a rectangle."""
        self._set(rectangle.places(), name, value)

    def paint(self, coordinates: Sequence[int], color: Color, routes: Sequence[RoutingPosition]) -> None:
        """Route a color at one PE."""
        self._paint([(coordinates[0], coordinates[1])], color, tuple(routes))

    def paint_range(self, rectangle: IntRectangle, color: Color, routes: Sequence[RoutingPosition]) -> None:
        """Route a color at the PEs of a rectangle."""
        self._paint(rectangle.places(), color, tuple(routes))

    def paint_all(
        self, color: Color, routes: Sequence[RoutingPosition], edge_routes: Sequence[EdgeRouting] = ()
    ) -> None:
        """Route a color at all PEs; at some sides otherwise."""
        self._paint(self._all(), color, tuple(routes))
        for edge, positions in edge_routes:
            self._paint(self.side(edge), color, positions)

    def create_input_port(
        self, color: Color, edge: Edge, routes: Sequence[RoutingPosition], size: int, prefix: str = ""
    ) -> Port:
        """Let words of a color in at one side; the routes say where they go there."""
        return self._port(color, edge, routes, size, lambda route: route.set_input([OUTSIDE[edge]]), True)

    def create_output_port(
        self, color: Color, edge: Edge, routes: Sequence[RoutingPosition], size: int, prefix: str = ""
    ) -> Port:
        """Let words of a color out at one side; the routes say where they come from there."""
        return self._port(color, edge, routes, size, lambda route: route.set_output([OUTSIDE[edge]]), False)

    def set_symbol_all(self, symbol: str, data: Any, width: int, height: int) -> None:
        """Give a global of all PEs its part of a matrix of height x width elements, each PE a block."""
        array = np.asarray(data)
        if array.size != width * height or width % self.width or height % self.height:
            raise PolyloomError(
                error(
                    "csl-layout-data",
                    f"{array.size} elements as {height} rows of {width} cannot be divided among the"
                    f" {self.width} x {self.height} PEs of `{self.name}`",
                )
            )
        self.symbols.append((symbol, array.reshape(height, width)))

    def side(self, edge: Edge) -> list[Place]:
        """Return the PEs of one side."""
        at = {Edge.LEFT: 0, Edge.RIGHT: self.width - 1, Edge.TOP: 0, Edge.BOTTOM: self.height - 1}[edge]
        if edge in (Edge.LEFT, Edge.RIGHT):
            return [(at, j) for j in range(self.height)]
        return [(i, at) for i in range(self.width)]

    def _port(
        self,
        color: Color,
        edge: Edge,
        routes: Sequence[RoutingPosition],
        size: int,
        opened: Callable[[RoutingPosition], RoutingPosition],
        is_input: bool,
    ) -> Port:
        positions = []
        for route in routes:
            side = route.inputs if is_input else route.outputs
            positions.append(route if side else opened(route))
        self._paint(self.side(edge), color, tuple(positions))
        return Port(self, color, edge, is_input, size)

    def _all(self) -> list[Place]:
        return [(x, y) for y in range(self.height) for x in range(self.width)]

    def _set(self, places: Iterable[Place], name: str | Color, value: int | Color | None) -> None:
        given: int | Color | None = name if isinstance(name, Color) else value
        name = name.parameter_name if isinstance(name, Color) else name
        if given is None:
            raise PolyloomError(error("csl-layout-data", f"the parameter `{name}` was given no value"))
        for place in places:
            self._check(place)
            self.params.setdefault(place, {})[name] = given

    def _paint(self, places: Iterable[Place], color: Color, positions: tuple[RoutingPosition, ...]) -> None:
        for place in places:
            self._check(place)
            self.routes[place, color] = positions

    def _check(self, place: Place) -> None:
        if not (0 <= place[0] < self.width and 0 <= place[1] < self.height):
            raise PolyloomError(
                error(
                    "csl-layout-data",
                    f"PE {place} is not one of the {self.width} x {self.height} of `{self.name}`",
                )
            )
