"""Copies of what a cache tile reads, in an array of the group.

    for k_tile ...:                          for k_tile ...:
      for i ...:                               float32 A_copy[64, 128] in group
        for k ...:                      ->     for c0 ...: for c1 ...: A_copy[c0, c1] = A[i_tile + c0, ...]
          ... A[i, k] ...                      for i ...:
                                                 for k ...:
                                                   ... A_copy[i - i_tile, k - k_tile] ...

In panels, the last axis of a copy is cut into pieces as wide as a register tile, each of which lies together:
``B_copy[(j - j_tile) / 32, k - k_tile, (j - j_tile) % 32]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from math import prod

from polyloom.ir.expressions import Read
from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.cache_tiles import group_low, low, tile_name
from polyloom.mdh.lowering.tiles.context import Tiles, here
from polyloom.mdh.lowering.tiles.items import outside_items
from polyloom.mdh.lowering.tiles.points import Points
from polyloom.mdh.lowering.tiles.strips import Once, in_steps, nested
from polyloom.mdh.schedule.copy_plan import CopyPlan, copy_plan, is_turned, turned_sides
from polyloom.mdh.schedule.tiling import TileFacts
from polyloom.mdh.tree.nodes import (
    Array,
    Barrier,
    Code,
    Compute,
    For,
    If,
    Kind,
    LetInteger,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import least, plus, times
from polyloom.mdh.tree.rewrite import rewritten, substituted, with_blocks, with_places
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of


def copied(tiles: Tiles, code: Code) -> Code:
    """Copy what a cache tile reads before it is read, and let terms read the copies.

    Keeps true: a copy holds the elements of its buffer, which nothing writes meanwhile.
    """
    copies = copies_of(tiles)
    if not copies:
        return code
    tiled = tiles.facts.tiled_order
    if tiles.items:
        code = outside_items(code, [copy.declared() for copy in copies])
    if not tiled:
        return _inside(code, lambda body: _with_copies(copies, body))
    last = tile_name(tiles, tiled[-1])

    def inside(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.iterator == last:
            return (with_blocks(statement, lambda body: _again(tiles, _with_copies(copies, body))),)
        return (statement,)

    return rewritten(code, inside)


def _inside(code: Code, change: Callable[[Code], Code]) -> Code:
    """Return code with a change of what a group, or each of its items, does."""
    loops = [s for s in code if isinstance(s, For) and s.kind in (Kind.GROUP, Kind.ITEM)]
    if not loops:
        return change(code)
    (loop,) = loops
    inner = replace(loop, body=_inside(loop.body, change))
    return tuple(inner if s is loop else s for s in code)


def _again(tiles: Tiles, code: Code) -> Code:
    """Return what is done again and again: copies change when all items are done with them."""
    return (*code, Barrier()) if tiles.items else code


def copies_of(tiles: Tiles) -> tuple[_Copy, ...]:
    """Return the copies that a schedule asks for, of inputs that nothing writes."""
    written = {view.buffer for view in tiles.hom.outputs}
    found = []
    for k, view in enumerate(tiles.hom.inputs):
        plan = copy_plan(tiles.facts, k, tiles.buffers)
        if plan is not None and plan.panel is not None and tiles.domain.is_bounded(plan.panel[0]):
            plan = _without_panels(tiles, k)
        if plan is not None and view.buffer not in written:
            found.append(_Copy(tiles, k, plan))
    return tuple(found)


def _without_panels(tiles: Tiles, k: int) -> CopyPlan | None:
    """Return the plan of a copy in one piece: where a loop's bounds vary, tiles do not begin at panels."""
    inputs = list(tiles.schedule.inputs)
    inputs[k] = replace(inputs[k], panel=False)
    schedule = replace(tiles.schedule, inputs=tuple(inputs))
    return copy_plan(TileFacts(tiles.hom, schedule), k, tiles.buffers)


def _with_copies(copies: Sequence[_Copy], body: Code) -> Code:
    for copy in copies:
        body = copy.read_in(body)
    if copies[0].tiles.items:
        return (*(s for copy in copies for s in copy.filled_together()), Barrier(), *body)
    return (*(s for copy in copies for s in copy.filled()), *body)


def _high(tiles: Tiles, d: int) -> IntExpression:
    """Return where the cache tile at hand ends."""
    facts, size, group = tiles.facts, tiles.schedule.local[d], tiles.schedule.group[d]
    ends, aligned = [tiles.hom.extents[d]], not tiles.domain.is_bounded(d)
    if group and (d in tiles.kept or d in tiles.parts):
        ends.append(plus(group_low(tiles, d), group))
        ends = ends[1:] if aligned and facts.is_multiple(d, group) else ends
    if not facts.is_tiled(d):
        return least(ends)
    end, covered = plus(low(tiles, d), size), facts.covered(d)
    if aligned and facts.is_multiple(d, size) and covered is not None and covered % size == 0:
        return end
    return least((*(ends[:1] if aligned and group % size == 0 else ends), end))


