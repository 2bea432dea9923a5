"""Unroll and jam: a few points of a kept loop go through everything inside it together.

    for i from 0 to m:                 for i_first from 0 to m step 4:
      float32 total                      float32 total[4]
      total = 0.0                        unrolled for i_at from 0 to 4: total[i_at] = 0.0
      for k from 0 to p:          ->     for k from 0 to p:
        total = total + A[i, k]            unrolled for i_at from 0 to 4: total[i_at] = total[i_at] + A[..]
      y[i] = total                       unrolled for i_at from 0 to 4: y[i_first + i_at] = total[i_at]

A loop inside whose bounds differ from point to point is cut in three: what all points have in common is done
together, what one point has before and behind it, by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.cache_tiles import low
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.items import named_in_place
from polyloom.mdh.lowering.tiles.strips import in_steps, whole_steps
from polyloom.mdh.schedule.addresses import points_before_lines
from polyloom.mdh.tree.nodes import (
    ONE,
    ZERO,
    Array,
    Code,
    For,
    If,
    Kind,
    Let,
    LetInteger,
    Load,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import bounded, ends, greatest, inner_range, plus, spread, starts, times
from polyloom.mdh.tree.rewrite import (
    blocks,
    integers_of,
    loads_of,
    rewritten,
    substituted,
    walk,
    with_integers,
    with_places,
)
from polyloom.mdh.tree.simplify import simplified
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    names_in,
    replace_name,
)

LEAST_IN_LINES = 4
"""Vectors of which a row has to have as many, for some points to come before them."""


@dataclass(frozen=True)
class Jam:
    """How the points of one dimension are jammed.

    ``at``: the iterator over a few points; ``own``: what loops over one point's own range are called;
    ``last``: whether the points are the last dimension of arrays (lanes of vectors), not the first.
    ``there``: the condition under which a point exists; without one there are all of them.
    """

    at: str
    last: bool
    own: Callable[[str], str]
    there: IntExpression | None = None

    def together(self, count: int, code: Code) -> Code:
        """Return code, in which ``at`` is a point, for ``count`` points.

        Keeps true: each statement is carried out for each point, in the point's own order. Points do not
        depend on each other; what they keep in arrays that are declared inside lies apart.
        """
        if count == 1 and self.there is None:
            return substituted(code, self.at, ZERO)
        point = counted(self.at, Number(count), (), kind=Kind.UNROLLED)
        together = self._through(code, point, _varying(code, self.at))
        return substituted(together, self.at, ZERO) if count == 1 else together

    def _expanded(self, code: Code, varying: Collection[str], count: IntExpression) -> Code:
        """Give each point its own elements of a block's arrays that differ from point to point."""
        own = {s.name for s in code if isinstance(s, Array) and s.name in varying and count != ONE}

        def place(load: Load) -> Load:
            inside = self._at(load.subscripts, Name(self.at))
            return replace(load, subscripts=inside) if load.array in own else load

        def shaped(s: Statement) -> Statement:
            is_own = isinstance(s, Array) and s.name in own
            return replace(s, shape=self._at(s.shape, count)) if isinstance(s, Array) and is_own else s

        return with_places(tuple(map(shaped, code)), place) if own else code

    def _at(self, places: tuple[Any, ...], place: IntExpression) -> tuple[Any, ...]:
        """Return subscripts, or a shape, with the points' own dimension."""
        return (*places, place) if self.last else (place, *places)

    def _through(self, code: Code, point: For, varying: Collection[str]) -> Code:
        """Bring the loop over points to what depends on it; statements in a row that do share one loop."""
        found: list[Statement] = []
        run: list[Statement] = []
        for statement in self._expanded(code, varying, point.end):
            if isinstance(statement, Array) or self._is_named_before(statement, varying):
                found.append(statement)
            elif self._goes_along(statement, varying):
                run.append(statement)
            else:
                found += self._over(point, run) + self._passed(statement, point, varying)
                run = []
        return tuple(found + self._over(point, run))

    def _over(self, point: For, run: Sequence[Statement]) -> list[Statement]:
        """Return statements for all points that there are."""
        if not run:
            return []
        body = tuple(run) if self.there is None else (If(self.there, tuple(run)),)
        return list(body) if point.end == ONE else [replace(point, body=body)]

    def _is_named_before(self, statement: Statement, varying: Collection[str]) -> bool:
        """Whether a statement names a value that all points have, in front of what they do in a row."""
        is_name = isinstance(statement, Let | LetInteger)
        return is_name and not _depends(statement, self.at, varying)

    def _goes_along(self, statement: Statement, varying: Collection[str]) -> bool:
        """Whether a statement is carried out for each point as it is, whatever is inside it."""
        if not _depends(statement, self.at, varying):
            return False
        return not isinstance(statement, For) and (
            not isinstance(statement, If) or self._decides(statement, varying)
        )

    def _decides(self, branch: If, varying: Collection[str]) -> bool:
        return _speaks(replace(branch, body=(), otherwise=()), self.at, varying)

    def _passed(self, statement: Statement, point: For, varying: Collection[str]) -> list[Statement]:
        if not _depends(statement, self.at, varying):
            return [statement]
        match statement:
            case For(body=body) if _in_bounds(statement, self.at) and statement.step != ONE:
                lower, upper = spread(statement, [point])
                if not lower or not upper:
                    return [self._alone(statement, point, varying)]
                return [replace(bounded(statement, lower, upper), body=self._through(body, point, varying))]
            case For() if _in_bounds(statement, self.at):
                return self._apart(statement, point, varying)
            case For(body=body):
                return [replace(statement, body=self._through(body, point, varying))]
            case If(body=body, otherwise=otherwise):
                inside = self._through(body, point, varying), self._through(otherwise, point, varying)
                return [If(statement.condition, *inside)]
            case _:
                raise AssertionError("a statement without statements goes along")

    def _apart(self, loop: For, point: For, varying: Collection[str]) -> list[Statement]:
        """Cut a loop whose bounds depend on the point: before what all have in common, that, behind it."""
        shared = inner_range(loop, point)
        if shared is None:
            return [self._alone(loop, point, varying)]
        low, high = shared
        before = bounded(loop, starts(loop), (*ends(loop), low))
        behind = bounded(loop, (greatest((low, high)),), ends(loop))
        common = replace(bounded(loop, (low,), (high,)), body=self._through(loop.body, point, varying))
        found: list[Statement] = [common]
        if _mention(starts(loop), self.at):
            found.insert(0, self._alone(before, point, varying))
        if _mention(ends(loop), self.at):
            found.append(self._alone(behind, point, varying))
        return found

    def _alone(self, loop: For, point: For, varying: Collection[str]) -> Statement:
        """Return a loop for one point after another; points in registers are written out."""
        name = self.own(loop.iterator)
        declared = {s.name for s in walk(loop.body) if isinstance(s, Array)}
        used = (load for s in walk(loop.body) for load in _places(s) if load.array not in declared)
        in_registers = any(Name(self.at) in load.subscripts for load in used)
        body = substituted(loop.body, loop.iterator, Name(name))
        own = replace(loop, iterator=name, body=body)
        own = bounded(own, starts(loop), ends(loop))
        return replace(point, kind=Kind.UNROLLED if in_registers else Kind.SEQUENTIAL, body=(own,))


