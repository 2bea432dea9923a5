"""Loops that threads, or work-groups, share.

for i from 0 to m:           parallel for i_group from 0 to m step 64:
for j from 0 to n:    ->     for i from i_group to min(m, i_group + 64):
S(i, j)                      for j from 0 to n:
S(i, j)
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.strips import Band, band_of, nested, with_strips
from polyloom.mdh.tree.nodes import Code, For, Kind


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
        elif d in tiles.kept and tiles.schedule.group[d]:
            group, inner[tiles.point(d)] = _cut(tiles, d, points)
            shared.append(group)
    return nested((*shared, *(inner[loop.iterator] for loop in points)), body)


def _cut(tiles: Tiles, d: int, points: Band) -> tuple[For, For]:
    """Return the loop over a dimension's groups, which depends on no other loop, and that over its points."""
    name, size = tiles.name("group", d, "group"), tiles.schedule.group[d]
    whole = not tiles.domain.is_bounded(d) and tiles.facts.is_multiple(d, size)
    cut = with_strips(tiles, points, tiles.point(d), name, size, place=0, kind=Kind.GROUP, whole=whole)
    return cut[0], next(loop for loop in cut[1:] if loop.iterator == tiles.point(d))
