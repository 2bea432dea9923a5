"""Blocks of a host loop whose later columns wait: tiles of them go through all steps of the block.

Before:                                    After, for blocks of 8 steps:
for k: q[i][k] = A[i][k] / r[k][k];        for k in the block: the same for columns j in the block;
       r[k][j] = sum over i of             in parallel for tiles of columns j behind the block:
                 q[i][k] * A[i][j];          for k in the block: the same for j in the tile
       A[i][j] -= q[i][k] * r[k][j]

A tile of columns stays in a cache for all steps of a block, where the loops as written go through all columns
in each step. No instance depends on a later column, so those behind the block wait for its end; what waits
does not leave its column, so tiles have nothing to do with each other. Dependences say both, as sets.

Source: Bondhugula et al. 2008 (tiles along permutable loops: idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.bounds import width
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.hyperplanes import Edge, forward_planes, instances_from
from polyloom.scop.schedule.index_set_splitting import edges_between, piece
from polyloom.scop.schedule.plan import Blocks, Hyperplane, Plan, row_of
from polyloom.scop.schedule.scheduling import arrange
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type

STEPS = 8
"""Steps of a block, its own columns go step by step, a few at a time: with 32 a third of the time."""

SIZE = 64
"""Columns of a tile: 1,000 rows of them in double are half a megabyte, which second caches hold."""

LEAST_DIMENSIONS = 3
"""Of an update that waits: a step, a column, and what makes columns worth to be kept in a cache."""

LEAST_POINTS = 1 << 15
"""Instances of such an update in a step, where they are known: fewer stay in a cache without tiles."""


def in_columns(
    statements: Sequence[ScopStatement],
    edges: Sequence[Edge],
    time: Hyperplane,
    around: tuple[Hyperplane, ...],
    patterns: Patterns,
) -> Blocks | None:
    """Return a host loop in blocks of steps; None where no columns can wait.

    ``edges``: those inside of one step of the loops ``around``.
    """
    large = {s.name for s in statements if _is_large(s, time, around)}
    if not large:
        return None
    rows = {s.name: row_of(time, s) for s in statements}
    for plane in forward_planes(statements, edges):
        moved = [s for s in statements if plane[s.name] != rows[s.name]]
        if len(moved) < len(statements) and any(s.name in large for s in moved):
            columns = _Columns(
                statements=statements,
                edges=edges,
                rows=rows,
                plane=plane,
                large=large,
                patterns=patterns,
                around=around,
            )
            found = columns.plan()
            if found is not None:
                return found
    return None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Columns:
    """A host loop's steps ``rows`` and the columns of a ``plane``, along which no edge goes backwards.

    ``large``: the updates for which columns are worth to be kept.
    """

    statements: Sequence[ScopStatement]
    edges: Sequence[Edge]
    rows: Hyperplane
    plane: Hyperplane
    large: AbstractSet[str]
    patterns: Patterns
    around: tuple[Hyperplane, ...]

    def plan(self) -> Blocks | None:
        """Return the loop in blocks; None where columns that wait depend on each other, or none do."""
        taken = {name for s in self.statements for name in parameter_names(s.domain)}
        block = fresh("block", taken)
        tile = fresh("tile", {*taken, block})
        begin = {block: STEPS}
        here = self._instances(self.rows, begin, size=STEPS)
        late = self._instances(self.plane, begin, STEPS)
        behind = {name: part.intersect(late[name]) for name, part in here.items()}
        if all(behind[name].is_empty() for name in self.large) or not self._are_apart(behind):
            return None
        first = self._pieces({name: part.subtract(behind[name]) for name, part in here.items()}, block)
        tiles = self._instances(self.plane, {**begin, tile: SIZE}, STEPS, SIZE)
        second = self._pieces({name: part.intersect(tiles[name]) for name, part in behind.items()}, tile)
        body = self._arranged(second)
        waiting = Blocks(time=self.plane, iterator=tile, size=SIZE, body=body, parallel=True)
        return Blocks(time=self.rows, iterator=block, size=STEPS, body=(*self._arranged(first), waiting))

    def _instances(
        self, plane: Hyperplane, begin: Mapping[str, int], offset: int = 0, size: int | None = None
    ) -> dict[str, isl.Set]:
        return {s.name: instances_from(s, plane[s.name], begin, offset, size) for s in self.statements}

    def _are_apart(self, behind: Mapping[str, isl.Set]) -> bool:
        """Whether no edge leads from one column that waits to another."""
        inside = (e.between(behind) for e in self.edges)
        return all(e is None or e.all_zero(self.plane[e.source], self.plane[e.sink]) for e in inside)

    def _pieces(self, parts: Mapping[str, isl.Set], number: str) -> list[ScopStatement]:
        names = self.patterns.names
        return [
            piece(s, part, names.of((number, s.name, "columns"), s.name))
            for s in self.statements
            if not (part := parts[s.name].coalesce()).is_empty()
        ]

    def _arranged(self, pieces: Sequence[ScopStatement]) -> tuple[Plan, ...]:
        return arrange(pieces, list(edges_between(pieces, self.edges)), self.patterns, self.around)


def _is_large(statement: ScopStatement, time: Hyperplane, around: Sequence[Hyperplane]) -> bool:
    """Whether a step of a statement may have many instances, of two dimensions at least."""
    planes = [row_of(plane, statement) for plane in (time, *around)]
    inside = [k for k in range(len(statement.iterators)) if not any(row[k] for row in planes)]
    sizes = [width(statement.domain, k) for k in inside]
    return len(inside) >= LEAST_DIMENSIONS - 1 and prod(sizes) >= LEAST_POINTS
