"""Outlines of tiles in two dimensions: of each tile the first and the last point in some of its rows.

Nothing is enumerated but the tiles of a small window and few rows of each: ends of rows are minima and maxima
of sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import IntExpression, Name

_DIM = isl.dim_type
MOST_ROWS = 12
"""Rows of a tile whose ends are asked for, the first and the last among them."""


@dataclass(frozen=True)
class Outline:
    """A tile, by the values of its loops, and (row, first point, last point) of some of its rows.

    ``full``: whether all points between the first and the last one of these rows are in the tile.
    """

    tile: tuple[int, ...]
    rows: tuple[tuple[int, int, int], ...]
    full: bool = True


def outlines(
    scope: Scope, tile: Sequence[tuple[str, int]], row: IntExpression, point: IntExpression
) -> tuple[Outline, ...]:
    """Return the outlines of tiles, in the order of their loops' values.

    ``tile``: the loops that number the tiles, and of how many of the first values of each tiles are wanted
    (0: all of them).
    """
    names = [Name(name) for name, _ in tile]
    found = scope.tuples("", (*names, row, point)).range()
    for k, (_, most) in enumerate(tile):
        if found.is_empty():
            return ()
        if most:
            found = found.upper_bound_val(_DIM.set, k, least_coordinate(found, k).add(most - 1))
    values: list[tuple[int, ...]] = []
    tiles = found.project_out(_DIM.set, len(tile), 2)
    tiles.foreach_point(lambda at: values.append(_coordinates(at, len(tile))))
    return tuple(_outline(found, each) for each in sorted(values))


def _coordinates(point: isl.Point, count: int) -> tuple[int, ...]:
    return tuple(int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in range(count))


def _outline(found: isl.Set, tile: tuple[int, ...]) -> Outline:
    for k, value in enumerate(tile):
        found = found.fix_val(_DIM.set, k, isl_integer(value))
    here = found.project_out(_DIM.set, 0, len(tile))
    first, last = _ends(here, 0)
    step = max(1, -(-(last - first) // (MOST_ROWS - 1)))
    rows, full = [], True
    for row in sorted({*range(first, last + 1, step), last}):
        there = here.fix_val(_DIM.set, 0, isl_integer(row))
        if not there.is_empty():
            start, end = _ends(there, 1)
            between = isl.Set(f"{{ [r, x] : r = {row} and {start} <= x <= {end} }}")
            full = full and between.is_subset(there.reset_tuple_id())
            rows.append((row, start, end))
    return Outline(tile, tuple(rows), full)


def _ends(points: isl.Set, k: int) -> tuple[int, int]:
    return int(least_coordinate(points, k).to_python()), int(greatest_coordinate(points, k).to_python())
