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
from itertools import combinations, product

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.bounds import least_coordinate
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.access_order import strided, subscripts
from polyloom.scop.schedule.blocks.blocking import LEAST_DIMENSIONS, may_have_blocks, thickest
from polyloom.scop.schedule.hyperplanes import Edge, are_independent, rows_map
from polyloom.scop.schedule.index_set_splitting import edges_between, piece
from polyloom.scop.schedule.plan import (
    Blocks,
    Hyperplane,
    Leaf,
    Plan,
    Row,
    Sequential,
    has_wavefronts,
    row_of,
    score,
    statements_of,
)
from polyloom.scop.schedule.scheduling import arrange, inner_edges
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type

SIZE = 64
"""Points of a tile along either loop."""

TERMS = 128
"""Terms of a product that are combined at a time, so that what tiles read stays in the first caches."""

MAXIMUM_PIECES = 4
"""Convex pieces of a statement in a tile beside what comes first."""

Band = tuple[Hyperplane, Hyperplane]


def in_tiles(plans: Sequence[Plan], edges: Sequence[Edge], patterns: Patterns) -> tuple[Plan, ...] | None:
    """Return the plans with tiles in place of wavefronts; None where there are none, or one stays."""
    if not has_wavefronts(plans):
        return None
    found = tuple((has_wavefronts([p]) and _tiled(p, edges, patterns)) or p for p in plans)
    return None if has_wavefronts(found) else found


def goes_diagonally(plan: Plan) -> bool:
    """Whether a host loop goes along several axes of what a product writes: a wavefront of the source."""
    if not isinstance(plan, Sequential | Blocks):
        return False
    return any(_is_diagonal(s, row_of(plan.time, s)) for s in statements_of(plan) if may_have_blocks([s]))


def _is_diagonal(statement: ScopStatement, time: Row) -> bool:
    rows = [row for row in _rows_written(statement) if any(row)]
    time = time[: len(statement.iterators)]
    independent = are_independent(rows) and any(time)
    return (
        independent
        and not are_independent([*rows, time])
        and all(are_independent([row, time]) for row in rows)
    )


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
    """Yield pairs of axes of what is written, upwards or downwards, along which no edge goes backwards."""
    rows = [_rows_written(s) for s in statements]
    for axes in combinations(range(min(map(len, rows))), 2):
        planes = (list(_legal(statements, [found[axis] for found in rows], edges)) for axis in axes)
        for pair in product(*planes):
            if all(are_independent([plane[s.name] for plane in pair]) for s in statements):
                yield pair[0], pair[1]


def _rows_written(statement: ScopStatement) -> list[Row]:
    """Return the row of each subscript of what a statement writes; none where one is not affine."""
    size = len(statement.iterators)
    found = []
    for index in subscripts(statement, statement.target):
        values = [index.get_coefficient_val(_DIM.in_, k) for k in range(size)]
        if not all(value.is_int() for value in values):
            return []
        found.append(tuple(int(value.to_python()) for value in values))
    return found


def _legal(
    statements: Sequence[ScopStatement], rows: Sequence[Row], edges: Sequence[Edge]
) -> Iterator[Hyperplane]:
    for sign in (1, -1):
        plane = {s.name: tuple(sign * c for c in row) for s, row in zip(statements, rows, strict=True)}
        if all(_is_along(e, plane) for e in edges):
            yield plane


def _is_along(found: Edge, plane: Hyperplane) -> bool:
    """Whether an edge does not go backwards; updates of one element have to be in one tile."""
    from_, to = plane[found.source], plane[found.sink]
    if found.relaxed:
        return found.all_zero(from_, to)
    least = found.least(from_, to)
    return least is not None and least >= 0


