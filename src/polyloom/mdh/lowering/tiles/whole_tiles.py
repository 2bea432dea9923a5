"""Register tiles of which all points are there, apart from those that stick out.

    for k from k_tile to k_tile + 8:               if i_step <= 13:
      unrolled for i_at from 0 to 4:                 for k from k_tile to k_tile + 8:
        if i_step + i_at < 17:             ->          unrolled for i_at from 0 to 4:
          total[i_at] = total[i_at] + ...                total[i_at] = total[i_at] + ...
                                                   else: as before

Items that meet at barriers all go through the same loops, so conditions stand inside; a loop without a
barrier in it may come in two forms, and so may its steps, where a condition speaks of them: ``k <= i``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.tree.nodes import ZERO, Barrier, Code, Compute, For, If, Kind, LetInteger, Statement
from polyloom.mdh.tree.ranges import linear_in, not_negative, times
from polyloom.mdh.tree.rewrite import blocks, rewritten, walk, with_blocks
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, names_in

Ranges = Mapping[str, For | None]
"""The integers that are named inside a loop: points that are written out, and others."""


def whole_tiles(tiles: Tiles, code: Code) -> Code:
    """Ask once, before a loop, whether all points of its register tiles are there.

    Keeps true: each form does what the loop did where it is taken.
    """
    return tuple(new for statement in code for new in _apart(statement)) if tiles.meets else code


def _apart(statement: Statement) -> Code:
    is_loop = isinstance(statement, For) and statement.kind is Kind.SEQUENTIAL
    if not is_loop or any(isinstance(s, Barrier) for s in walk((statement,))):
        return (with_blocks(statement, lambda block: tuple(new for s in block for new in _apart(s))),)
    condition, always = _whole(statement)
    return always if condition is None else (If(condition, always, (statement,)),)


def _whole(statement: Statement) -> tuple[IntExpression | None, Code]:
    """Return a condition under which all points written out are there, and what a statement is then.

    Conditions that speak of the loop's own iterator are asked in each iteration.
    """
    found = dict(_conditions((statement,), {}))
    condition = conjunction(tuple(dict.fromkeys(bound for bounds in found.values() for bound in bounds)))

    def without(inner: Statement) -> Code:
        return inner.body if isinstance(inner, If) and inner.condition in found else (inner,)

    always = rewritten((statement,), without)
    return condition, tuple(s if _is_written_out(s) else with_blocks(s, _in_each) for s in always)


def _in_each(code: Code) -> Code:
    """Return the body of a loop with the steps that are written out in two forms."""
    found: list[Statement] = []
    for statement in code:
        condition, always = _whole(statement)
        if condition is None or not _is_written_out(statement):
            found += always if condition is None else (statement,)
        else:
            found.append(If(condition, always, (statement,)))
    return tuple(found)


def _is_written_out(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is Kind.UNROLLED


def _conditions(code: Code, inside: Ranges) -> Iterator[tuple[IntExpression, tuple[IntExpression, ...]]]:
    """Yield conditions of points that are written out, and what holds if they hold at all of these."""
    for statement in code:
        known = inside
        match statement:
            case For(iterator=name, kind=kind):
                known = {**inside, name: statement if kind is Kind.UNROLLED else None}
            case LetInteger(name=name):
                inside = {**inside, name: None}
            case If(condition=condition, otherwise=()) if not isinstance(condition, Compute):
                bounds = _everywhere(condition, inside)
                if bounds is not None and not names_in(condition).isdisjoint(inside):
                    yield condition, bounds
            case _:
                pass
        for block in blocks(statement):
            yield from _conditions(block, known)


def _everywhere(condition: IntExpression, inside: Ranges) -> tuple[IntExpression, ...] | None:
    """Return what holds if a condition holds at all points; None where that is not known before them."""
    bounds = not_negative(condition)
    if bounds is None:
        return None
    found: list[IntExpression] = []
    for bound in bounds:
        for name in sorted(names_in(bound) & inside.keys()):
            linear, loop = linear_in(bound, name), inside[name]
            if linear is None or loop is None:
                return None
            assert isinstance(loop.start, Number) and isinstance(loop.end, Number)
            extreme = loop.start.value if linear[0] > 0 else loop.end.value - 1
            bound = times(linear[0] * extreme, Number(1), linear[1])
        found.append(Operation("<=", (ZERO, bound)))
    return tuple(found)
