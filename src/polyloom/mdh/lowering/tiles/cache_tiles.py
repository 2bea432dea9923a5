"""Loops over tiles whose elements stay in a cache.

    for i from 0 to m:               for k_tile from 0 to p step 128:
      total = 0.0                      for i from 0 to m:
      for k from 0 to p:        ->       total = waiting[i]
        total = total + A[i, k]          for k from k_tile to min(p, k_tile + 128):
      y[i] = total                         total = total + A[i, k]
                                         waiting[i] = total

Where tiles of a reduction stand around those of kept dimensions, totals wait in an array from one tile to the
next; it is filled before, and results are finished after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.naive import partial_totals, total_types, totals
from polyloom.mdh.lowering.tiles.points import loaded
from polyloom.mdh.lowering.tiles.strips import Band, band_of, nested, with_strips
from polyloom.mdh.tree.nodes import (
    ZERO,
    Array,
    Code,
    For,
    If,
    Kind,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import bounded, limited, linear_in, not_negative, plus, spread
from polyloom.mdh.tree.rewrite import renamed_array, walk
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in


def cache_tiles(tiles: Tiles, code: Code) -> Code:
    """Cut loops into strips of a cache tile each, and let totals wait where a reduction's strips are outside.

    Keeps true: each point is combined once, into the total of its kept point; in order, where that counts.
    """
    loops, body = band_of(code)
    shared, points = _shared(loops)
    tiled = tiles.facts.tiled_order
    if not tiles.facts.waits:
        outer = [d for d in tiled if d in tiles.kept]
        reduced = [d for d in tiled if d in tiles.reduced]
        return nested((*shared, *_cut(tiles, outer, points)), _reduction_cut(tiles, reduced, body))
    first = next(k for k, d in enumerate(tiled) if d in tiles.reduced)
    points = _cut(tiles, tiled[:first], points)
    return nested((*shared, *points[:first]), _waiting(tiles, tiled[first:], points[first:], body))


def tile_name(tiles: Tiles, d: int) -> str:
    """Return the iterator over a dimension's cache tiles."""
    return tiles.name("tile", d, "tile")


def low(tiles: Tiles, d: int) -> IntExpression:
    """Return where the cache tile at hand begins."""
    if tiles.facts.is_tiled(d):
        return Name(tile_name(tiles, d))
    return group_low(tiles, d)


def group_low(tiles: Tiles, d: int) -> IntExpression:
    """Return where the group at hand begins."""
    size = tiles.schedule.group[d]
    if d in tiles.parts:
        return plus(ZERO, Name(tiles.part(d)), size)
    return Name(tiles.name("group", d, "group")) if size and d in tiles.kept else ZERO


def _shared(loops: Band) -> tuple[Band, Band]:
    count = sum(loop.kind is Kind.GROUP for loop in loops)
    return loops[:count], loops[count:]


def _cut(tiles: Tiles, dimensions: Sequence[int], loops: Band) -> Band:
    """Put loops over the cache tiles of some dimensions around all others."""
    for place, d in enumerate(dimensions):
        size, covered = tiles.schedule.local[d], tiles.facts.covered(d)
        divides = tiles.facts.is_multiple(d, size) and covered is not None and covered % size == 0
        whole = divides and not tiles.domain.is_bounded(d)
        name = tile_name(tiles, d)
        loops = with_strips(tiles, loops, tiles.point(d), name, size, place=place, whole=whole)
    return loops


def _reduction_cut(tiles: Tiles, dimensions: Sequence[int], body: Code) -> Code:
    if not dimensions and not tiles.meets:
        return body
    found: list[Statement] = []
    for statement in body:
        match statement:
            case If(condition=condition, body=inner) if is_reduction(tiles, inner):
                found.append(If(condition, _reduction_cut(tiles, dimensions, inner)))
            case For():
                loops, inner = band_of((statement,))
                if tiles.meets:
                    found += _needed(tiles, dimensions, loops, inner)
                else:
                    found += nested(_cut(tiles, dimensions, loops), inner)
            case _:
                found.append(statement)
    return tuple(found)


def _needed(tiles: Tiles, dimensions: Sequence[int], loops: Band, body: Code) -> Code:
    """Return as much of a reduction as any point of a cache tile needs: all items go through the same."""
    ranges = [_range(tiles, d) for d in tiles.kept]
    bounds = [e for c in (*tiles.domain.guard, *tiles.domain.written) for e in not_negative(c) or ()]
    reduced = {loop.iterator for loop in loops}
    somewhere: list[IntExpression] = []
    for bound in bounds:
        spoken = names_in(bound) & reduced
        if not spoken:
            _, most = spread(counted("", plus(bound, 1), ()), ranges)
            somewhere += (Operation("<", (ZERO, end)) for end in most)
        elif len(spoken) == 1:
            loops = tuple(
                _limited(loop, bound, ranges) if loop.iterator in spoken else loop for loop in loops
            )
    condition = conjunction(tuple(dict.fromkeys(somewhere)))
    code = nested(_cut(tiles, dimensions, loops), body)
    return code if condition is None else (If(condition, code),)


