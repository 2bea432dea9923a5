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
            used = tile.expression.used
            if len(used) == 1:
                k = used[0][0]
                most = -(-counts[k] // tile.cycle) if tile.cycle else tile.size
                counts[k] = min(counts[k], most)
                steps[k] = tile.cycle or 1
            elif used:  # a diagonal: as if the last iterator alone were cut
                k = used[-1][0]
                counts[k] = max(1, min(counts[k], tile.size))
    return LocalBox(tuple(counts), tuple(steps))


def box_extents(access: View, box: LocalBox) -> tuple[int, ...]:
    """Return the extents of the box of elements that a box of instances accesses."""
    return tuple(1 + _reach(index, box) for index in access.affine)


def elements(access: View, box: LocalBox) -> int:
    """Return the size of the box of elements that a box of instances accesses: what is stored."""
    return math.prod(box_extents(access, box))


def used_extents(access: View, box: LocalBox) -> tuple[int, ...]:
    """Return the extents of that box without what lies between elements: ``x[2*w]`` skips every other one."""
    return tuple(1 + _reach(index, box) // _gap(index, box) for index in access.affine)


def used_elements(access: View, box: LocalBox) -> int:
    """Return how many elements of that box can be accessed: what arrives."""
    return math.prod(used_extents(access, box))


def _reach(index: Index, box: LocalBox) -> int:
    """Return how far the greatest value of an index is from the least one."""
    counts, steps = box.counts, box.steps
    return sum(abs(c) * steps[k] * (counts[k] - 1) for k, c in index.used)


def _gap(index: Index, box: LocalBox) -> int:
    """Return a number that divides the distances between all values of an index."""
    return math.gcd(*(c * box.steps[k] for k, c in index.used if box.counts[k] > 1)) or 1
