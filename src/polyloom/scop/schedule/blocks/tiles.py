"""Tiles of a recurrence along two loops: what earlier tiles leave is combined first, as a product.

Before:                                    After:
for i = n - 1 .. 0: for j = i + 1 .. n:    for waves of tiles: parallel for the tiles (I, J) of a wave:
  T[i][j] = max over k from i + 1 to j       T[i][j] = max over k between I and J of T[i][k] + T[k + 1][j];
            of T[i][k] + T[k + 1][j]         for i in I, j in J: the same for k in I and for k in J

Along both loops no dependence goes backwards, and no element is updated in two tiles, so the tiles of a wave
have nothing to do with each other. Those instances come first to which no dependence leads inside their tile.

Source: Bondhugula et al. 2008 (tiles along permutable loops); Galil and Park 1994 (blocks: idea). Not in the
papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, islice

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.bounds import least_coordinate
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.blocks.blocking import LEAST_DIMENSIONS, thickest
from polyloom.scop.schedule.hyperplanes import Edge, are_independent, hyperplanes, rows_map
from polyloom.scop.schedule.index_set_splitting import edges_between, piece
from polyloom.scop.schedule.plan import (
    Blocks,
    Hyperplane,
    Leaf,
    Plan,
    Row,
    Sequential,
    has_wavefronts,
    statements_of,
)
from polyloom.scop.schedule.scheduling import arrange
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type

SIZE = 64
"""Points of a tile along either loop."""

MAXIMUM_PLANES = 6
"""Hyperplanes of which pairs are tried."""

Band = tuple[Hyperplane, Hyperplane]


def in_tiles(plans: Sequence[Plan], edges: Sequence[Edge], patterns: Patterns) -> tuple[Plan, ...] | None:
    """Return the plans with tiles in place of all wavefronts; None where there are none for one of them."""
    found = [_tiled(plan, edges, patterns) if has_wavefronts([plan]) else plan for plan in plans]
    return None if any(plan is None for plan in found) else tuple(plan for plan in found if plan is not None)


def _tiled(plan: Plan, edges: Sequence[Edge], patterns: Patterns) -> Plan | None:
    statements = statements_of(plan)
    if not isinstance(plan, Sequential) or any(s.name not in plan.time for s in statements):
        return None
    names = {s.name for s in statements}
    own = [e for e in edges if {e.source, e.sink} <= names]
    products = {e.source for e in own if _may_be_product(e)}
    for band in _bands(statements, own) if products else ():
        found = _Tiles(statements, own, replace(patterns, wavefronts=False), band).plan(products)
        if found is not None:
            return found
    return None


def _may_be_product(found: Edge) -> bool:
    is_update = found.relaxed and found.source == found.sink
    return is_update and found.relation.dim(isl.dim_type.in_) >= LEAST_DIMENSIONS


def _bands(statements: Sequence[ScopStatement], edges: Sequence[Edge]) -> Iterator[Band]:
    """Yield pairs of hyperplanes along which no edge goes backwards, and all updates of an element agree."""
    planes = [
        plane
        for plane in islice(hyperplanes(statements, edges), MAXIMUM_PLANES)
        if all(e.all_zero(plane[e.source], plane[e.sink]) for e in edges if e.relaxed)
    ]
    for pair in combinations(planes, 2):
        if all(are_independent([plane[s.name] for plane in pair]) for s in statements):
            yield pair


@dataclass(frozen=True)
class _Begin:
    """Where blocks of a hyperplane begin: at ``first`` plus multiples of their size, in ``sign`` times its steps.

    Loops that run downwards begin at their last step, so that a block whose end is cut off is the last in memory.
    """

    sign: int
    first: int


def _begin(statements: Sequence[ScopStatement], plane: Hyperplane) -> _Begin:
    sign = -1 if any(c < 0 for row in plane.values() for c in row) else 1
    least = []
    for statement in statements:
        row = tuple(sign * c for c in plane[statement.name])
        steps = rows_map(statement.domain.get_space(), row).intersect_domain(statement.domain).range()
        least.append(least_coordinate(steps, 0))
    known = [int(value.to_python()) for value in least if value.is_int()]
    return _Begin(sign, min(known) if len(known) == len(least) else 0)


class _Tiles:
    """The tiles of a band: their instances have the number of a wave, and of a tile in it, as parameters."""

    def __init__(
        self, statements: Sequence[ScopStatement], edges: Sequence[Edge], patterns: Patterns, band: Band
    ) -> None:
        self.statements, self.edges, self.patterns, self.band = statements, edges, patterns, band
        self.pieces = 0
        self.begins = [_begin(statements, plane) for plane in band]
        taken = {name for s in statements for name in parameter_names(s.domain)}
        self.wave = fresh("wave", taken)
        self.tile = fresh("tile", {*taken, self.wave})

    def plan(self, products: set[str]) -> Plan | None:
        """Return the loops over the tiles; None where nothing of ``products`` can come first in them."""
        whole = {s.name: self._inside(s) for s in self.statements}
        first = {s.name: self._first(s, whole) for s in self.statements if s.name in products}
        parts = [part for found in first.values() for part in found]
        if not parts:
            return None
        between = reduce(isl.Set.union, (part.params() for part in parts)).coalesce()
        every = reduce(isl.Set.union, (domain.params() for domain in whole.values()))
        ends = every.subtract(between).coalesce()
        body = self._body(whole, first, between)
        if body is None:
            return None
        others = [isl.Set.from_basic_set(part) for part in ends.make_disjoint().get_basic_sets()]
        for tiles in others:
            body += self._body(whole, {}, tiles) or ()
        inner = Blocks(time=self.band[1], iterator=self.tile, size=SIZE, body=body, parallel=True)
        return Blocks(time=_sum(*self.band), iterator=self.wave, size=SIZE, body=(inner,))

    def _body(
        self, whole: Mapping[str, isl.Set], first: Mapping[str, Sequence[isl.Set]], tiles: isl.Set
    ) -> tuple[Plan, ...] | None:
        """Return the plans of some of the tiles; None where what should come first is no md_hom."""
        pieces: list[ScopStatement] = []
        early: set[str] = set()
        for statement in self.statements:
            ready = [part.intersect_params(tiles) for part in first.get(statement.name, ())]
            rest = reduce(isl.Set.subtract, ready, whole[statement.name].intersect_params(tiles))
            for part in ready:
                pieces.append(self._piece(statement, part))
                early.add(pieces[-1].name)
            left = rest.coalesce().make_disjoint().get_basic_sets()
            pieces += [self._piece(statement, isl.Set.from_basic_set(part)) for part in left]
        body = arrange(pieces, list(edges_between(pieces, self.edges)), self.patterns)
        leaves = {plan.statement.name for plan in body if isinstance(plan, Leaf)}
        return body if early <= leaves else None

    def _inside(self, statement: ScopStatement) -> isl.Set:
        """Return the instances of a tile: in block ``wave - tile`` along one loop, ``tile`` along the other."""
        rows = (plane[statement.name] for plane in self.band)
        one, other = (rows_map(statement.domain.get_space(), row) for row in rows)
        numbers = f"{self.wave} - {self.tile}", self.tile
        within = (
            f"{begin.first} <= {begin.sign} * (t{k} - {SIZE} * ({number})) < {begin.first + SIZE}"
            for k, (begin, number) in enumerate(zip(self.begins, numbers, strict=True))
        )
        steps = isl.Set(f"[{self.wave}, {self.tile}] -> {{ [t0, t1] : {' and '.join(within)} }}")
        both = one.flat_range_product(other)
        return statement.domain.intersect(both.intersect_range(steps).domain()).coalesce()

    def _first(self, statement: ScopStatement, whole: Mapping[str, isl.Set]) -> list[isl.Set]:
        """Return the convex sets of instances to which no edge leads in their tile, but from what comes first."""
        ready = {e.source for e in self.edges} - {e.sink for e in self.edges if not e.relaxed}
        entering = [
            e.relation.intersect_domain(whole[e.source]).intersect_range(whole[e.sink]).range()
            for e in self.edges
            if e.sink == statement.name and not e.relaxed and e.source not in ready
        ]
        found = thickest(reduce(isl.Set.subtract, entering, whole[statement.name]).coalesce())
        return [_terms_of_all(part, [plane[statement.name] for plane in self.band]) for part in found]

    def _piece(self, statement: ScopStatement, domain: isl.Set) -> ScopStatement:
        self.pieces += 1
        name = self.patterns.names.of(
            (self.wave, statement.name, self.pieces), f"{statement.name}_{self.pieces}"
        )
        return piece(statement, domain, name)


def _terms_of_all(points: isl.Set, rows: Sequence[Row]) -> isl.Set:
    """Return the instances whose inner iterators have values that they have at all points of a tile.

    ``{ [i, k] : i < 4 and k > i }`` with rows of ``i`` becomes ``{ [i, k] : i < 4 and k > 3 }``.
    """
    size = points.dim(_DIM.set)
    inner = [k for k in range(size) if not any(row[k] for row in rows)]
    outer = [k for k in range(size) if k not in inner]
    around = _lifted(points, inner)
    values = _lifted(points, outer)
    missing = _lifted(around.intersect(values).subtract(points), outer)
    return points.subtract(missing).coalesce()


def _lifted(points: isl.Set, dimensions: Sequence[int]) -> isl.Set:
    """Return the points that differ from some of ``points`` along the dimensions alone."""
    space = points.get_space()
    for k in reversed(dimensions):
        points = points.project_out(_DIM.set, k, 1)
    for k in dimensions:
        points = points.insert_dims(_DIM.set, k, 1)
    return points.set_tuple_name(space.get_tuple_name(_DIM.set))


def _sum(one: Hyperplane, other: Hyperplane) -> Hyperplane:
    return {name: _added(row, other[name]) for name, row in one.items()}


def _added(one: Row, other: Row) -> Row:
    return tuple(a + b for a, b in zip(one, other, strict=True))
