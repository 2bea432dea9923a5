"""The last value that a condition lets through, found by the iteration that gives it.

Before: ``for (i) if (a[i] > t) x = b[i];``, where each iteration may overwrite what one before it stored.
After: ``place = -inf; for (i) place = max(place, a[i] > t ? i : -inf); if (place > -inf) x = b[place];``,
where the loop is a reduction. In a loop that counts down the smallest ``i`` is the last.

It is done in a loop that is in no other one, of scalars that nothing else in it uses, and where it changes
nothing that the condition or the value reads. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

import islpy as isl

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Convert,
    Expression,
    Read,
    Select,
    walk,
)
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.scalar_functions.function import BinaryFunction
from polyloom.ir.types import ElementType
from polyloom.polyhedra.bounds import greatest_coordinate
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.nesting import direction, schedules, shared_loops
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement, scalar_access

_DIM = isl.dim_type
_PLACE = ElementType.INT64


def with_last_values(scop: Scop) -> Scop:
    """Return the part with reductions in place of conditional stores of scalars."""
    for name in [s.name for s in scop.statements if s.condition is not None]:
        statement = next(s for s in scop.statements if s.name == name)
        if _is_last_value(scop, statement):
            scop = _replaced(scop, statement)
    return scop


def _is_last_value(scop: Scop, statement: ScopStatement) -> bool:
    target = statement.target
    array = next(a for a in scop.arrays if a.name == target.array)
    if len(statement.iterators) != 1 or array.shape or target.computed:
        return False
    entries = schedules(scop)
    inside = [s for s in scop.statements if shared_loops(entries, [statement.name, s.name])]
    written = {s.target.array for s in inside}
    used = [s for s in inside if any(a.array == array.name for a in (s.target, *s.reads))]
    return (
        [s.name for s in used] == [statement.name]
        and all(read.array not in written for read in statement.reads)
        and all(len(read.indices) == read.relation.dim(_DIM.out) for read in statement.reads)
    )


def _replaced(scop: Scop, statement: ScopStatement) -> Scop:
    upwards = direction(scop, statement, 0) > 0
    nothing = Constant(_PLACE.lowest if upwards else _PLACE.highest, _PLACE)
    place = fresh(f"{statement.target.array}_place", [a.name for a in scop.arrays])
    array = ScopArray(name=place, type=_PLACE, shape=(), origin=Origin.INNER, span=statement.span)
    new = (
        _started(scop, statement, place, nothing),
        _found(statement, place, nothing, BinaryOp.MAXIMUM if upwards else BinaryOp.MINIMUM),
        _stored(scop, statement, place, nothing),
    )
    statements = tuple(n for s in scop.statements for n in (new if s is statement else (s,)))
    schedule = _around(scop, statement.name, new[0], new[2])
    return replace(scop, statements=statements, arrays=(*scop.arrays, array), schedule=schedule)


def _once(scop: Scop, name: str) -> isl.Set:
    return isl.Set(f"{{ {name}[] }}").align_params(scop.context.get_space())


def _started(scop: Scop, statement: ScopStatement, place: str, nothing: Constant) -> ScopStatement:
    name = fresh(f"{statement.name}_none", [s.name for s in scop.statements])
    domain = _once(scop, name)
    return replace(
        statement,
        name=name,
        domain=domain,
        iterators=(),
        loops=(),
        target=scalar_access(domain, place),
        reads=(),
        value=nothing,
        condition=None,
    )


def _found(statement: ScopStatement, place: str, nothing: Constant, op: BinaryFunction) -> ScopStatement:
    assert statement.condition is not None
    access = scalar_access(statement.domain, place)
    term = Select(statement.condition, scalar.Iterator(0, _PLACE), nothing)
    before = Read(len(statement.reads), _PLACE)
    return replace(
        statement,
        target=access,
        reads=(*statement.reads, access),
        value=Binary(op, before, term),
        condition=None,
    )


def _stored(scop: Scop, statement: ScopStatement, place: str, nothing: Constant) -> ScopStatement:
    name = fresh(f"{statement.name}_last", [s.name for s in scop.statements])
    domain = _once(scop, name)
    position = len(statement.reads)

    def at_place(value: Expression) -> Expression:
        def change(part: Expression) -> Expression | None:
            return Convert(part.type, Read(position, _PLACE)) if isinstance(part, scalar.Iterator) else None

        return rebuilt(value, change)

    def moved(read: ScopAccess) -> ScopAccess:
        indices = tuple(map(at_place, read.indices))
        computed = tuple((k, indices[k]) for k in _moving(read))
        relation = isl.Map.from_domain_and_range(domain, read.relation.range())
        return replace(read, relation=relation, computed=computed, indices=indices)

    return replace(
        statement,
        name=name,
        domain=domain,
        iterators=(),
        loops=(),
        target=scalar_access(domain, statement.target.array),
        reads=(*map(moved, statement.reads), scalar_access(domain, place)),
        value=at_place(statement.value),
        condition=Compare(CompareOp.NE, Read(position, _PLACE), nothing),
    )


def _moving(read: ScopAccess) -> Iterator[int]:
    """Yield the subscripts that differ from iteration to iteration, or are computed anyway."""
    known = {k for k, _ in read.computed}
    for k, index in enumerate(read.indices):
        if k in known or any(isinstance(part, scalar.Iterator) for part in walk(index)):
            yield k


def _around(scop: Scop, name: str, before: ScopStatement, after: ScopStatement) -> isl.UnionMap:
    """Return the schedule with two statements more, before and behind a loop."""
    maps = maps_of(scop.schedule)
    length = maps[0].dim(_DIM.out)
    own = next(m for m in maps if m.get_tuple_name(_DIM.in_) == name)
    first = int(
        greatest_coordinate(isl.Set.from_union_set(isl.UnionMap.from_map(own).range()), 0).to_python()
    )
    moved = ", ".join(f"t{k}" for k in range(length))
    room = isl.Map(f"{{ [{moved}] -> [3 * t0, {', '.join(f't{k}' for k in range(1, length))}] }}")
    found = [m.apply_range(room) for m in maps]
    for statement, time in ((before, 3 * first - 1), (after, 3 * first + 1)):
        at = isl.Set(f"{{ [{', '.join([str(time)] + ['0'] * (length - 1))}] }}")
        found.append(isl.Map.from_domain_and_range(statement.domain, at))
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, found))
