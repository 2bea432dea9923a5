"""Points that the work-items of a group share.

    for i from i_group to i_group + 64:         item for i_item from 0 to 8:
      S(i)                                        for i_step from i_group to i_group + 64 step 16:
                                          ->        for i_turn from 0 to 2:
                                                      integer i = i_step + 2 * i_item + i_turn
                                                      S(i)

Of a reduced dimension each item combines its own points; then items combine what they have, neighbours first:

    total_shared[k_item] = total
    barrier
    if k_item % 2 == 0: total_shared[k_item] = total_shared[k_item] + total_shared[k_item + 1]
    barrier
    if k_item % 4 == 0: ...
    if k_item == 0: total = total_shared[k_item], ...
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial

from polyloom.ir.inequalities import conjunction
from polyloom.mdh.lowering.tiles.cache_tiles import group_low, is_reduction, low, tile_name
from polyloom.mdh.lowering.tiles.context import Tiles
from polyloom.mdh.lowering.tiles.naive import taken_up, total_types, totals
from polyloom.mdh.lowering.tiles.points import loaded
from polyloom.mdh.lowering.tiles.strips import Band, band_of, nested
from polyloom.mdh.tree.nodes import (
    ONE,
    ZERO,
    Array,
    Barrier,
    Code,
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
from polyloom.mdh.tree.ranges import Bounds, bounded, ends, least, plus, spread, starts, times
from polyloom.mdh.tree.rewrite import rewritten, substituted, with_blocks, with_places
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in


def work_items(tiles: Tiles, code: Code) -> Code:
    """Share the points of a group among its work-items.

    Keeps true: each point is visited by one item. Totals are combined in an order of their own where the
    operator commutes; else each item has neighbouring points, and items are combined in their order.
    """
    if not tiles.items:
        return code
    groups, body = band_of(code)
    count = sum(loop.kind is Kind.GROUP for loop in groups)
    groups, body = groups[:count], nested(groups[count:], body)
    waiting = tuple(s for s in body if isinstance(s, Array) and s.space is Space.GROUP)
    body = _shared(tiles, tuple(s for s in body if s not in waiting))
    items = [counted(tiles.item(d), Number(tiles.schedule.items[d]), (), kind=Kind.ITEM) for d in tiles.items]
    if not groups:
        name = tiles.names.of(("group",), "group")
        groups = (counted(name, ONE, (), kind=Kind.GROUP),)
    return (*waiting, *nested(groups, (*_meeting(tiles), *nested(items, body))))


def outside_items(code: Code, arrays: Sequence[Array]) -> Code:
    """Declare arrays that the items of a group share."""
    found: list[Statement] = []
    for statement in code:
        if isinstance(statement, For) and statement.kind is Kind.ITEM:
            found += arrays
            found.append(statement)
        else:
            found.append(with_blocks(statement, partial(outside_items, arrays=arrays)))
    return tuple(found)


def in_place(tiles: Tiles, code: Code) -> Code:
    """Put an item's points of reduced dimensions where they are named.

    Keeps true: everything but that name.
    """
    names = {tiles.point(d) for d in tiles.shared}

    def placed(statement: Statement) -> Code:
        return (with_blocks(statement, partial(named_in_place, names)),)

    return rewritten(code, placed) if names else code


def named_in_place(names: Collection[str], code: Code) -> Code:
    """Return a block with the values of some integers in their place."""
    for at, statement in enumerate(code):
        if isinstance(statement, LetInteger) and statement.name in names:
            rest = substituted(code[at + 1 :], statement.name, statement.value)
            return (*code[:at], *named_in_place(names, rest))
    return code


# Kept points


def _shared(tiles: Tiles, code: Code, around: frozenset[str] = frozenset()) -> Code:
    """Share the loops over points, each band of them as a whole; ``around``: iterators of loops around."""
    if not tiles.kept:
        return _combined(tiles, code)
    points = {tiles.point(d) for d in tiles.kept}
    found: list[Statement] = []
    for statement in code:
        if isinstance(statement, For) and statement.iterator in points:
            loops, body = band_of((statement,), points)
            inner = _combined(tiles, body) if any(is_reduction(tiles, (s,)) for s in body) else body
            found += _turned(tiles, loops, inner, around)
        else:
            inside = around | ({statement.iterator} if isinstance(statement, For) else frozenset())
            found.append(with_blocks(statement, partial(_shared, tiles, around=inside)))
    return tuple(found)


def _turned(tiles: Tiles, loops: Band, body: Code, around: Collection[str]) -> Code:
    """Return loops over the steps of a group, and over an item's points in each."""
    dimensions = {tiles.point(d): d for d in tiles.kept}
    steps: list[For] = []
    inner: list[tuple[For, Code]] = []
    for at, loop in enumerate(loops):
        d = dimensions[loop.iterator]
        if d not in tiles.register_tiled:
            inner.append((loop, ()))
            continue
        lowest = low(tiles, d) if tile_name(tiles, d) in around else group_low(tiles, d)
        begin = lowest
        _, upper = spread(loop, loops[:at])
        if not _is_within(upper, begin, tiles.facts.step(d)):
            step = counted(tiles.name("step", d, "step"), ZERO, (), step=tiles.facts.step(d))
            steps.append(bounded(step, (begin,), upper))
            begin = Name(step.iterator)
        inner.append(_turn(tiles, d, _unkept(tiles, d, loop, lowest), begin))
    for loop, named in reversed(inner):
        body = (replace(loop, body=(*named, *body)),)
    return nested(steps, body)


