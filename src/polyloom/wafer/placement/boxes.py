"""Boxes of instances and of elements under a layout: what the guess of its cycles rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.ir.program import Access, Statement
from polyloom.wafer.placement.coordinates import Coordinate


@dataclass(frozen=True)
class Wishes:
    """What is known before the ports: which tensors move. ``leaving``: outputs with ports."""

    streamed: tuple[str, ...]
    leaving: tuple[str, ...]
    sparse: tuple[str, ...]


def local_extents(statement: Statement, *coordinates: Coordinate) -> list[int]:
    """Return how many values of each iterator are on one PE, or on all that agree in some coordinates."""
    extents = list(statement.domain)
    for coordinate in coordinates:
        for tile in coordinate.tiles:
            used = [k for k, c in enumerate(tile.expression.coefficients) if c]
            if len(used) == 1:
                extents[used[0]] = min(extents[used[0]], tile.size)
            elif used:  # a diagonal: as if the last iterator alone were cut
                extents[used[-1]] = max(1, min(extents[used[-1]], tile.size))
    return extents


def box_extents(access: Access, extents: Sequence[int]) -> tuple[int, ...]:
    """Return the extents of the box that a box of instances accesses."""
    return tuple(
        1 + sum(abs(c) * (n - 1) for c, n in zip(index.coefficients, extents, strict=True))
        for index in access.indices
    )


def elements(access: Access, extents: Sequence[int]) -> int:
    """Return the size of the box that a box of instances accesses."""
    return math.prod(box_extents(access, extents))