def _mention(expressions: Iterable[IntExpression], name: str) -> bool:
    return any(name in names_in(e) for e in expressions)


def _in_bounds(loop: For, name: str) -> bool:
    return _mention((loop.start, loop.condition), name)


def _places(statement: Statement) -> tuple[Load, ...]:
    """Return what a statement itself loads and stores."""
    target = (Load(statement.array, statement.subscripts),) if isinstance(statement, Store) else ()
    return (*target, *loads_of(statement))


def _speaks(statement: Statement, at: str, varying: Collection[str]) -> bool:
    """Whether a statement itself, without its blocks, differs from point to point."""
    return _mention(integers_of(statement), at) or any(p.array in varying for p in _places(statement))


def _depends(statement: Statement, at: str, varying: Collection[str]) -> bool:
    """Whether a statement, or what is inside it, differs from point to point."""
    return any(_speaks(s, at, varying) for s in walk((statement,)))


def _varying(code: Code, at: str) -> frozenset[str]:
    """Return the arrays and named values that differ from point to point."""
    found: frozenset[str] = frozenset()
    while (more := found | _stored(code, at, found, False)) != found:
        found = more
    return found


def _stored(code: Code, at: str, varying: Collection[str], inside: bool) -> frozenset[str]:
    """Return what is stored where ``inside`` holds, or where something differs from point to point.

    Values with names stay together with what is stored beside them.
    """
    named = any(isinstance(s, Let) for s in code)
    straight = [s for s in code if isinstance(s, Let | Store)]
    together = inside or (named and any(_speaks(s, at, varying) for s in straight))
    found = {
        s.name if isinstance(s, Let) else s.array for s in straight if together or _speaks(s, at, varying)
    }
    for statement in code:
        differs = inside or _speaks(statement, at, varying)
        found |= {name for block in blocks(statement) for name in _stored(block, at, varying, differs)}
    return frozenset(found)