def _limited(loop: For, bound: IntExpression, ranges: Sequence[For]) -> For:
    """Return the part of a loop where an expression is not negative at some point of other loops."""
    found = linear_in(bound, loop.iterator)
    if found is None or abs(found[0]) != 1:
        return loop
    return bounded(loop, *spread(limited(loop, bound), ranges))


def _range(tiles: Tiles, d: int) -> For:
    """Return the loop over the points of a kept dimension in the cache tile at hand."""
    ends = [tiles.hom.extents[d]]
    if tiles.schedule.group[d]:
        ends.append(plus(group_low(tiles, d), tiles.schedule.group[d]))
    if tiles.facts.is_tiled(d):
        ends.append(plus(low(tiles, d), tiles.schedule.local[d]))
    return bounded(counted(tiles.point(d), ZERO, ()), (low(tiles, d),), ends)


def is_reduction(tiles: Tiles, body: Code) -> bool:
    """Whether code has a loop over a reduced dimension in it."""
    names = {tiles.point(d) for d in tiles.reduced}
    return any(isinstance(s, For) and s.iterator in names for s in walk(body))


@dataclass(frozen=True)
class _Parts:
    """What is done at a kept point: before the loops of the reduction, in them, and after them."""

    before: Code
    loops: Band
    step: Code
    after: Code


def _parts_of(tiles: Tiles, body: Code) -> _Parts:
    at = next(k for k, s in enumerate(body) if is_reduction(tiles, (s,)))
    reduction, conditions = body[at], []
    while isinstance(reduction, If):
        conditions.append(reduction.condition)
        (reduction,) = reduction.body
    loops, step = band_of((reduction,))
    for condition in conditions:
        step = (If(condition, step),)
    return _Parts(body[:at], loops, step, body[at + 1 :])


def _waiting(tiles: Tiles, tiled: Sequence[int], points: Band, body: Code) -> Code:
    """Return what a group does: totals of nothing, the tiles, results."""
    parts, names, kinds = _parts_of(tiles, body), totals(tiles), total_types(tiles)
    waiting = {name: tiles.names.of(("waiting", name), f"{name}_waiting") for name in names}
    shape, place = _room(tiles)
    flags = (replace(t, parts=False) if t.is_flag else None for t in partial_totals(tiles))
    arrays = tuple(
        Array(name=waiting[n], type=kind, shape=shape, space=Space.GROUP, align=64, totals=flag)
        for n, kind, flag in zip(names, kinds, flags, strict=True)
    )

    def moved(code: Code) -> Code:
        inside = tuple(s for s in code if not (isinstance(s, Array) and s.name in waiting))
        for name in names:
            inside = renamed_array(inside, name, Load(waiting[name], place))
        return inside

    loops = _cut(tiles, tiled, (*points, *parts.loops))
    count = len(tiled) + len(points)
    held = [(name, kind, Load(waiting[name], place)) for name, kind in zip(names, kinds, strict=True)]
    taken = tuple(Store(name, (), loaded(load, kind)) for name, kind, load in held)
    left = tuple(Store(load.array, place, loaded(Load(name), kind)) for name, kind, load in held)
    declared = tuple(s for s in parts.before if isinstance(s, Array))
    inner = (*declared, *taken, *nested(loops[count:], parts.step), *left)
    first, last = nested(points, moved(parts.before)), nested(points, moved(parts.after))
    return (*arrays, *first, *nested(loops[:count], inner), *last)


def _room(tiles: Tiles) -> tuple[tuple[IntExpression, ...], tuple[IntExpression, ...]]:
    """Return the shape of the array in which totals wait, and where in it that of a point is.

    Neighbours along vectors are neighbours there. For work-items it is as large as the result: they have no
    memory of their own that would hold it.
    """
    if tiles.items:
        points = (*map(tiles.part, tiles.parts), *(tiles.point(d) for d in tiles.facts.kept))
        extents = (*map(tiles.facts.groups, tiles.parts), *(tiles.hom.extents[d] for d in tiles.facts.kept))
        return extents, tuple(map(Name, points))
    shape, place = [], []
    first = next(k for k, d in enumerate(tiles.facts.tiled_order) if d in tiles.reduced)
    outside = tiles.facts.tiled_order[:first]
    for d in sorted(tiles.facts.kept, key=lambda d: d == tiles.vector):
        length = tiles.facts.length(d) if d in outside else tiles.facts.covered(d)
        begin = low(tiles, d) if d in outside else group_low(tiles, d)
        shape.append(tiles.hom.extents[d] if length is None else Number(length))
        place.append(plus(Name(tiles.point(d)), begin, -1))
    return tuple(shape), tuple(place)
