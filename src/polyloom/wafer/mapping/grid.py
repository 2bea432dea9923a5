"""The four sides of the rectangle of PEs, and the lines along which data flows from and to them.

x grows to the east, y to the south; PE (0, -1) is north of PE (0, 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Literal

import islpy as isl

from polyloom.polyhedra.binding import PE_PARAMETERS, unbind_domain


class Side(Enum):
    """A side of the rectangle; the value is its name in messages and in the simulator."""

    NORTH = "north"
    SOUTH = "south"
    EAST = "east"
    WEST = "west"

    @property
    def port(self) -> Literal["north", "south", "east", "west"]:
        """The side's name, as the simulator spells it."""
        return self.value

    @property
    def opposite(self) -> Side:
        """The side across."""
        return _OPPOSITE[self]

    @property
    def step(self) -> tuple[int, int]:
        """The way from a PE to its neighbour on this side, as (x, y)."""
        return _STEP[self]

    @property
    def line(self) -> str:
        """The PE parameter that is fixed along a line which this side faces."""
        return "PE_X" if self in (Side.NORTH, Side.SOUTH) else "PE_Y"

    @property
    def axis(self) -> str:
        """The PE parameter that varies along such a line."""
        return "PE_Y" if self in (Side.NORTH, Side.SOUTH) else "PE_X"


_OPPOSITE = {
    Side.NORTH: Side.SOUTH,
    Side.SOUTH: Side.NORTH,
    Side.EAST: Side.WEST,
    Side.WEST: Side.EAST,
}
_STEP = {Side.NORTH: (0, -1), Side.SOUTH: (0, 1), Side.EAST: (1, 0), Side.WEST: (-1, 0)}


@dataclass(frozen=True)
class Grid:
    """The rectangle ``{ PE[0:width-1, 0:height-1] }``."""

    width: int
    height: int

    def positions(self, side: Side) -> int:
        """Return the number of external PEs on a side, of the rows or columns that it faces."""
        return self.width if side.line == "PE_X" else self.height

    def pes(self) -> isl.Set:
        """Return ``{ PE[x, y] }`` of the rectangle."""
        return _set_of(f"{{ PE[x, y] : 0 <= x < {self.width} and 0 <= y < {self.height} }}")

    def external(self, side: Side) -> isl.Set:
        """Return the external PEs that are adjacent on one side."""
        condition = {
            Side.NORTH: f"y = -1 and 0 <= x < {self.width}",
            Side.SOUTH: f"y = {self.height} and 0 <= x < {self.width}",
            Side.WEST: f"x = -1 and 0 <= y < {self.height}",
            Side.EAST: f"x = {self.width} and 0 <= y < {self.height}",
        }[side]
        return _set_of(f"{{ PE[x, y] : {condition} }}")

    def towards(self, side: Side) -> isl.Map:
        """Return ``{ PE[x, y] -> PE[x1, y1] }``: to every PE of the same line that is nearer to the side."""
        condition = {
            Side.NORTH: "x1 = x and y1 < y",
            Side.SOUTH: "x1 = x and y1 > y",
            Side.WEST: "y1 = y and x1 < x",
            Side.EAST: "y1 = y and x1 > x",
        }[side]
        lines = isl.Map(f"{{ PE[x, y] -> PE[x1, y1] : {condition} }}")
        return lines.intersect_domain(self.pes()).intersect_range(self.pes())


@lru_cache(maxsize=256)
def _set_of(text: str) -> isl.Set:
    """Return the set that a text says; the same few are asked for all the time."""
    return isl.Set(text)


def pes_of(points: isl.Set) -> isl.Set:
    """Return ``{ PE[x, y] }`` for which a set with parameters PE_X, PE_Y (and others) has points."""
    nothing = points.params().from_params()
    named = unbind_domain(nothing, "PE", PE_PARAMETERS).domain()
    return named.project_out(isl.dim_type.param, 0, named.dim(isl.dim_type.param)).coalesce()
