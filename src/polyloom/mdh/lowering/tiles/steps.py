"""A loop in large steps as far as they go, then in smaller ones.

for i from a to b: S(i)    ->    for i_first from a to b - 3 step 4: S(i_first), ..., S(i_first + 3)
                                 integer i_rest = a + max(b - a, 0) / 4 * 4
                                 for i_first from i_rest to b: S(i_first)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.tree.nodes import ZERO, Code, For, LetInteger, Statement, counted
from polyloom.mdh.tree.ranges import greatest, plus
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

Once = Callable[[IntExpression, int], Code]
"""The code for so many points from the first one on."""


def in_steps(tiles: Tiles, d: int, loop: For, sizes: Sequence[int], once: Once) -> Code:
    """Return a loop in steps of ``sizes``, each a multiple of the next; after the last one nothing is left.

    Where the loop's length is a number, so is that of each step's part.
    """
    found: list[Statement] = []
    start, end = loop.start, loop.end
    if not isinstance(plus(end, start, -1), Number):
        start, end = _named(tiles, d, start, "start", found), _named(tiles, d, end, "end", found)
    for size in sizes:
        length = plus(end, start, -1)
        if isinstance(length, Number):
            stop = plus(start, max(length.value, 0) // size * size)
            found += whole_steps(tiles, d, start, stop, size, once)
            start = stop
            continue
        found += whole_steps(tiles, d, start, plus(end, 1 - size), size, once)
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
    tiles: Tiles, d: int, start: IntExpression, end: IntExpression, size: int, once: Once
) -> Code:
    """Return steps of ``size`` points from ``start`` on as long as they begin before ``end``."""
    length = plus(end, start, -1)
    if isinstance(length, Number) and length.value <= size:
        return once(start, size) if length.value > 0 else ()
    first = tiles.name("first", d, "first")
    return (counted(first, end, once(Name(first), size), start=start, step=size),)
