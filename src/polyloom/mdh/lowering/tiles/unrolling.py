"""Reductions a few points at a time.

for k from 0 to p:                 for k_first from 0 to p - 3 step 4:
  total = total + A[i, k]    ->      unrolled for k_at from 0 to 4: total = total + A[i, k_first + k_at]
                                   for k from p / 4 * 4 to p: total = total + A[i, k]
"""

from __future__ import annotations

from functools import partial

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.strips import in_steps
from polyloom.mdh.tree.nodes import Code, For, Kind, Statement, counted
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import rewritten, substituted
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

    def once(first: IntExpression, count: int) -> Code:
        if count == 1:
            return substituted(loop.body, loop.iterator, first)
        body = substituted(loop.body, loop.iterator, plus(first, Name(at)))
        return (counted(at, Number(count), body, kind=Kind.UNROLLED),)

    return in_steps(tiles, d, loop, (tiles.schedule.private[d], 1), once)
