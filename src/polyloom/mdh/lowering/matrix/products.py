"""A product of halves as what warps and their matrix units do, block by block.

    parallel for i_group, j_group:                            groups of warps, and batch dimensions
      float16 A_copy[64, 40], B_copy[32, 72] in group
      item for i_item from 0 to 2: item for j_item from 0 to 2:            warps
        float32 total[2, 2, 16, 16] in a matrix unit; left[2, 16, 16], right[2, 16, 16]
        total[...] = 0
        for r: for k_tile from 0 to p step 32:
          item for lane from 0 to 32: A_copy, B_copy = what they hold of A and B, 0 beside them
          barrier
          for k_step from 0 to 32 step 16:
            left[f] = A_copy[...], right[g] = B_copy[...]
            total[f, g] = total[f, g] + left[f] * right[g]                 # S(i, j, r, k), where i < m, j < n
          barrier
        unrolled for f from 0 to 2:
          total_shared[i_item, j_item] = total[f, ...]                     a strip of 16 rows
          barrier
          item for lane from 0 to 32: C[i, j] = total_shared[...], finished, where i < m, j < n
          barrier

Copies lie as their buffers do, steps or points as neighbours, so that lanes load up to 8 halves at once; a
unit takes both.

Not in the papers; the usual form of CUDA's libraries (CUTLASS: Efficient GEMM in CUDA).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Convert, Read
from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.context import Tiles, here
from polyloom.mdh.lowering.tiles.naive import partial_totals, results, totals
from polyloom.mdh.lowering.tiles.points import Points, loaded
from polyloom.mdh.lowering.tiles.strips import nested
from polyloom.mdh.schedule.matrix_units import SUM_PADDING, Side, sides_of
from polyloom.mdh.tree.matrix.steps import FACTOR, LANES, SIDE, SUM
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
    Part,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import plus, times
from polyloom.polyhedra.loops.tree import Instance, IntExpression, Name, Number, Operation, sum_of

ROW_BLOCK, COLUMN_BLOCK, ROW, COLUMN, STEP = "row_block", "column_block", "row", "column", "step"
"""Iterators over a warp's blocks, and in a block."""


def matrix_product(tiles: Tiles) -> Code:
    """Return the kernel tree of an md_hom whose schedule has ``matrix``, legal for it.

    Each point is added up once, by the unit of the warp that has its row and column.
    """
    return _Product(tiles).code()