def _is_within(upper: Sequence[IntExpression], begin: IntExpression, size: int) -> bool:
    """Whether points from ``begin`` on are known to be ``size`` at most."""
    lengths = (plus(end, begin, -1) for end in upper)
    return any(isinstance(n, Number) and n.value <= size for n in lengths)


def _unkept(tiles: Tiles, d: int, loop: For, lowest: IntExpression) -> tuple[Bounds, Bounds]:
    """Return those bounds of a loop that whole steps of its group from ``lowest`` on do not keep anyway."""
    n, step = tiles.facts.extent(d), tiles.facts.step(d)
    divides = n and tiles.facts.divides(d, step) and not tiles.domain.is_bounded(d)
    points = {tiles.point(other) for other in tiles.kept}

    def is_kept(end: IntExpression) -> bool:
        length = plus(end, lowest, -1)
        in_steps = isinstance(length, Number) and length.value > 0 == length.value % step
        return in_steps or (bool(divides) and names_in(end).isdisjoint(points))

    known = (lowest, group_low(tiles, d), ZERO)
    return tuple(s for s in starts(loop) if s not in known), tuple(e for e in ends(loop) if not is_kept(e))


def _turn(tiles: Tiles, d: int, bounds: tuple[Bounds, Bounds], begin: IntExpression) -> tuple[For, Code]:
    """Return the loop over an item's points in a step that starts at ``begin``, and the name of each."""
    items = tiles.schedule.items[d]
    distance, count = (items, tiles.schedule.private[d]) if tiles.is_strided(d) else (1, tiles.facts.tile(d))
    first = begin if items == 1 else times(1 if distance > 1 else count, Name(tiles.item(d)), begin)

    def number(bound: IntExpression) -> IntExpression:
        """Return the first of the item's points that is not before a bound."""
        length = plus(bound, first, -1)
        if distance == 1:
            return length
        return Operation("/", (plus(length, distance - 1), Number(distance)))

    lower, upper = (tuple(map(number, bound)) for bound in bounds)
    turn = counted(tiles.turn(d), Number(count), ())
    value = times(distance, Name(turn.iterator), first)
    return bounded(turn, (ZERO, *lower), (*upper, Number(count))), (LetInteger(tiles.point(d), value),)


# Reductions


def _combined(tiles: Tiles, body: Code) -> Code:
    """Return what is done at a kept point, its reduction shared by items."""
    if not tiles.shared:
        return body
    at = next(k for k, s in enumerate(body) if is_reduction(tiles, (s,)))
    reduction = body[at : at + 1]
    for d in tiles.shared:
        reduction = rewritten(reduction, partial(_own_points, tiles, d))
    whole = _moved(tiles, [Load(name, _place(tiles)) for name in _names(tiles)], [*map(Load, totals(tiles))])
    after = _leading(tiles, tiles.shared, (*whole, *body[at + 1 :]))
    return (*body[:at], *reduction, *_together(tiles), *after)


