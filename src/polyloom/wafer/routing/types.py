"""Routes of a color on sets of PEs, and streams and chains with their colors.

A stream has one color. A chain has two, which alternate along the line, since a router takes a color from
one direction only.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.wafer.dataflow.reductions import Chain
from polyloom.wafer.dataflow.streams import Stream

RAMP = "ramp"
"""The way between a router and its PE."""


@dataclass(frozen=True, eq=False)
class Route:
    """On ``pes``, wavelets of a color that come from ``source`` go to ``targets`` (sides or RAMP).

    ``then``: where they come from when the router's switch is turned; None where it has none.
    """

    color: int
    pes: isl.Set
    source: str
    targets: tuple[str, ...]
    then: str | None = None


@dataclass(frozen=True, eq=False)
class ColoredStream:
    """A stream with its color."""

    stream: Stream
    color: int


@dataclass(frozen=True, eq=False)
class ColoredChain:
    """A chain with its two colors: a PE of ``chain.odd()`` sends on the second, any other on the first."""

    chain: Chain
    colors: tuple[int, int]


@dataclass(frozen=True, eq=False)
class ColoredLink:
    """A link along lines that routers copy, with its color. ``tensors``: what goes there."""

    link: str
    tensors: tuple[str, ...]
    color: int

    @property
    def what(self) -> str:
        """What the color carries, for a person."""
        return f"{', '.join(self.tensors)} {self.link.replace('_', ' ')}"


def split_by_color(chain: Chain) -> tuple[isl.Set, isl.Set]:
    """Return the PEs that send on the first and on the second color of a chain."""
    odd = chain.odd()
    return isl.Set("{ PE[x, y] }").subtract(odd), odd


def alternating_uses(what: str, pair: tuple[int, int]) -> list[tuple[int, str]]:
    """Return each color of a pair and what it carries; one of them where only one is needed."""
    even, odd = pair
    return [(even, what)] if even == odd else [(even, f"{what}, even PEs"), (odd, f"{what}, odd PEs")]
