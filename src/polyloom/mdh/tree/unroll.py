"""Points written out where they choose registers; all other loops stay loops.

    unrolled for i_at from 0 to 4:             unrolled for i_at from 0 to 4:
      total[i_at] = 0.0                          total[i_at] = 0.0
    unrolled for i_at from 0 to 4:       ->    if max(0, n - 3) < n:
      for k from n - i_at to n:                  float32 total_own[4] on the stack
        total[i_at] = total[i_at] + x[k]         unrolled for i_at from 0 to 4: total_own[i_at] = total[i_at]
                                                 for i_at from 0 to 4:
                                                   for k from n - i_at to n: total_own[i_at] = ...
                                                 unrolled for i_at from 0 to 4: total[i_at] = total_own[i_at]

What single points do in loops of their own, at the edges of what they have in common, works in memory
where it would be long: written out it is there as often as there are points.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from polyloom.ir.expressions import Read
from polyloom.ir.naming import Names
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    If,
    Kind,
    Load,
    Space,
    Statement,
    Store,
    counted,
)
from polyloom.mdh.tree.ranges import greatest, least, plus, spread
from polyloom.mdh.tree.rewrite import (
    blocks,
    loads_of,
    renamed_array,
    rewritten,
    substituted_in,
    walk,
    with_blocks,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in

LONG, LONG_STEPS = 40, 256
"""Statements that loops of single points, and steps of reductions, may be when they are written out."""


def unrolled(names: Names, code: Code) -> Code:
    """Write out loops that are to be, point by point, where they work in registers and are not too long.

    Keeps true: the same values, in the same order. Compilers unroll other loops of a few points themselves.
    """
    in_registers = (Space.REGISTER, Space.UNIT)
    held = {s.name for s in walk(code) if isinstance(s, Array) and s.space in in_registers}
    return _points(rewritten(_in_memory(names, {}, frozenset(), code), partial(_decided, held)), {})


def places(statement: Statement) -> tuple[Load, ...]:
    """Return what a statement itself loads and stores."""
    target = (Load(statement.array, statement.subscripts),) if isinstance(statement, Store) else ()
    return (*loads_of(statement), *target)


def _decided(held: Collection[str], statement: Statement) -> Code:
    """Make a loop that is not to be written out a sequential one."""
    if not isinstance(statement, For) or statement.kind is not Kind.UNROLLED:
        return (statement,)
    if _chosen(statement, held) or _is_short(statement, held):
        return (statement,)
    return (replace(statement, kind=Kind.SEQUENTIAL),)


def _points(code: Code, known: Mapping[str, Number]) -> Code:
    """Write out loops with the points ``known`` of those around; each statement is written once a point."""
    found: list[Statement] = []
    for statement in code:
        if isinstance(statement, For) and statement.kind is Kind.UNROLLED:
            for k in _range(statement):
                found += _points(statement.body, {**known, statement.iterator: Number(k)})
        else:
            own = substituted_in(statement, known) if known else statement
            found.append(with_blocks(own, partial(_points, known=known)))
    return tuple(found)


def _is_short(loop: For, held: Collection[str]) -> bool:
    """Return whether steps of totals in registers, which may share what they load, are few."""
    in_registers = any(place.array in held for s in walk(loop.body) for place in places(s))
    return in_registers and _copies(loop) * (1 + _written(loop.body)) <= LONG_STEPS


def _written(code: Code) -> int:
    """Return how many statements are left of code when its points are written out: no loops over them."""
    inner = ((_copies(s), sum(map(_written, blocks(s))), _is_unrolled(s)) for s in code)
    return sum(copies * inside if gone else 1 + inside for copies, inside, gone in inner)


def _is_unrolled(statement: Statement) -> bool:
    return isinstance(statement, For) and statement.kind is Kind.UNROLLED


def _chosen(loop: For, held: Collection[str]) -> frozenset[str]:
    """Return the registers of which it depends on a loop's point which are meant inside it."""
    used = (place for s in walk(loop.body) for place in places(s) if place.array in held)
    return frozenset(
        place.array
        for place in used
        if any(loop.iterator in names_in(e) for e in place.subscripts if not isinstance(e, Compute))
    )


# Points by themselves


@dataclass(frozen=True)
class _Held:
    """An array in registers, and how wide its vectors are, at most."""

    array: Array
    width: int