@dataclass(frozen=True, eq=False)
class _Product:
    tiles: Tiles

    @cached_property
    def sides(self) -> tuple[_Factor, _Factor]:
        """The factors: that of rows and that of columns."""
        rows, columns = sides_of(self.tiles.facts, self.tiles.buffers)
        return _Factor(self, rows, Part.LEFT), _Factor(self, columns, Part.RIGHT)

    def code(self) -> Code:
        """Return the loops over groups with everything inside."""
        rows, columns, _ = self.tiles.schedule.matrix
        groups = [self._groups(d) for d in self.tiles.schedule.group_order if d in self.tiles.facts.kept]
        warps = [self._items(d) for d in (rows, columns)]
        shared = (*(side.copy for side in self.sides), self._shared)
        return nested(groups, (*shared, *nested(warps, self._warp())))

    # Numbers

    def size(self, d: int) -> int:
        """Return how many points of a dimension a warp has."""
        return self.tiles.schedule.private[d]

    def warps(self, d: int) -> int:
        """Return how many warps of a group share a dimension."""
        return self.tiles.schedule.items[d]

    def first(self, d: int) -> IntExpression:
        """Return the first point of the group."""
        return Name(self.tiles.name("group", d, "group"))

    def own(self, d: int) -> IntExpression:
        """Return how far the warp's points are from the first one of the group."""
        return times(self.size(d), Name(self.tiles.item(d)))

    def where_there(self, points: Sequence[tuple[int, IntExpression]]) -> IntExpression | None:
        """Return that points of dimensions are there; None where they always are."""
        cut = [
            (d, at) for d, at in points if (self.tiles.facts.extent(d) or 0) % self.tiles.schedule.group[d]
        ]
        return conjunction(tuple(Operation("<", (at, self.tiles.hom.extents[d])) for d, at in cut))

    def _groups(self, d: int) -> For:
        extent = self.tiles.hom.extents[d]
        if d not in self.tiles.schedule.matrix:
            return counted(self.tiles.point(d), extent, (), kind=Kind.GROUP)
        name, size = self.tiles.name("group", d, "group"), self.tiles.schedule.group[d]
        return counted(name, extent, (), kind=Kind.GROUP, step=size)

    def _items(self, d: int) -> For:
        return counted(self.tiles.item(d), Number(self.warps(d)), (), kind=Kind.ITEM)

    def lanes(self, count: int, body: Callable[[IntExpression], Code], *, of_group: bool) -> For:
        """Return the loop in which the lanes of a warp, or of all, share ``count`` pieces of work."""
        rows, columns, _ = self.tiles.schedule.matrix
        lane, number = Name(self.name("lane")), Name(self.name("number"))
        at: list[tuple[int, IntExpression]] = [(1, lane)]
        together = LANES
        if of_group:
            at = [
                (LANES * self.warps(columns), Name(self.tiles.item(rows))),
                (LANES, Name(self.tiles.item(columns))),
                *at,
            ]
            together *= self.warps(rows) * self.warps(columns)
        turn = Name(self.name("turn"))
        inner = body(number)
        if count % together:
            inner = (If(Operation("<", (number, Number(count))), inner),)
        value = sum_of([(together, turn), *at])
        loop = counted(turn.name, Number(-(-count // together)), (LetInteger(number.name, value), *inner))
        return counted(lane.name, Number(LANES), (loop,), kind=Kind.ITEM)

    def name(self, wanted: str) -> str:
        """Return a name for a loop or an array that is only used where it is declared."""
        return self.tiles.names.of(("matrix", wanted), wanted)

    # What a warp does

    def _warp(self) -> Code:
        steps = self.tiles.schedule.matrix[2]
        loops = [
            counted(self.tiles.point(d), self.tiles.hom.extents[d], ())
            for d in self.tiles.reduced
            if d != steps
        ]
        tile = counted(
            self.tiles.name("tile", steps, "tile"),
            self.tiles.hom.extents[steps],
            (),
            step=self.tiles.schedule.local[steps],
        )
        step = counted(
            self.tiles.name("step", steps, "step"), Number(self.tiles.schedule.local[steps]), (), step=SIDE
        )
        fills = tuple(side.filled() for side in self.sides)
        work = nested([step], self._step())
        return (
            *self._blocks,
            *self._each((ROW, COLUMN), (Store(self.total, self._place, Compute(Constant(0, SUM))),)),
            *nested([*loops, tile], (*fills, Barrier(), *work, Barrier())),
            *self._left(),
        )

    @cached_property
    def total(self) -> str:
        """The blocks of sums."""
        (name,) = totals(self.tiles)
        return self.tiles.names.of(("matrix", "blocks"), f"{name}_blocks")

    @cached_property
    def _blocks(self) -> tuple[Array, ...]:
        rows, columns, _ = self.tiles.schedule.matrix
        (of_total,) = partial_totals(self.tiles)
        count = [Number(self.size(d) // SIDE) for d in (rows, columns)]
        side = Number(SIDE)
        sums = Array(
            name=self.total,
            type=SUM,
            shape=(*count, side, side),
            space=Space.UNIT,
            totals=replace(of_total, parts=False),
            part=Part.SUM,
        )
        return (sums, *(factor.blocks for factor in self.sides))

    @property
    def _place(self) -> tuple[IntExpression, ...]:
        """Where the sum of a row and a column is among the blocks."""
        return tuple(Name(self.name(name)) for name in (ROW_BLOCK, COLUMN_BLOCK, ROW, COLUMN))

    def _each(self, matrix: Sequence[str], body: Code) -> Code:
        """Return loops over a warp's blocks of sums, and over ``matrix`` in each."""
        rows, columns, _ = self.tiles.schedule.matrix
        return nested(
            [self.unrolled(ROW_BLOCK, rows), self.unrolled(COLUMN_BLOCK, columns), *map(self.matrix, matrix)],
            body,
        )

    def unrolled(self, name: str, d: int) -> For:
        """Return the loop over a warp's blocks along a dimension."""
        return counted(self.name(name), Number(self.size(d) // SIDE), (), kind=Kind.UNROLLED)

    def matrix(self, name: str) -> For:
        """Return a loop inside a block."""
        return counted(self.name(name), Number(SIDE), (), kind=Kind.MATRIX)

    # Sums

    def _step(self) -> Code:
        """Return what is added up of a block of steps."""
        fetched = tuple(s for side in self.sides for s in side.fetched())
        left, right = (side.element() for side in self.sides)
        product = Binary(BinaryOp.MULTIPLY, Convert(SUM, Read(1, FACTOR)), Convert(SUM, Read(2, FACTOR)))
        value = Compute(
            Binary(BinaryOp.ADD, Read(0, SUM), product), (Load(self.total, self._place), left, right)
        )
        store = Store(self.total, self._place, value)
        return (*fetched, *self._each((ROW, COLUMN, STEP), self._where_asked(store)))

    def _where_asked(self, store: Store) -> Code:
        """Return a step of a sum as the instance that it is, and as none for rows and columns beside all."""
        rows, columns, steps = self.tiles.schedule.matrix
        at = {d: self.point(d, side) for d, side in ((rows, 0), (columns, 1))}
        begin = plus(
            Name(self.tiles.name("tile", steps, "tile")), Name(self.tiles.name("step", steps, "step"))
        )
        place = {**at, steps: plus(begin, Name(self.name(STEP)))}
        named = store
        if self.tiles.statements:
            arguments = tuple(place.get(d, point) for d, point in enumerate(here(self.tiles)))
            named = replace(store, instance=Instance(self.tiles.statements[0], arguments))
        condition = self.where_there(tuple(at.items()))
        return (named,) if condition is None else (If(condition, (named,), (store,)),)

    def point(self, d: int, side: int) -> IntExpression:
        """Return the row or column of a place in a block."""
        block, inside = ((ROW_BLOCK, ROW), (COLUMN_BLOCK, COLUMN))[side]
        at = times(SIDE, Name(self.name(block)), Name(self.name(inside)))
        return sum_of([(1, self.first(d)), (1, self.own(d)), (1, at)])

    # Results

    @cached_property
    def _shared(self) -> Array:
        """Where each warp leaves a strip of rows for its lanes."""
        rows, columns, _ = self.tiles.schedule.matrix
        shape = self.warps(rows), self.warps(columns), SIDE, self.size(columns) + SUM_PADDING
        name = self.tiles.names.of(("matrix", "shared"), f"{totals(self.tiles)[0]}_shared")
        return Array(name=name, type=SUM, shape=tuple(map(Number, shape)), space=Space.GROUP)

    def _left(self) -> Code:
        """Return what becomes of the sums, a strip of rows after another."""
        rows, columns, _ = self.tiles.schedule.matrix
        warp = Name(self.tiles.item(rows)), Name(self.tiles.item(columns))
        block, row, column = (Name(self.name(name)) for name in (COLUMN_BLOCK, ROW, COLUMN))
        target = (*warp, row, times(SIDE, block, column))
        leave = Store(self._shared.name, target, loaded(Load(self.total, self._place), SUM))
        loops = [self.unrolled(COLUMN_BLOCK, columns), self.matrix(ROW), self.matrix(COLUMN)]
        lanes = self.lanes(SIDE * self.size(columns), self._finished, of_group=False)
        strip = (*nested(loops, (leave,)), Barrier(), lanes, Barrier())
        return nested([self.unrolled(ROW_BLOCK, rows)], strip)

    def _finished(self, number: IntExpression) -> Code:
        """Return what is stored of the sum with a number in a strip."""
        tiles, (rows, columns, _) = self.tiles, self.tiles.schedule.matrix
        width = self.size(columns)
        row = Operation("/", (number, Number(width)))
        column = Operation("%", (number, Number(width)))
        strip = times(SIDE, Name(self.name(ROW_BLOCK)), row)
        places = (
            (rows, sum_of([(1, self.first(rows)), (1, self.own(rows)), (1, strip)])),
            (
                columns,
                sum_of([(1, self.first(columns)), (1, self.own(columns)), (1, column)]),
            ),
        )
        named = tuple(LetInteger(tiles.point(d), value) for d, value in places)
        (total,) = totals(tiles)
        source = Load(self._shared.name, (Name(tiles.item(rows)), Name(tiles.item(columns)), row, column))
        assert tiles.combiner is not None
        taken = (
            Array(name=total, type=SUM, shape=(), space=Space.REGISTER),
            Store(total, (), loaded(source, SUM)),
        )
        stored = results(tiles, Points(tiles.hom, tiles.buffers, here(tiles)), tiles.combiner)
        condition = self.where_there(tuple((d, Name(tiles.point(d))) for d, _ in places))
        return (*named, *taken, *(stored if condition is None else (If(condition, stored),)))


@dataclass(frozen=True, eq=False)
class _Factor:
    """A factor of a product: ``part``: LEFT that of rows, RIGHT that of columns."""

    product: _Product
    side: Side
    part: Part

    @property
    def tiles(self) -> Tiles:
        """The md_hom under its schedule."""
        return self.product.tiles

    @property
    def _is_left(self) -> bool:
        return self.part is Part.LEFT

    @property
    def _has_steps_last(self) -> bool:
        """Whether neighbours in the copy are steps."""
        return not self.side.turned

    @cached_property
    def _buffer(self) -> str:
        return self.tiles.hom.inputs[self.side.input].buffer

    @cached_property
    def copy(self) -> Array:
        """The elements of a cache tile, points and steps as they lie in the buffer."""
        name = self.tiles.names.of(("copy", self.side.input), f"{self._buffer}_copy")
        shape = tuple(map(Number, self.side.shape))
        return Array(name=name, type=FACTOR, shape=shape, space=Space.GROUP, packed=True)

    @cached_property
    def blocks(self) -> Array:
        """What the unit has of it at a time."""
        name = self.tiles.names.of(("blocks", self.side.input), f"{self._buffer}_blocks")
        turned = {Part.LEFT: Part.LEFT_TURNED, Part.RIGHT: Part.RIGHT_TURNED}
        lies_turned = self._is_left is not self._has_steps_last
        count = self.product.size(self.side.points) // SIDE
        return Array(
            name=name,
            type=FACTOR,
            shape=(Number(count), Number(SIDE), Number(SIDE)),
            space=Space.UNIT,
            part=turned[self.part] if lies_turned else self.part,
        )

    def _inside(self) -> tuple[str, str, str]:
        """Return the iterators over the warp's blocks, and over points and steps in one."""
        return (ROW_BLOCK, ROW, STEP) if self._is_left else (COLUMN_BLOCK, COLUMN, STEP)

    def element(self) -> Load:
        """Return the factor of a point and a step in the blocks."""
        block, point, step = (Name(self.product.name(name)) for name in self._inside())
        last = (point, step) if self._has_steps_last else (step, point)
        return Load(self.blocks.name, (block, *last))

    def fetched(self) -> Code:
        """Return the loops in which a unit loads its blocks of the copy."""
        tiles, names = self.tiles, self._inside()
        block, point, step = (Name(self.product.name(name)) for name in names)
        row = sum_of([(1, self.product.own(self.side.points)), (SIDE, block), (1, point)])
        column = plus(Name(tiles.name("step", tiles.schedule.matrix[2], "step")), step)
        place = (row, column) if self._has_steps_last else (column, row)
        store = Store(
            self.blocks.name, self.element().subscripts, loaded(Load(self.copy.name, place), FACTOR)
        )
        loops = [self.product.unrolled(names[0], self.side.points), *map(self.product.matrix, names[1:])]
        return nested(loops, (store,))

    # The copy

    def filled(self) -> For:
        """Return the loop in which the lanes of all warps fill the copy, a few neighbours at a time."""
        outer, inner = self.side.shape
        inner -= self.tiles.schedule.inputs[self.side.input].padding
        pieces = inner // self.side.width

        def piece(number: IntExpression) -> Code:
            row = Operation("/", (number, Number(pieces)))
            first = times(self.side.width, Operation("%", (number, Number(pieces))))
            return self._filled(row, first)

        return self.product.lanes(outer * pieces, piece, of_group=True)

    def _filled(self, row: IntExpression, first: IntExpression) -> Code:
        """Return what is stored in a row from its element ``first`` on: zeros beside the last point."""
        lane = Name(self.product.name("neighbour"))
        place = (row, plus(first, lane) if self.side.width > 1 else first)
        point = (row if self._has_steps_last else first, place[1] if self.side.turned else row)
        d, steps = self.side.points, self.tiles.schedule.matrix[2]
        step = place[1] if self._has_steps_last else row
        at = list[IntExpression](here(self.tiles))
        at[d] = plus(self.product.first(d), point[1])
        at[steps] = plus(Name(self.tiles.name("tile", steps, "tile")), step)
        element = Points(self.tiles.hom, self.tiles.buffers, tuple(at)).load(self.side.input)
        condition = self.product.where_there([(d, plus(self.product.first(d), point[0]))])
        there = self._together(lane, Store(self.copy.name, place, loaded(element, FACTOR)))
        if condition is None:
            return there
        zero = Store(self.copy.name, place, Compute(Constant(0, FACTOR)))
        return (If(condition, there, self._together(lane, zero)),)

    def _together(self, lane: Name, store: Statement) -> Code:
        if self.side.width == 1:
            return (store,)
        return (counted(lane.name, Number(self.side.width), (store,), kind=Kind.VECTOR),)
