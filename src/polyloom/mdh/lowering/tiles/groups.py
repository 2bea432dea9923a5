"""Loops that threads, or work-groups, share.

for i from 0 to m:           parallel for i_group from 0 to m step 64:
for j from 0 to n:    ->     for i from i_group to min(m, i_group + 64):
S(i, j)                      for j from 0 to n:
S(i, j)
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from polyloom.ir.host import MdHom
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.strips import Band, band_of, nested, with_strips
from polyloom.mdh.schedule.addresses import known
from polyloom.mdh.tree.nodes import Code, For, Kind, Statement
from polyloom.mdh.tree.rewrite import rewritten
from polyloom.polyhedra.loops.tree import names_in


def shared_loops(tiles: Tiles, code: Code) -> Code:
    """Cut kept dimensions into strips of a group each, and make those and the parts of reductions parallel.

    Keeps true: the same points are visited, each once; those of two strips store different elements.
    """
    loops, body = band_of(code)
    count = len(tiles.parts)
    parts = {loop.iterator: replace(loop, kind=Kind.GROUP) for loop in loops[:count]}
    points = loops[count:]
    shared, inner = [], {loop.iterator: loop for loop in points}
    for d in tiles.schedule.group_order:
        if d in tiles.parts:
            shared.append(parts[tiles.part(d)])
        elif _is_point(tiles, d):
            shared.append(replace(inner.pop(tiles.point(d)), kind=Kind.GROUP))
        elif d in tiles.kept and tiles.schedule.group[d]:
            group, inner[tiles.point(d)] = _cut(tiles, d, points)
            shared.append(group)
    return nested((*shared, *(inner[loop.iterator] for loop in points if loop.iterator in inner)), body)


def _is_point(tiles: Tiles, d: int) -> bool:
    """Whether a group has one point of a dimension, so that the loop over points is that over groups.

    Of schedules of points one by one alone: in others more than the loop itself is told by the group's name.
    """
    alone = tiles.schedule.goes_by_points and tiles.schedule.group[d] == 1
    if not alone or d not in tiles.kept or tiles.parts:
        return False
    others = {tiles.point(e) for e in tiles.kept if e != d}
    return all(names_in(bound).isdisjoint(others) for bound in tiles.domain.bounds.get(d, ()))


def _cut(tiles: Tiles, d: int, points: Band) -> tuple[For, For]:
    """Return the loop over a dimension's groups, which depends on no other loop, and that over its points."""
    name, size = tiles.name("group", d, "group"), tiles.schedule.group[d]
    whole = not tiles.domain.is_bounded(d) and tiles.facts.is_multiple(d, size)
    cut = with_strips(tiles, points, tiles.point(d), name, size, place=0, kind=Kind.GROUP, whole=whole)
    return cut[0], next(loop for loop in cut[1:] if loop.iterator == tiles.point(d))


LEAST_SHARED = 16_384
"""Points of an md_hom that threads share, at least: fewer take one thread about half a microsecond, which
is what it takes two to meet. Estimate: two cores of a Xeon, 16 points in a vector, two vectors in a cycle."""


def shared_if_large(hom: MdHom, code: Code, least: int = LEAST_SHARED) -> Code:
    """Make the group loops of an md_hom sequential that is known to have less than ``least`` points.

    Keeps true: the same statements; all kinds of loops mean the same as sequential ones.
    """
    extents = [known(extent) for extent in hom.extents]
    if None in extents or prod(n for n in extents if n is not None) >= least:
        return code
    return rewritten(code, _alone)


def _alone(statement: Statement) -> Code:
    if isinstance(statement, For) and statement.kind is Kind.GROUP:
        return (replace(statement, kind=Kind.SEQUENTIAL),)
    return (statement,)
