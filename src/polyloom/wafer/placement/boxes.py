"""Boxes of instances and of elements under a layout: what the estimate of its cycles rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyloom.ir.host import Index, View
from polyloom.ir.statements import Statement
from polyloom.wafer.placement.coordinates import Coordinate


@dataclass(frozen=True)
class Movement:
    """What is known before the ports: which tensors move. ``leaving``: outputs with ports."""

    streamed: tuple[str, ...]
    leaving: tuple[str, ...]
    sparse: tuple[str, ...]


@dataclass(frozen=True)
class LocalBox:
    """Instances on a PE: ``counts``: how many values of each iterator; ``steps``: from one to the next."""

    counts: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of instances."""
        return math.prod(self.counts)

    def coefficients(self, index: Index) -> tuple[int, ...]:
        """Return by how much an index changes from one value of each iterator to the next."""
        return tuple(c * step for c, step in zip(index.coefficients, self.steps, strict=True))


def local_box(statement: Statement, *coordinates: Coordinate) -> LocalBox:
    """Return the instances on one PE, or on all that agree in some coordinates."""
    counts, steps = list(statement.domain), [1] * len(statement.domain)
    for coordinate in coordinates:
        for tile in coordinate.tiles:
            used = [k for k, c in enumerate(tile.expression.coefficients) if c]
            if len(used) == 1:
                most = -(-counts[used[0]] // tile.cycle) if tile.cycle else tile.size
                counts[used[0]] = min(counts[used[0]], most)
                steps[used[0]] = tile.cycle or 1
            elif used:  # a diagonal: as if the last iterator alone were cut
                counts[used[-1]] = max(1, min(counts[used[-1]], tile.size))
    return LocalBox(tuple(counts), tuple(steps))


def box_extents(access: View, box: LocalBox) -> tuple[int, ...]:
    """Return the extents of the box of elements that a box of instances accesses."""
    return tuple(1 + sum(_reaches(index, box)) for index in access.affine)


def elements(access: View, box: LocalBox) -> int:
    """Return the size of the box of elements that a box of instances accesses: what is stored."""
    return math.prod(box_extents(access, box))


def used_extents(access: View, box: LocalBox) -> tuple[int, ...]:
    """Return the extents of that box without what lies between elements: ``x[2*w]`` skips every other one."""
    return tuple(1 + sum(_reaches(i, box)) // max(1, math.gcd(*_moving(i, box))) for i in access.affine)


def used_elements(access: View, box: LocalBox) -> int:
    """Return how many elements of that box can be accessed: what arrives."""
    return math.prod(used_extents(access, box))


def _reaches(index: Index, box: LocalBox) -> list[int]:
    return [abs(c) * (n - 1) for c, n in zip(box.coefficients(index), box.counts, strict=True)]


def _moving(index: Index, box: LocalBox) -> list[int]:
    return [c for c, n in zip(box.coefficients(index), box.counts, strict=True) if n > 1]
