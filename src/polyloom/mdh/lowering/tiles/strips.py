"""Loops cut into strips: ``for i`` becomes ``for i_tile, for i in the tile``, the outer one further out.

for i from 0 to n:              for j_tile from 0 to n step 64:
for j from i to n:      ->      for i from 0 to n:
S(i, j)                         for j from max(i, j_tile) to min(n, j_tile + 64):
S(i, j)

A loop in large steps as far as they go, then in smaller ones:

for i from a to b: S(i)    ->    for i_first from a to b - 3 step 4: S(i_first), ..., S(i_first + 3)
                                 integer i_rest = a + max(b - a, 0) / 4 * 4
                                 for i_first from i_rest to b: S(i_first)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.tree.nodes import ZERO, Code, For, Kind, LetInteger, Statement, counted
from polyloom.mdh.tree.ranges import Bounds, bounded, ends, greatest, plus, spread, starts
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in

Band = tuple[For, ...]
"""Loops that stand directly in each other, outer ones first, without what is inside the last."""


def band_of(code: Code, iterators: Collection[str] | None = None) -> tuple[Band, Code]:
    """Return the loops that stand directly in each other, and what is inside; None: over any iterators."""
    loops: list[For] = []
    while len(code) == 1 and isinstance(loop := code[0], For):
        if iterators is not None and loop.iterator not in iterators:
            break
        loops.append(replace(loop, body=()))
        code = loop.body
    return tuple(loops), code


def nested(loops: Sequence[For], body: Code) -> Code:
    """Return code inside loops, the outer ones first."""
    for loop in reversed(loops):
        body = (replace(loop, body=body),)
    return body


def strip_of(tiles: Tiles, d: int, loop: For, first: IntExpression, size: int | None = None) -> For:
    """Return the part of a loop that a strip of a group's size, or of ``size``, has from ``first`` on."""
    size = size or tiles.schedule.group[d]
    divides = not tiles.domain.is_bounded(d) and tiles.facts.is_multiple(d, size)
    end = plus(first, size)
    return bounded(loop, (first,), (end,) if divides else (*ends(loop), end))


def with_strips(
    tiles: Tiles,
    loops: Band,
    iterator: str,
    outer: str,
    size: int,
    *,
    place: int,
    kind: Kind = Kind.SEQUENTIAL,
    whole: bool = False,
) -> Band:
    """Cut the loop over ``iterator`` into strips; the loop over them is number ``place`` from outside.

    Keeps true: the same points are visited, each once. The loops may stand in any order. ``whole``:
    strips are known to have ``size`` points each, but for what other loops take off.
    """
    at = next(k for k, loop in enumerate(loops) if loop.iterator == iterator)
    loop = loops[at]
    crossed = loops[place:at]
    lower, upper = spread(loop, crossed)
    strips = bounded(counted(outer, Number(0), (), kind=kind, step=size), lower, upper)
    kept = bounded(loop, starts(loop), _cutting(loop, strips, size))
    inner = bounded(loop, *_inside(tiles, kept, outer, size, whole))
    return (*loops[:place], strips, *loops[place:at], inner, *loops[at + 1 :])


def _cutting(loop: For, strips: For, size: int) -> Bounds:
    """Return the ends of a loop but for those at which a strip ends, too: some there may be."""
    lengths = ((end, plus(end, strips.start, -1)) for end in ends(loop))
    kept = [e for e, n in lengths if not (isinstance(n, Number) and n.value > 0 == n.value % size)]
    return tuple(kept) or ends(loop)


def _inside(tiles: Tiles, loop: For, outer: str, size: int, whole: bool) -> tuple[Bounds, Bounds]:
    """Return the bounds of a strip; of the loop's own those that may cut it, wherever its loop goes."""
    first, points = Name(outer), set(tiles.hom.iterators)
    lower = (first, *(b for b in starts(loop) if not names_in(b).isdisjoint(points)))
    upper = ends(loop)
    if whole:
        upper = tuple(b for b in upper if not names_in(b).isdisjoint(points))
    return lower, (*upper, plus(first, size))


Once = Callable[[IntExpression, int], Code]
"""The code for so many points from the first one on."""


def in_steps(tiles: Tiles, d: int, loop: For, sizes: Sequence[int], once: Once, key: str = "first") -> Code:
    """Return a loop in steps of ``sizes``, each a multiple of the next; after the last one nothing is left.

    Where the loop's length is a number, so is that of each step's part. ``key``: of the iterator over steps,
    another one for each of loops in each other along one dimension.
    """
    found: list[Statement] = []
    start, end = loop.start, loop.end
    if not isinstance(plus(end, start, -1), Number):
        start, end = _named(tiles, d, start, "start", found), _named(tiles, d, end, "end", found)
    for size in sizes:
        length = plus(end, start, -1)
        if isinstance(length, Number):
            stop = plus(start, max(length.value, 0) // size * size)
            found += whole_steps(tiles, d, start, stop, size, once, key)
            start = stop
            continue
        found += whole_steps(tiles, d, start, plus(end, 1 - size), size, once, key)
        if size != sizes[-1]:
            count = Operation("/", (greatest((length, ZERO)), Number(size)))
            after = plus(start, Operation("*", (count, Number(size))))
            start = _named(tiles, d, after, "rest", found)
    return tuple(found)


def _named(tiles: Tiles, d: int, value: IntExpression, wanted: str, found: list[Statement]) -> IntExpression:
    """Give an integer a name of its own, if it is no name or number."""
    if isinstance(value, Name | Number):
        return value
    name = tiles.names.of((object(),), f"{tiles.point(d)}_{wanted}")
    found.append(LetInteger(name, value))
    return Name(name)


def whole_steps(
    tiles: Tiles,
    d: int,
    start: IntExpression,
    end: IntExpression,
    size: int,
    once: Once,
    key: str = "first",
) -> Code:
    """Return steps of ``size`` points from ``start`` on as long as they begin before ``end``."""
    length = plus(end, start, -1)
    if isinstance(length, Number) and length.value <= size:
        return once(start, size) if length.value > 0 else ()
    first = tiles.name(key, d, "first")
    return (counted(first, end, once(Name(first), size), start=start, step=size),)