def _own_points(tiles: Tiles, d: int, statement: Statement) -> Code:
    """Cut the loop over a reduced dimension: each item has every so-manieth point, or neighbours."""
    if not isinstance(statement, For) or statement.iterator != tiles.point(d):
        return (statement,)
    loop, item, items = statement, Name(tiles.item(d)), tiles.schedule.items[d]
    turn, length = Name(tiles.turn(d)), plus(statement.end, statement.start, -1)
    assert tiles.combiner is not None
    if tiles.combiner.commutative:
        value = times(items, turn, plus(loop.start, item))
        if isinstance(length, Number) and length.value % items == 0:
            count: IntExpression = Number(length.value // items)
        else:
            count = Operation("/", (plus(plus(length, items - 1), item, -1), Number(items)))
    else:
        most = tiles.facts.length(d)
        each, before = _part(length if most is None else Number(most), items, item)
        value = plus(plus(loop.start, before), turn)
        count = least((each, plus(length, before, -1)))
    named = LetInteger(loop.iterator, value)
    return (counted(turn.name, count, (named, *loop.body)),)


def _part(length: IntExpression, items: int, item: Name) -> tuple[IntExpression, IntExpression]:
    """Return how many points each item has at most, and how many others have before one of them."""
    if isinstance(length, Number):
        each = -(-length.value // items)
        return Number(each), times(each, item)
    part = Operation("/", (plus(length, items - 1), Number(items)))
    return part, Operation("*", (item, part))


def _leading(tiles: Tiles, dimensions: Sequence[int], code: Code) -> Code:
    """Return code for the first item along some dimensions alone."""
    first = tuple(Operation("==", (Name(tiles.item(d)), ZERO)) for d in dimensions)
    condition = conjunction(first)
    return code if condition is None else (If(condition, code),)


def _names(tiles: Tiles) -> tuple[str, ...]:
    return tuple(tiles.names.of(("shared", name), f"{name}_shared") for name in totals(tiles))


def _tiled(tiles: Tiles) -> tuple[int, ...]:
    """Return the dimensions of which a register tile has several points."""
    return tuple(d for d in tiles.kept if tiles.facts.tile(d) > 1)


def _meeting(tiles: Tiles) -> tuple[Array, ...]:
    """Declare where items leave their totals for each other: a place for each point of a register tile."""
    if not tiles.shared:
        return ()
    sizes = [*(tiles.facts.tile(d) for d in _tiled(tiles)), *(tiles.schedule.items[d] for d in tiles.items)]
    shape = tuple(map(Number, sizes))
    return tuple(
        Array(name=name, type=kind, shape=shape, space=Space.GROUP)
        for name, kind in zip(_names(tiles), total_types(tiles), strict=True)
    )


def _place(tiles: Tiles, along: int | None = None, apart: int = 0) -> tuple[IntExpression, ...]:
    """Return where the total of an item is, or of the one that is ``apart`` further along a dimension."""
    turns = tuple(Name(tiles.turn(d)) for d in _tiled(tiles))
    items = (plus(Name(tiles.item(d)), apart if d == along else 0) for d in tiles.items)
    return (*turns, *items)


def _together(tiles: Tiles) -> Code:
    """Combine the totals that items leave, neighbours first, so that operands keep their order.

    Each is taken up by one other, so that the verifier sees when one is lost.
    """
    places = {Load(name): Load(name, _place(tiles)) for name in _names(tiles)}
    found: list[Statement] = [
        *_moved(tiles, tuple(map(Load, totals(tiles))), tuple(places.values())),
        Barrier(),
    ]
    for k, d in enumerate(reversed(tiles.shared)):
        done = tiles.shared[len(tiles.shared) - k :]
        for apart in _powers(tiles.schedule.items[d]):
            others = [Load(name, _place(tiles, d, apart)) for name in _names(tiles)]
            step = taken_up(tiles, _names(tiles), others)
            step = with_places(step, lambda load: places.get(load, load))
            found += [*_leading(tiles, done, _pairs(tiles, d, apart, step)), Barrier()]
    return tuple(found)


def _moved(tiles: Tiles, sources: Sequence[Load], targets: Sequence[Load]) -> Code:
    return tuple(
        Store(target.array, target.subscripts, loaded(source, kind))
        for source, target, kind in zip(sources, targets, total_types(tiles), strict=True)
    )


def _powers(items: int) -> Iterator[int]:
    apart = 1
    while apart < items:
        yield apart
        apart *= 2


def _pairs(tiles: Tiles, d: int, apart: int, step: Code) -> Code:
    """Return a step for those items that have another one ``apart`` further, each of which is in one pair."""
    item, items = Name(tiles.item(d)), tiles.schedule.items[d]
    every = Operation("==", (Operation("%", (item, Number(2 * apart))), ZERO))
    there = Operation("<", (plus(item, apart), Number(items)))
    condition = conjunction((every,) if items % (2 * apart) == 0 else (every, there))
    assert condition is not None
    return (If(condition, step),)