# Main parts and rests


def jammed(tiles: Tiles, code: Code) -> Code:
    """Unroll and jam the kept dimensions, the outer ones first, as far as a register tile goes.

    Keeps true: the same statements for the same points. Where tiles do not divide a loop, its last points,
    and those that one point has alone, come in narrower tiles.
    """
    for d in tiles.kept:
        if tiles.facts.tile(d) > 1 or d in tiles.register_tiled:
            code = simplified(rewritten(code, partial(_cut, tiles, d)))
    return code


def own_name(tiles: Tiles, iterator: str) -> str:
    """Return the iterator over what one point has alone of a loop."""
    return tiles.names.of(("own", iterator), f"{iterator}_own")


def _cut(tiles: Tiles, d: int, statement: Statement) -> Code:
    loops = (tiles.point(d), tiles.turn(d))
    match statement:
        case For(iterator=iterator) if iterator in loops:
            return _Cut(tiles, d, statement).code()
        case For(iterator=iterator) if iterator in [own_name(tiles, loop) for loop in loops]:
            cut = _Cut(tiles, d, statement)
            return cut.narrower(cut.widths()[1:] or (1,))
        case _:
            return (statement,)


@dataclass(frozen=True)
class _Cut:
    """A loop over the points of a kept dimension, on its way to a loop over tiles of registers."""

    tiles: Tiles
    d: int
    loop: For

    def code(self) -> Code:
        """Return the main part, then the rest; a rest that is known has one shape."""
        tiles, d, size = self.tiles, self.d, self.tiles.facts.tile(self.d)
        length, n = plus(self.loop.end, self.loop.start, -1), tiles.facts.extent(d)
        if isinstance(length, Number):
            return self._known(length.value)
        if d in tiles.register_tiled:
            return self._single(length)
        if n is None or tiles.domain.is_bounded(d):
            return self._unknown()
        if tiles.facts.divides(d, size):
            return whole_steps(tiles, d, self.loop.start, self.loop.end, size, self.once)
        start, end = self.loop.start, plus(self.loop.end, 1 - size)
        main = whole_steps(tiles, d, start, end, size, self.once) if n >= size else ()
        rest = self.once(Number(n - n % size), n % size)
        return (*main, If(Operation("==", (self.loop.end, Number(n))), rest)) if n % size else main

    def _known(self, length: int) -> Code:
        """Return the main part of a loop whose length is known, then the rest; both lie in lines if they may.

        Points before the first vector that lies in a line come first then.
        """
        size, first = self.tiles.facts.tile(self.d), 0
        if length >= LEAST_IN_LINES * self.tiles.schedule.width and isinstance(self._before_lines, Number):
            first = self._before_lines.value
        sizes = tuple(filter(None, (size, max(length - first, 0) % size)))
        if not first:
            return self.narrower(sizes)
        rest = replace(self, loop=bounded(self.loop, (Number(first),), ends(self.loop)))
        return (*self.once(ZERO, first), *rest.narrower(sizes))

    def _unknown(self) -> Code:
        """Return tiles of a loop of unknown length; points before those that lie in lines come first."""
        before = ZERO if self.tiles.domain.is_bounded(self.d) else self._before_lines
        if before == ZERO:
            return self.narrower(self.widths())
        name = self.tiles.names.of((object(),), f"{self.tiles.point(self.d)}_before")
        first = bounded(self.loop, (ZERO,), (Name(name), *ends(self.loop)))
        rest = bounded(self.loop, (Name(name),), ends(self.loop))
        parts = replace(self, loop=first).narrower((1,)), replace(self, loop=rest).narrower(self.widths())
        return (LetInteger(name, before), *parts[0], *parts[1])

    @cached_property
    def _before_lines(self) -> IntExpression:
        """How many points of a row come before the vectors that lie in lines; 0 where that is no gain."""
        tiles = self.tiles
        if self.d != tiles.vector or tiles.combiner is not None or not self._is_row():
            return ZERO
        return points_before_lines(tiles.hom, tiles.buffers, self.d, tiles.schedule.width)

    def _is_row(self) -> bool:
        """Whether the loop goes through the points of the dimension from 0 on."""
        return self.loop.iterator == self.tiles.point(self.d) and self.loop.start == ZERO

    def _single(self, length: IntExpression) -> Code:
        """Return what an item does for a tile, or less, which it has by itself; or together with others."""
        tiles, d, size = self.tiles, self.d, self.tiles.facts.tile(self.d)
        if tiles.meets:
            return self.once(ZERO, size, _before(Name(tiles.name("at", d, "at")), ends(self.loop)))
        n, bounds = tiles.facts.extent(d), tiles.domain.is_bounded(d)
        rests = self.widths()[1:] if n is None or bounds or tiles.is_strided(d) else (n % size,)
        rest = self.narrower(rests) if any(rests) else ()
        filled: IntExpression = Operation("<=", (Number(size), length))
        if self.loop.start == ZERO:
            filled = _before(Number(size - 1), ends(self.loop)) or filled
        return (If(filled, self.once(self.loop.start, size), rest),)

    def widths(self) -> tuple[int, ...]:
        """Return the lengths of tiles where it is not known how many points there are.

        At slanted borders halves of vectors too: syrk and covariance of 500 take 20 % longer without. Where
        the extent alone is open, each half repeats what is inside for the C compiler, and no run gains.
        """
        width = self.tiles.facts.width(self.d)
        halves = [width >> k for k in range(width.bit_length())]
        rests = halves if self.tiles.domain.is_bounded(self.d) else (width, 1)
        return tuple(dict.fromkeys((self.tiles.facts.tile(self.d), *rests)))

    def narrower(self, sizes: Sequence[int]) -> Code:
        """Return tiles of some points as long as there are enough, then smaller ones."""
        return in_steps(self.tiles, self.d, self.loop, sizes, self.once)

    def once(self, first: IntExpression, count: int, there: IntExpression | None = None) -> Code:
        """Return what is done for ``count`` points together, those that are there."""
        tiles, d = self.tiles, self.d
        at = tiles.name("at", d, "at")
        jam = Jam(at, d == tiles.vector, partial(own_name, tiles), there)
        body = self._in_panels(first, Name(at), count)
        body = substituted(named_in_place((tiles.point(d),), body), self.loop.iterator, plus(first, Name(at)))
        return jam.together(count, body)

    def _point(self, first: IntExpression) -> IntExpression:
        """Return the point at which the loop is where its iterator is ``first``."""
        point = self.tiles.point(self.d)
        for statement in self.loop.body:
            if isinstance(statement, LetInteger) and statement.name == point:
                return replace_name(statement.value, self.loop.iterator, first)
        return first

    def _in_panels(self, first: IntExpression, at: IntExpression, count: int) -> Code:
        """Return the body with what is known of places in panels of copies: a tile lies in one of them."""
        tiles, width = self.tiles, Number(self.tiles.facts.tile(self.d))
        if tiles.is_strided(self.d):
            return self.loop.body
        name = tiles.point(self.d) if self.d in tiles.register_tiled else self.loop.iterator
        distance = plus(Name(name), low(tiles, self.d), -1)
        begin = plus(self._point(first), low(tiles, self.d), -1)
        known = tiles.facts.extent(self.d) is not None and not tiles.domain.is_bounded(self.d)
        aligned = known or count == width.value
        places = {
            Operation("/", (distance, width)): Operation("/", (begin, width)),
            Operation("%", (distance, width)): at if aligned else plus(at, Operation("%", (begin, width))),
        }

        def place(expression: IntExpression) -> IntExpression:
            if isinstance(expression, Operation):
                inner = Operation(expression.operator, tuple(map(place, expression.operands)))
                return places.get(expression, inner)
            return expression

        return tuple(with_integers(s, place) for s in self.loop.body)


def _before(at: IntExpression, bounds: Sequence[IntExpression]) -> IntExpression | None:
    """Return the condition that a number is less than some others; None where it is known to be."""
    found: list[IntExpression] = []
    for bound in bounds:
        match bound:
            case Number():
                continue
            case Operation(operator="/", operands=(above, Number(value=size))):
                found.append(Operation("<=", (times(size, at, size), above)))
            case _:
                found.append(Operation("<", (at, bound)))
    return conjunction(tuple(found))
