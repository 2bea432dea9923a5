"""A border row or column of the rectangle of PEs: positions along it, and the ports that reach it.

Positions count along the line from its low end (west or north): they are the PE's own coordinate. A
port that faces the line has the position of the PE beside it; one at the line's low end has -1, one at
its high end the length of the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import islpy as isl

from polyloom.wafer.mapping.grid import Grid, Side


class Entry(Enum):
    """How a port meets the line: beside it, or at one of its ends."""

    BESIDE = "beside"
    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class BorderLine:
    """The outermost row or column on ``side`` of ``grid``."""

    grid: Grid
    side: Side

    @property
    def length(self) -> int:
        """Number of PEs on the line."""
        return self.grid.positions(self.side)

    @property
    def low(self) -> Side:
        """The direction in which positions fall."""
        return Side.WEST if self.side.line == "PE_X" else Side.NORTH

    @property
    def high(self) -> Side:
        """The direction in which positions rise."""
        return self.low.opposite

    def towards(self, step: int) -> Side:
        """Return the direction of a step along the line, 1 or -1."""
        return self.high if step > 0 else self.low

    @property
    def across(self) -> int:
        """The coordinate that all PEs of the line share."""
        last = self.grid.height if self.side.line == "PE_X" else self.grid.width
        return 0 if self.side in (Side.NORTH, Side.WEST) else last - 1

    @property
    def parameter(self) -> str:
        """The PE parameter that is the position."""
        return self.side.line

    def side_of(self, entry: Entry) -> Side:
        """Return the side of the rectangle on which such a port lies."""
        return {Entry.BESIDE: self.side, Entry.LOW: self.low, Entry.HIGH: self.high}[entry]

    def point(self, position: str, across: str | None = None) -> str:
        """Return ``x, y`` of a position as text."""
        other = str(self.across) if across is None else across
        return f"{position}, {other}" if self.side.line == "PE_X" else f"{other}, {position}"

    def pes(self) -> isl.Set:
        """Return ``{ PE[x, y] }`` of the line."""
        return isl.Set(f"{{ PE[{self.point('c')}] : 0 <= c < {self.length} }}")

    def at(self, positions: isl.Set) -> isl.Set:
        """Return ``{ PE[x, y] }`` of positions ``{ pos[c] }``."""
        return positions.apply(isl.Map(f"{{ pos[c] -> PE[{self.point('c')}] }}"))

    def line_of(self) -> isl.Map:
        """Return ``{ PE[x, y] -> line[l] }``: the row or column that a PE of the rectangle lies in."""
        return isl.Map(f"{{ PE[{self.point('l', 'o')}] -> line[l] }}")

    def port_positions(self) -> isl.Map:
        """Return ``{ PE[x, y] -> port[p] }`` of the external PEs that reach the line."""
        n = self.length
        outside = self.across + sum(self.side.step)
        beside = f"PE[{self.point('p', str(outside))}] -> port[p] : 0 <= p < {n}"
        ends = (f"PE[{self.point(str(p))}] -> port[{p}]" for p in (-1, n))
        return isl.Map(f"{{ {'; '.join([beside, *ends])} }}")

    def entry_of(self, entry: Entry) -> str:
        """Return the condition on ``p`` for ports of a kind."""
        n = self.length
        return {Entry.BESIDE: f"0 <= p < {n}", Entry.LOW: "p = -1", Entry.HIGH: f"p = {n}"}[entry]

    def pe_of_port(self) -> isl.Map:
        """Return ``{ port[p] -> pos[c] }``: the PE of the line that a port is next to."""
        n = self.length
        return isl.Map(
            f"{{ port[p] -> pos[p] : 0 <= p < {n}; port[-1] -> pos[0]; port[{n}] -> pos[{n - 1}] }}"
        )


def numbered(prefix: str, rank: int) -> list[str]:
    """Return names for index dimensions: ``k0``, ``k1``, ..."""
    return [f"{prefix}{k}" for k in range(rank)]
