"""Points of a register tile in the order in which an input's elements lie.

    unrolled for i_at from 0 to 2:               total[0] = total[0] + x[i + 0] * w[r + 0]
      unrolled for r_at from 0 to 2:             total[0] = total[0] + x[i + 1] * w[r + 1]
        total[i_at] = total[i_at]          ->    total[1] = total[1] + x[i + 1] * w[r + 0]
          + x[i + i_at + r_at] * w[r + r_at]     total[1] = total[1] + x[i + 2] * w[r + 1]

Points that read one element come together, so that it need not stay in a register for long.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.schedule.addresses import Access, access_of
from polyloom.mdh.tree.nodes import Code, For, Kind, Statement, Store
from polyloom.mdh.tree.rewrite import substituted, walk, with_blocks
from polyloom.polyhedra.loops.tree import Number

Point = Mapping[str, int]


def following(tiles: Tiles, code: Code) -> Code:
    """Write out the terms of register tiles as the elements lie of the input that the schedule follows.

    Keeps true: the same points; their operator lets them change places.
    """
    follow = tiles.schedule.follow
    if follow is None:
        return code
    access = access_of(tiles.hom.inputs[follow], tiles.buffers, len(tiles.hom.extents))
    return code if access is None else _Following(tiles, access).code(code)


class _Following:
    def __init__(self, tiles: Tiles, access: Access) -> None:
        self.steps = access.steps
        self.names = [tiles.name("at", d, "at") for d in range(len(tiles.hom.extents))]

    def code(self, code: Code) -> Code:
        return tuple(new for statement in code for new in self._statement(statement))

    def _statement(self, statement: Statement) -> Code:
        loops, body = _written_out((statement,))
        if len(loops) < 2 or not any(isinstance(s, Store) and s.instance for s in walk(body)):
            return (with_blocks(statement, self.code),)
        found: list[Statement] = []
        for point in sorted(_points(loops), key=self._place):
            inner = body
            for name, value in point.items():
                inner = substituted(inner, name, Number(value))
            found += inner
        return tuple(found)

    def _place(self, point: Point) -> tuple[int, ...]:
        """Return where the element of a point is, seen from where the register tile begins."""
        return tuple(
            sum(step * point.get(name, 0) for step, name in zip(steps, self.names, strict=True))
            for steps in self.steps
        )


def _written_out(code: Code) -> tuple[tuple[For, ...], Code]:
    """Return the loops right inside each other that will be written out, and what is in them."""
    loops: list[For] = []
    while len(code) == 1 and isinstance(loop := code[0], For) and loop.kind is Kind.UNROLLED:
        loops.append(loop)
        code = loop.body
    return tuple(loops), code


def _points(loops: tuple[For, ...]) -> list[Point]:
    ranges = []
    for loop in loops:
        start, end, step = loop.start, loop.end, loop.step
        assert isinstance(start, Number) and isinstance(end, Number) and isinstance(step, Number)
        ranges.append(range(start.value, end.value, step.value))
    names = [loop.iterator for loop in loops]
    return [dict(zip(names, values, strict=True)) for values in product(*ranges)]
