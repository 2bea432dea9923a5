"""Placements that the user gives, understood as tiles of iterators where they are."""

from __future__ import annotations

import islpy as isl

from polyloom.ir.host import Index
from polyloom.ir.statements import Statement
from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate
from polyloom.wafer.placement.coordinates import Coordinate, Place, Tile

_DIM = isl.dim_type


def place_of(statement: Statement, relation: isl.Map) -> Place:
    """Return where a given placement puts a statement; what is no tile of one iterator counts as one PE.

    Only estimates rest on it: ports and checks use the relation.
    """
    return Place(*(_coordinate(statement, relation.project_out(_DIM.out, 1 - axis, 1)) for axis in (0, 1)))


def _coordinate(statement: Statement, positions: isl.Map) -> Coordinate:
    last = int(greatest_coordinate(positions.range(), 0).to_python())
    if last == 0 or int(least_coordinate(positions.range(), 0).to_python()) == last:
        return Coordinate((), last)
    for k in range(len(statement.domain)):
        tile = _tile_of(statement, k, positions)
        if tile is not None:
            return Coordinate((tile,))
    return Coordinate()


def _tile_of(statement: Statement, k: int, positions: isl.Map) -> Tile | None:
    """Return the tile if positions are ``floor(iterator k / size)``."""
    first = positions.intersect_range(isl.Set("{ [0] }"))
    if first.is_empty():
        return None
    size = 1 + int(greatest_coordinate(first.domain(), k).to_python())
    names = ", ".join(f"i{n}" for n in range(len(statement.domain)))
    expected = isl.Map(f"{{ {statement.name}[{names}] -> [i{k}//{size}] }}").intersect_domain(
        positions.domain()
    )
    if not positions.is_equal(expected):
        return None
    return Tile(Index.unit(k, len(statement.domain)), 0, statement.domain[k] - 1, size)
