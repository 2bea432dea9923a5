"""Loops over groups and work-items as what one work-item does: it knows its numbers.

parallel for i_group from 0 to n step 64:            integer i_group = group * 64
item for i_item from 0 to 8:                 ->    integer i_item = item
...                                              ...

Where items are warps with matrix units, each is 32 lanes, which all go through what stands beside the loops
over lanes.

item for warp from 0 to 4:                           integer warp = item / 32
item for lane from 0 to 32: S            ->        integer lane = item % 32
matrix for row from 0 to 16: ...                   S
                                                   matrix for row from 0 to 16: ...
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from polyloom.ir.naming import Names
from polyloom.mdh.tree.matrix.steps import LANES, has_steps
from polyloom.mdh.tree.nodes import (
    ONE,
    ZERO,
    Array,
    Code,
    For,
    If,
    Kind,
    LetInteger,
    Space,
    Statement,
    counted,
)
from polyloom.mdh.tree.rewrite import integers_used, rewritten, walk, with_blocks
from polyloom.mdh.tree.trips import nested_groups, trip_count
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, product_of, sum_of


@dataclass(frozen=True)
class Share:
    """What one work-item does, which knows ``group`` and ``item``; how many there are of both."""

    code: Code
    group: str
    item: str
    groups: IntExpression
    items: int


def points_as_items(loop: For, most: int, names: Names) -> For:
    """Let work-items have the points of the innermost parallel loop, in groups of ``most``.

    Keeps true: the same points, each once; they are independent. Points with an array of the group's stay.
    """
    has_own = any(isinstance(s, Array) and s.space is Space.GROUP for s in walk(loop.body))
    loops = nested_groups(loop)
    last = loops[-1]
    count = trip_count(last)
    items = min(most, max(1, count.value)) if isinstance(count, Number) else most
    if has_own or items == 1:
        return loop
    step = last.step
    assert isinstance(step, Number)
    first = names.of((last.iterator, "first"), f"{last.iterator}_first")
    item = names.of((last.iterator, "item"), f"{last.iterator}_item")
    here = sum_of([(1, Name(first)), (step.value, Name(item))])
    body: Code = (LetInteger(last.iterator, here), *last.body)
    if not (isinstance(count, Number) and count.value % items == 0):
        body = (LetInteger(last.iterator, here), If(last.condition, last.body))
    inner = counted(item, Number(items), body, kind=Kind.ITEM)
    outer = counted(first, last.end, (inner,), kind=Kind.GROUP, start=last.start, step=step.value * items)
    for around in reversed(loops[:-1]):
        outer = replace(around, body=(outer,))
    return outer


def shares(loop: For, names: Names) -> Share:
    """Return what each work-item does of a parallel loop, those right inside it shared out with it."""
    loops = nested_groups(loop)
    body, item, items = _own_part(loops[-1].body, names)
    code, group = _numbered(loops, body, names.of(("group",), "group"))
    groups = product_of([trip_count(each) for each in loops])
    return Share(code=code, group=group, item=item, groups=groups, items=items)


def _numbered(loops: Sequence[For], body: Code, number: str) -> tuple[Code, str]:
    """Return a body at the points of nested loops that a number tells apart, and what that is called.

    The only iterator from 0 on is the number itself.
    """
    counts = [trip_count(each) for each in loops]
    if [(each.start, each.step) for each in loops] == [(ZERO, ONE)]:
        return body, loops[0].iterator
    at: list[Statement] = []
    used = integers_used(body)
    for k, each in enumerate(loops):
        assert isinstance(each.step, Number)
        here = sum_of([(1, each.start), (each.step.value, _digit(Name(number), counts, k))])
        if each.iterator in used:
            at.append(LetInteger(each.iterator, here))
    return (*at, *body), number


def _digit(number: Name, counts: list[IntExpression], k: int) -> IntExpression:
    """Return the place along loop ``k`` of nested loops with so many points."""
    if counts[k] == Number(1):
        return ZERO
    inner = product_of(counts[k + 1 :])
    found: IntExpression = number if inner == Number(1) else Operation("/", (number, inner))
    outer = product_of(counts[:k])
    return found if outer == Number(1) else Operation("%", (found, counts[k]))


def _own_part(code: Code, names: Names) -> tuple[Code, str, int]:
    """Return code as one item carries it out, what its number is called, and how many items there are."""
    bands = [band for statement in code for band in _item_bands(statement)]
    most = max(map(_items, bands), default=1)
    item = names.of(("item",), "item")
    alone = len(bands) == 1

    def placed(statement: Statement) -> Code:
        nonlocal item
        band = next((band for band in bands if statement == band[0]), None)
        if band is None:
            return (with_blocks(statement, lambda block: tuple(s for b in block for s in placed(b))),)
        if has_steps(band[-1].body):
            return _warps(band, Name(item), count=most, names=names)
        body, number = _numbered(band, band[-1].body, item)
        count = _items(band)
        if alone:
            item = number
        elif number != item:
            body = (LetInteger(number, Name(item)), *body)
        return body if count == most else (If(Operation("<", (Name(item), Number(count))), body),)

    return tuple(s for statement in code for s in placed(statement)), item, most


def _items(band: Sequence[For]) -> int:
    """Return how many items a band of loops over them has; of warps with matrix units, their lanes."""
    return prod(map(_size, band)) * (LANES if has_steps(band[-1].body) else 1)


def _warps(band: Sequence[For], item: Name, count: int, names: Names) -> Code:
    """Return what an item does as a lane of a warp with a matrix unit: all ``count`` items are such."""
    assert _items(band) == count, "warps beside other items"
    warp = names.of(("warp",), "warp")

    def lane(statement: Statement) -> Code:
        if isinstance(statement, For) and statement.kind is Kind.ITEM:
            assert _size(statement) == LANES, "a warp has so many lanes"
            return (LetInteger(statement.iterator, Operation("%", (item, Number(LANES)))), *statement.body)
        return (statement,)

    body, number = _numbered(band, rewritten(band[-1].body, lane), warp)
    named = LetInteger(number, Operation("/", (item, Number(LANES))))
    return (named, *body) if number in integers_used(body) else body


def _item_bands(statement: Statement) -> list[list[For]]:
    """Return bands of item loops right inside each other."""
    found: list[list[For]] = []
    seen: set[str] = set()
    for inner in walk((statement,)):
        if isinstance(inner, For) and inner.kind is Kind.ITEM and inner.iterator not in seen:
            band = [inner]
            while len(band[-1].body) == 1:
                (next_,) = band[-1].body
                if not isinstance(next_, For) or next_.kind is not Kind.ITEM:
                    break
                band.append(next_)
            seen |= {loop.iterator for loop in band}
            inside = [s for s in walk(band[-1].body) if isinstance(s, For) and s.kind is Kind.ITEM]
            assert not inside or has_steps(band[-1].body), "items of items"
            seen |= {loop.iterator for loop in inside}
            found.append(band)
    return found


def _size(loop: For) -> int:
    count = trip_count(loop)
    assert isinstance(count, Number), "items are so many"
    return count.value