@dataclass(frozen=True)
class _Copy:
    """The copy of input number ``position``."""

    tiles: Tiles
    position: int
    plan: CopyPlan

    @property
    def buffer(self) -> str:
        """The name of what is copied."""
        return self.plan.access.buffer.name

    @property
    def array(self) -> str:
        """The name of the copy."""
        return self.tiles.names.of(("copy", self.position), f"{self.buffer}_copy")

    def declared(self) -> Array:
        """Return the copy's declaration."""
        shape = [self.plan.extents[axis] for axis in self.plan.axes]
        if self.plan.panel is None:
            shape[-1] += self.tiles.schedule.inputs[self.position].padding
        else:
            width = self.plan.panel[1]
            shape = [-(-shape[-1] // width), *shape[:-1], width]
        sizes = tuple(map(Number, shape))
        kind = self.plan.access.buffer.type
        return Array(name=self.array, type=kind, shape=sizes, space=Space.GROUP, align=64)

    def read_in(self, code: Code) -> Code:
        """Return code whose terms read the copy."""
        tiles = self.tiles
        load = Points(tiles.hom, tiles.buffers, here(tiles)).load(self.position)
        place = [
            sum_of([(step, self._inside(axis, d)) for d, step in enumerate(steps) if step])
            for axis, steps in enumerate(self.plan.access.steps)
        ]
        copy = Load(self.array, self._place(place))

        def moved(body: Code) -> Code:
            return with_places(body, lambda found: copy if found == load else found)

        if tiles.combiner is None:
            return moved(code)
        innermost = tiles.reduced[-1]
        loops = (tiles.point(innermost), tiles.turn(innermost))

        def in_terms(statement: Statement) -> Code:
            is_last = isinstance(statement, For) and statement.iterator in loops
            return (with_blocks(statement, moved) if is_last else statement,)

        return rewritten(code, in_terms)

    def _inside(self, axis: int, d: int) -> IntExpression:
        """Return a point's distance from where an axis of the box begins."""
        return plus(Name(self.tiles.point(d)), self._begin(axis, d), -1)

    def _begin(self, axis: int, d: int) -> IntExpression:
        forwards = self.plan.access.steps[axis][d] > 0
        return low(self.tiles, d) if forwards else plus(_high(self.tiles, d), -1)

    def _place(self, at: Sequence[IntExpression]) -> tuple[IntExpression, ...]:
        """Return where an element is in the copy; ``at``: where in the box, by the buffer's axes."""
        place = [at[axis] for axis in self.plan.axes]
        if self.plan.panel is None:
            return tuple(place)
        width = Number(self.plan.panel[1])
        panel, column = Operation("/", (place[-1], width)), Operation("%", (place[-1], width))
        return (panel, *place[:-1], column)

    # The loops that fill it

    def filled(self) -> Code:
        """Return the copy's declaration and the loops that fill it."""
        return self.declared(), *self._loops()

    def filled_together(self) -> Code:
        """Return the loop in which items fill the copy, neighbours loading neighbours."""
        tiles, extents = self.tiles, self.plan.extents
        turn = Name(tiles.names.of(("turn of copy", self.position), "copy_turn"))
        element = Name(tiles.names.of(("element", self.position), f"{self.buffer}_element"))
        items, total = tiles.facts.total_items, prod(extents)
        value = times(items, turn, tiles.item_number)
        at = [_digit(element, prod(extents[axis + 1 :]), n, axis > 0) for axis, n in enumerate(extents)]
        limits = [self._length(axis) for axis in range(len(at))]
        cut = [Number(extent) != limit for extent, limit in zip(extents, limits, strict=True)]
        inside = [Operation("<", pair) for pair in compress(zip(at, limits, strict=True), cut)]
        if total % items:
            inside.insert(0, Operation("<", (element, Number(total))))
        condition = conjunction(tuple(inside))
        body: Code = (Store(self.array, self._place(at), self._source(at)),)
        body = body if condition is None else (If(condition, body),)
        return (counted(turn.name, Number(-(-total // items)), (LetInteger(element.name, value), *body)),)

    def _length(self, axis: int) -> IntExpression:
        terms: list[tuple[int, IntExpression]] = [(1, Number(1))]
        for d, step in enumerate(self.plan.access.steps[axis]):
            if step:
                high, begin = _high(self.tiles, d), low(self.tiles, d)
                terms += [(abs(step), high), (-abs(step), begin), (-abs(step), Number(1))]
        return sum_of(terms)

    def _source(self, at: Sequence[IntExpression]) -> Compute:
        """Return the element of the buffer that is so far from where the box begins."""
        access = self.plan.access
        place = []
        for axis, (steps, offset) in enumerate(zip(access.steps, access.offsets, strict=True)):
            begins = [(step, self._begin(axis, d)) for d, step in enumerate(steps) if step]
            place.append(sum_of([*begins, (1, offset), (1, at[axis])]))
        return Compute(Read(0, access.buffer.type), (Load(self.buffer, tuple(place)),))

    def _loops(self) -> Code:
        """Go through the box as it lies in the buffer; by vectors where it lies so in the copy, too.

        Where another axis is last there, blocks are turned in registers (``print/vectors/turned_blocks``).
        """
        tiles, rank = self.tiles, len(self.plan.axes)
        names = [tiles.names.of(("at", self.position, axis), f"c{axis}") for axis in range(rank)]
        at: list[IntExpression] = [Name(name) for name in names]
        last = self.plan.axes[-1]
        loops = [counted(names[axis], self._length(axis), ()) for axis in range(rank)]
        if self.plan.panel is None:
            return self._lines(loops, Store(self.array, self._place(at), self._source(at)))
        width = self.plan.panel[1]
        panel = Name(tiles.names.of(("panel", self.position), "panel"))
        left = plus(self._length(last), panel, -width)
        whole = tiles.facts.divides(self.plan.panel[0], width)
        loops[last] = counted(names[last], Number(width) if whole else least((Number(width), left)), ())
        inside = [times(width, panel, at[axis]) if axis == last else at[axis] for axis in range(rank)]
        body = Store(self.array, (panel, *(at[axis] for axis in self.plan.axes)), self._source(inside))
        count = Operation("/", (plus(self._length(last), width - 1), Number(width)))
        return nested([counted(panel.name, count, ())], self._lines(loops, body))

    def _lines(self, loops: Sequence[For], body: Store) -> Code:
        """Return loops over the axes of the buffer, its last one innermost."""
        last, row = self.plan.axes[-1], loops[-1]
        width, inner = self.tiles.schedule.width, len(loops) - 1
        if width == 1 or not (last == inner or is_turned(self.plan)):
            return nested(loops, (body,))
        if last == inner:
            return nested(loops[:-1], self._cut(last, row, (width, 1), partial(self._vector, row, body)))
        before, column, after = loops[:last], loops[last], loops[last + 1 : -1]

        def columns(first: IntExpression, side: int) -> Code:
            vectors = self._vector(column, body, first, side)
            if side == 1:
                return nested([*after, row], vectors)
            block = partial(self._block, row, vectors)
            blocks = self._cut(inner, row, (side, 1), block, "first of rows")
            return nested(after, blocks)

        return nested(before, self._cut(last, column, self._sides(column), columns))

    def _cut(self, axis: int, loop: For, sizes: Sequence[int], once: Once, key: str = "first") -> Code:
        """Return the loop over an axis in steps of ``sizes``; ``key``: as for ``in_steps``."""
        along = next((d for d, step in enumerate(self.plan.access.steps[axis]) if step), 0)
        return in_steps(self.tiles, along, loop, sizes, once, key)

    def _vector(self, loop: For, body: Store, first: IntExpression, count: int) -> Code:
        """Return so many iterations of a loop, from the first one on, as a vector."""
        if count == 1:
            return substituted((body,), loop.iterator, first)
        lane = Name(self.tiles.names.of(("lane",), "lane"))
        inner = substituted((body,), loop.iterator, plus(first, lane))
        return (counted(lane.name, Number(count), inner, kind=Kind.VECTOR),)

    def _block(self, row: For, vectors: Code, first: IntExpression, count: int) -> Code:
        """Return so many iterations over vectors, from the first one on, as a loop of that many."""
        if count == 1:
            return substituted(vectors, row.iterator, first)
        turn = Name(self.tiles.names.of(("row", self.position), f"{row.iterator}_row"))
        return (counted(turn.name, Number(count), substituted(vectors, row.iterator, plus(first, turn))),)

    def _sides(self, column: For) -> tuple[int, ...]:
        """Return the sides of blocks that are turned, the largest first, and 1 for what is left."""
        sides = turned_sides(self.plan, self.tiles.schedule.width)
        return (*(sides if isinstance(column.end, Number) else sides[:1]), 1)


def _digit(number: IntExpression, below: int, extent: int, wraps: bool) -> IntExpression:
    """Return the place along an axis, below which there are so many elements, of one with a number."""
    if extent == 1:
        return Number(0)
    digit = number if below == 1 else Operation("/", (number, Number(below)))
    return Operation("%", (digit, Number(extent))) if wraps else digit