@dataclass(frozen=True)
class _Begin:
    """Where blocks of a hyperplane begin: at ``first``, and further ones a multiple of their size away.

    ``sign``: -1 for loops that run downwards, which begin with their last step: the block that is cut off is
    the last in memory.
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
        self.terms = fresh("terms", {*taken, self.wave, self.tile})

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
            if len(left) > MAXIMUM_PIECES:
                return None
            pieces += [self._piece(statement, isl.Set.from_basic_set(part)) for part in left]
        edges = list(edges_between(pieces, self.edges))
        body = arrange(pieces, edges, self.patterns)
        products = [p for p in body if isinstance(p, Leaf) and p.statement.name in early]
        if len(products) < len(early):
            return None
        behind = 1 + max((body.index(p) for p in products), default=-1)
        before = (self._by_terms(p) if isinstance(p, Leaf) and p in products else p for p in body[:behind])
        return (*before, *self._in_rows(body[behind:], edges))

    def _in_rows(self, plans: tuple[Plan, ...], edges: Sequence[Edge]) -> tuple[Plan, ...]:
        """Return what else a tile does: as it is, or row by row where that goes through memory in order."""
        statements = [s for plan in plans for s in statements_of(plan)]
        names = {s.name for s in statements}
        here = [e for e in edges if {e.source, e.sink} <= names]
        found = [plans]
        for plane in self.band:
            rows = {s.name: row_of(plane, s) for s in statements}
            inner = arrange(statements, inner_edges(here, rows), self.patterns, (rows,))
            found.append((Sequential(rows, inner),))
        return min(found, key=lambda each: (strided(each), score(each)))

    def _by_terms(self, leaf: Leaf) -> Plan:
        """Return a product as several of ``TERMS`` terms each, where it is clear where they begin."""
        points = leaf.statement.domain
        inner = _inner(points, self._rows(leaf.statement))
        if len(inner) != 1:
            return leaf
        row = tuple(int(k == inner[0]) for k in range(points.dim(_DIM.set)))
        values = rows_map(points.get_space(), row)
        least = values.intersect_domain(points).range().lexmin()
        if least.as_pw_multi_aff().n_piece() != 1:  # a lost piece hurts nobody: the set itself is used
            return leaf
        apart = isl.Map.from_domain_and_range(least, isl.Set("{ [k] }")).deltas_map()
        steps = isl.Set(f"[{self.terms}] -> {{ [d] : 0 <= d - {TERMS} * {self.terms} < {TERMS} }}")
        here = apart.curry().range().unwrap().intersect_range(steps).domain()
        part = self._piece(leaf.statement, values.intersect_range(here).domain().intersect(points).coalesce())
        time = {leaf.statement.name: row}
        return Blocks(time=time, iterator=self.terms, size=TERMS, body=(replace(leaf, statement=part),))

    def _rows(self, statement: ScopStatement) -> list[Row]:
        return [row_of(plane, statement) for plane in self.band]

    def _inside(self, statement: ScopStatement) -> isl.Set:
        """Return the instances of a tile: block ``wave - tile`` along one loop, ``tile`` along the other."""
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
        """Return convex sets of instances to which no edge leads in their tile, but from what comes first."""
        ready = {e.source for e in self.edges} - {e.sink for e in self.edges if not e.relaxed}
        entering = [
            e.relation.intersect_domain(whole[e.source]).intersect_range(whole[e.sink]).range()
            for e in self.edges
            if e.sink == statement.name and not e.relaxed and e.source not in ready
        ]
        found = thickest(reduce(isl.Set.subtract, entering, whole[statement.name]).coalesce())
        return [_terms_of_all(part, self._rows(statement)) for part in found]

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
    inner = _inner(points, rows)
    outer = [k for k in range(points.dim(_DIM.set)) if k not in inner]
    around = _lifted(points, inner)
    values = _lifted(points, outer)
    missing = _lifted(around.intersect(values).subtract(points), outer)
    return points.subtract(missing).coalesce()


def _inner(points: isl.Set, rows: Sequence[Row]) -> list[int]:
    """Return the iterators that tiles of some hyperplanes do not cut."""
    return [k for k in range(points.dim(_DIM.set)) if not any(row[k] for row in rows)]


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
