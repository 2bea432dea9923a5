"""Reductions a few points at a time.

for k from 0 to p:                 for k_first from 0 to p - 3 step 4:
  total = total + A[i, k]    ->      unrolled for k_at from 0 to 4: total = total + A[i, k_first + k_at]
                                   for k from p / 4 * 4 to p: total = total + A[i, k]

What register tiles leave over of a kept dimension whose length is open goes point by point: it is little of
what there is to do, and would be most of what the C compiler has to build. At slanted borders, whose vectors
come in halves too, it is not little: `syrk` took 5 % longer.
"""

from __future__ import annotations

from functools import partial

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.strips import in_steps
from polyloom.mdh.tree.nodes import ONE, Code, For, Kind, Statement, counted
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import rewritten, substituted, walk
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number


def unrolled_reductions(tiles: Tiles, code: Code) -> Code:
    """Take steps of ``private`` points in the loops over reduced dimensions.

    Keeps true: the same points, each combined once and in their order.
    """
    for d in tiles.reduced:
        if tiles.schedule.private[d] > 1 and d != tiles.apart:
            code = rewritten(code, partial(_steps, tiles, d))
    return code


def _steps(tiles: Tiles, d: int, statement: Statement) -> Code:
    if not isinstance(statement, For) or statement.iterator not in (tiles.point(d), tiles.turn(d)):
        return (statement,)
    at, loop = tiles.name("at", d, "at"), statement
    sizes = (1,) if _is_rest(tiles, loop) else (tiles.schedule.private[d], 1)

    def once(first: IntExpression, count: int) -> Code:
        if count == 1:
            return substituted(loop.body, loop.iterator, first)
        body = substituted(loop.body, loop.iterator, plus(first, Name(at)))
        return (counted(at, Number(count), body, kind=Kind.UNROLLED),)

    return in_steps(tiles, d, loop, sizes, once)


def _is_rest(tiles: Tiles, loop: For) -> bool:
    """Whether a loop combines for fewer points than a register tile has, along a dimension of open length."""
    together = {s.iterator: s.end for s in walk(loop.body) if isinstance(s, For) and s.kind is Kind.UNROLLED}
    facts = tiles.facts
    return any(
        together.get(tiles.name("at", d, "at"), ONE) != Number(facts.tile(d))
        for d in facts.kept
        if facts.extent(d) is None and not (d == tiles.vector and tiles.domain.is_bounded(d))
    )
