"""Points of a register tile as vectors.

    unrolled for j_at from 0 to 24:          unrolled for j_vector from 0 to 24 step 8:
      unrolled for i_at from 0 to 4:   ->      unrolled for i_at from 0 to 4:
        total[i_at, j_at] = ...                  vector for lane from 0 to 8:
                                                   total[i_at, j_vector + lane] = ...

What vectors leave over comes in narrower ones. Code with branches or loops inside stays scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.strips import Band, nested
from polyloom.mdh.tree.nodes import Code, For, Kind, Let, Statement, Store, counted
from polyloom.mdh.tree.ranges import plus
from polyloom.mdh.tree.rewrite import substituted, with_blocks
from polyloom.polyhedra.loops.tree import Name, Number


def vectors(tiles: Tiles, code: Code) -> Code:
    """Carry out the points of a register tile in the schedule's order, those along its vectors together.

    Keeps true: the same points; they are independent, or their operator lets them change places.
    """
    return tuple(new for statement in code for new in _vectors(tiles, statement))


def _vectors(tiles: Tiles, statement: Statement) -> Code:
    if not isinstance(statement, For) or statement.kind is not Kind.UNROLLED:
        return (with_blocks(statement, lambda block: vectors(tiles, block)),)
    loops, body = _unrolled(statement)
    lanes = _lanes(tiles)
    straight = all(isinstance(s, Let | Store) for s in body)
    along = next((loop for loop in loops if loop.iterator == lanes), None)
    others = tuple(loop for loop in loops if loop is not along)
    if along is None or not straight:
        return nested(_ordered(tiles, loops), vectors(tiles, body))
    return tuple(
        new
        for first, count, width in _segments(tiles, along)
        for new in _segment(tiles, others, body, along.iterator, (first, count, width))
    )


def _lanes(tiles: Tiles) -> str | None:
    """Return the iterator over the points along vectors."""
    return None if tiles.vector is None else tiles.name("at", tiles.vector, "at")


def _unrolled(statement: For) -> tuple[Band, Code]:
    loops: list[For] = []
    code: Code = (statement,)
    while len(code) == 1 and isinstance(loop := code[0], For) and loop.kind is Kind.UNROLLED:
        loops.append(replace(loop, body=()))
        code = loop.body
    return tuple(loops), code


def _ordered(tiles: Tiles, loops: Sequence[For]) -> Band:
    """Return loops in the schedule's order of points; others stay outside, as they are."""
    order = {tiles.name("at", d, "at"): k for k, d in enumerate(tiles.schedule.unrolled_order)}
    return tuple(sorted(loops, key=lambda loop: order.get(loop.iterator, -1)))


def _segments(tiles: Tiles, along: For) -> list[tuple[int, int, int]]:
    """Return vectors that cover a loop: the first point, how many vectors, their width; narrow ones last."""
    assert isinstance(along.end, Number)
    at, found, width = 0, [], tiles.schedule.width
    while width:
        if count := (along.end.value - at) // width:
            found.append((at, count, width))
            at += count * width
        width //= 2
    return found


def _segment(tiles: Tiles, others: Band, body: Code, name: str, segment: tuple[int, int, int]) -> Code:
    first, count, width = segment
    lane = Name(tiles.names.of(("lane",), "lane"))
    start = Name(name) if count > 1 else Number(first)
    inner: Code = substituted(body, name, plus(start, lane) if width > 1 else start)
    if width > 1:
        inner = (counted(lane.name, Number(width), inner, kind=Kind.VECTOR),)
    if count == 1:
        return nested(_ordered(tiles, others), inner)
    end = Number(first + count * width)
    along = counted(name, end, (), kind=Kind.UNROLLED, start=Number(first), step=width)
    return nested(_ordered(tiles, (*others, along)), inner)