def _in_memory(names: Names, arrays: Mapping[str, _Held], filled: frozenset[str], code: Code) -> Code:
    """Put registers, ``arrays``, into memory around loops over points each of which has loops of its own.

    ``filled``: the registers that may hold something when the code begins.
    """
    found: list[Statement] = []
    for at, statement in enumerate(code):
        if isinstance(statement, Array):
            arrays = {name: held for name, held in arrays.items() if name != statement.name}
            filled -= {statement.name}
            if statement.space is Space.REGISTER:
                held = _Held(statement, _width(code[at + 1 :], statement.name))
                arrays = {**arrays, statement.name: held}
        stored = frozenset(s.array for s in walk((statement,)) if isinstance(s, Store))
        if isinstance(statement, For) and (chosen := _alone(statement, arrays)):
            found += _around(names, statement, [arrays[name] for name in sorted(chosen)], filled)
        else:
            before = filled | stored if isinstance(statement, For) else filled
            found.append(with_blocks(statement, partial(_in_memory, names, arrays, before)))
        filled |= stored
    return tuple(found)


def _alone(loop: For, arrays: Mapping[str, _Held]) -> frozenset[str]:
    """Return the registers that points with loops of their own choose; none where these are no such loop."""
    if loop.kind is not Kind.UNROLLED or not _chosen(loop, arrays):
        return frozenset()
    if _length((loop,)) <= LONG:
        return frozenset()
    inside = tuple(walk((loop,)))
    loops = [s for s in inside if isinstance(s, For)]
    chosen = [_chosen(s, arrays) for s in loops if s.kind is Kind.UNROLLED]
    found = frozenset(name for some in chosen for name in some)
    has_own = any(s.kind is Kind.SEQUENTIAL for s in loops)
    declares = any(isinstance(s, Array) and s.name in arrays for s in inside)
    known = all(isinstance(n, Number) for name in found for n in arrays[name].array.shape)
    return found if has_own and known and not declares else frozenset()


def _length(code: Code) -> int:
    """Return how many statements code is when its points are written out."""
    return sum(_copies(s) * (1 + sum(map(_length, blocks(s)))) for s in code)


def _copies(statement: Statement) -> int:
    if not isinstance(statement, For) or statement.kind is not Kind.UNROLLED:
        return 1
    return len(_range(statement))


def _range(loop: For) -> range:
    """Return the points of a loop whose bounds are numbers."""
    start, end, step = loop.start, loop.end, loop.step
    assert isinstance(start, Number) and isinstance(end, Number) and isinstance(step, Number)
    return range(start.value, end.value, step.value)


def _around(names: Names, loop: For, registers: Sequence[_Held], filled: frozenset[str]) -> Code:
    """Return a loop with arrays of its own in place of registers, filled before and brought back behind."""
    body = rewritten((loop,), _sequential)
    own: list[Statement] = []
    before: Code = ()
    behind: Code = ()
    stored = {s.array for s in walk(loop.body) if isinstance(s, Store)}
    for held in registers:
        array = held.array
        name = names.of((object(),), f"{array.name}_own")
        body = renamed_array(body, array.name, Load(name))
        own.append(replace(array, name=name, space=Space.PRIVATE, align=64))
        before += _copy(names, held, name, array.name) if array.name in filled else ()
        behind += _copy(names, held, array.name, name) if array.name in stored else ()
    inside = (*own, *before, *body, *behind)
    condition = _is_any(loop)
    return inside if condition is None else (If(condition, inside),)


def _width(code: Code, name: str) -> int:
    """Return how wide the vectors of an array are, at most."""
    found = 1
    for loop in walk(code):
        if isinstance(loop, For) and loop.kind is Kind.VECTOR and name in _chosen(loop, {name}):
            assert isinstance(loop.end, Number)
            found = max(found, loop.end.value)
    return found


def _copy(names: Names, held: _Held, target: str, source: str) -> Code:
    """Return a copy of an array by vectors, and narrower ones for the rest, as register tiles have them."""
    array, width = held.array, held.width
    *outer, last = array.shape
    rows = [names.of((object(),), "row") for _ in outer]
    found: Code = ()
    at = 0
    assert isinstance(last, Number)
    while at < last.value:
        while width > last.value - at:
            width //= 2
        lane = names.of((object(),), "lane")
        place = Number(at) if width == 1 else plus(Name(lane), at)
        subscripts = (*map(Name, rows), place)
        store: Code = (Store(target, subscripts, Compute(Read(0, array.type), (Load(source, subscripts),))),)
        found += store if width == 1 else (counted(lane, Number(width), store, kind=Kind.VECTOR),)
        at += width
    for row, extent in zip(reversed(rows), reversed(outer), strict=True):
        found = (counted(row, extent, found, kind=Kind.UNROLLED),)
    return found


def _sequential(statement: Statement) -> Code:
    if isinstance(statement, For) and statement.kind is Kind.UNROLLED:
        return (replace(statement, kind=Kind.SEQUENTIAL),)
    return (statement,)


def _is_any(loop: For) -> IntExpression | None:
    """Return a condition without which no point has anything to do; None where there is none."""
    if len(loop.body) != 1 or not isinstance(inner := loop.body[0], For) or inner.kind is not Kind.SEQUENTIAL:
        return None
    lower, upper = spread(inner, [loop])
    return Operation("<", (greatest(lower), least(upper))) if lower and upper else None
