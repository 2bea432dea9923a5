"""Values that are compared through their place get a scalar of their own beside it.

Before: ``k = 0; for (i) if (a[i] > a[k]) k = i;``, where each iteration must know the place that those before
it chose to load what it compares with. After: ``k = 0; value = a[0]; for (i) if (a[i] > value) { k = i; value
= a[i]; }``, the form of a selection (`decisions`). Nothing is loaded that was not: ``a[0]`` where the loop
compares with it first, and nowhere else.

It is done where the compared arrays keep their elements, all places that are stored are affine, and no other
condition stores one. Source: scalar expansion of what is loaded (Allen and Kennedy 2001). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import Binary, BinaryOp, Compare, Expression, Read, Select, walk
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import read_positions, rebuilt, with_reads
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.nesting import schedules, shared_loops
from polyloom.scop.dependence.reductions import peeled
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement, scalar_access
from polyloom.scop.preparation.choices import affine_integer
from polyloom.scop.preparation.statements import beside
from polyloom.scop.schedule.statement_groups import same_element

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compared:
    """What a statement compares: a value of its own, and one that it finds through the place it changes.

    ``there`` and ``here`` are without the conversions around them. ``loops``: how many of its loops, the
    outermost, say which elements ``there`` is made of, beside the place.
    """

    statement: ScopStatement
    place: str
    there: Expression
    here: Expression
    loops: int


def with_companion(scop: Scop, statement: ScopStatement) -> Scop | None:
    """Return the part with a scalar for what a statement compares through its place; None: there is none."""
    compared = _compared(scop, statement)
    if compared is None:
        return None
    starts = [s for s in scop.statements if s.target.array == compared.place and s is not statement]
    read_from = _read_from(scop, compared, starts) if _are_starts(scop, compared, starts) else None
    if read_from is None:
        return None
    name = fresh(f"{compared.place}_value", {a.name for a in scop.arrays})
    array = ScopArray(name=name, type=compared.there.type, shape=(), origin=Origin.INNER, span=statement.span)
    made = replace(scop, arrays=(*scop.arrays, array))
    for start in starts:
        value = _started(scop, compared, start, read_from[start.name], name)
        if value is None:
            return None
        made = _behind(made, start, value)
    asking = _asking(compared, name)
    made = replace(made, statements=tuple(asking if s is statement else s for s in made.statements))
    return _behind(made, asking, _followed(scop, compared, asking, name))


def _compared(scop: Scop, statement: ScopStatement) -> _Compared | None:
    place = statement.target.array
    array = next(a for a in scop.arrays if a.name == place)
    if array.shape or array.origin is not Origin.INNER or statement.target.computed:
        return None
    if not isinstance(statement.condition, Compare) or read_positions(statement.value):
        return None
    pair = (peeled(statement.condition.left), peeled(statement.condition.right))
    for there, here in (pair, pair[::-1]):
        if _goes_through(scop, statement, there, place) and not _mentions(statement, here, place):
            compared = _Compared(
                statement=statement,
                place=place,
                there=there,
                here=here,
                loops=_loops(statement, there),
            )
            return compared if _gives_here(compared) else None
    return None


def _goes_through(scop: Scop, statement: ScopStatement, there: Expression, place: str) -> bool:
    """Whether a value is made of elements alone that nothing changes, some of them at the place.

    All of them are loaded in all iterations: of those whose relation says else C knows no element.
    """
    written = {s.target.array for s in scop.statements}
    reads = [statement.reads[k] for k in read_positions(there)]
    return (
        any(read.computed for read in reads)
        and all(read.array not in written for read in reads)
        and not any(_may_skip(part) for part in walk(there))
        and all(len(read.indices) == read.relation.dim(_DIM.out) for read in reads)
        and all(_at(statement, index) <= {place} for read in reads for _, index in read.computed)
    )


def _may_skip(part: Expression) -> bool:
    return isinstance(part, Select) or (isinstance(part, Binary) and part.op in (BinaryOp.AND, BinaryOp.OR))


def _at(statement: ScopStatement, value: Expression) -> set[str]:
    return {statement.reads[k].array for k in read_positions(value)}


def _mentions(statement: ScopStatement, value: Expression, place: str) -> bool:
    reads = [statement.reads[k] for k in read_positions(value)]
    return any(r.array == place or place in _at(statement, e) for r in reads for _, e in r.computed) or any(
        r.array == place for r in reads
    )


def _loops(statement: ScopStatement, there: Expression) -> int:
    indices = [index for k in read_positions(there) for index in statement.reads[k].indices]
    parts = (part for value in (there, *indices) for part in walk(value))
    return max((part.dimension + 1 for part in parts if isinstance(part, scalar.Iterator)), default=0)


def _gives_here(compared: _Compared) -> bool:
    """Whether the place that is stored is that of the value that was compared."""
    statement = compared.statement
    theirs, ours = read_positions(compared.there), read_positions(compared.here)
    moved = _moved(compared, statement, statement.domain)
    if moved is None or len(theirs) != len(ours):
        return False
    pairs = list(zip(theirs, ours, strict=True))
    same = all(same_element(statement, moved[a], statement, statement.reads[b]) for a, b in pairs)
    return same and with_reads(compared.there, dict(pairs).__getitem__) == compared.here


def _moved(compared: _Compared, start: ScopStatement, domain: isl.Set) -> dict[int, ScopAccess] | None:
    """Return what is read behind a store of a place, by positions; None where the place is not affine."""
    statement = compared.statement
    result = dict[int, ScopAccess]()
    for position in read_positions(compared.there):
        read = statement.reads[position]
        relation = _around(compared, domain).apply_range(read.relation)
        indices = tuple(_with_place(index, start.value) for index in read.indices)
        for k, _ in read.computed:
            function = affine_integer(indices[k], domain)
            if function is None:
                return None
            relation = relation.intersect(_where(relation, k, function))
        result[position] = replace(read, relation=relation, computed=(), indices=indices)
    return result


def _with_place(index: Expression, place: Expression) -> Expression:
    return rebuilt(index, lambda part: place if isinstance(part, Read) else None)


def _where(relation: isl.Map, k: int, function: isl.PwAff) -> isl.Map:
    """Return all pairs whose subscript ``k`` is a function of the iteration."""
    subscript = isl.Map.from_pw_aff(function)
    before, after = k, relation.dim(_DIM.out) - k - 1
    whole = subscript.insert_dims(_DIM.out, 1, after).insert_dims(_DIM.out, 0, before)
    return whole.set_tuple_name(_DIM.out, relation.get_tuple_name(_DIM.out) or "")


def _around(compared: _Compared, domain: isl.Set) -> isl.Map:
    """Return the iterations of the statement in the same loops that say which elements are meant."""
    whole = isl.Map.from_domain_and_range(domain, compared.statement.domain)
    return reduce(lambda m, k: m.equate(_DIM.in_, k, _DIM.out, k), range(compared.loops), whole)


def _are_starts(scop: Scop, compared: _Compared, starts: Sequence[ScopStatement]) -> bool:
    """Whether all other stores of the place are sure, and in the loops that say which elements are meant."""
    entries = schedules(scop)
    names = [compared.statement.name, *(s.name for s in starts)]
    plain = all(s.condition is None and not read_positions(s.value) for s in starts)
    return bool(starts) and plain and shared_loops(entries, names) >= compared.loops


def _read_from(scop: Scop, compared: _Compared, starts: Sequence[ScopStatement]) -> dict[str, isl.Set] | None:
    """Return for each start, by its name, the iterations whose place the statement compares with.

    None: it may have another place.
    """
    statement = compared.statement
    sink = isl.UnionMap.from_map(scalar_access(statement.domain, compared.place).relation)
    sure = [isl.UnionMap.from_map(s.target.relation.intersect_domain(s.domain)) for s in starts]
    own = isl.UnionMap.from_map(statement.target.relation.intersect_domain(statement.domain))
    flow = (
        isl.UnionAccessInfo.from_sink(sink)
        .set_must_source(reduce(isl.UnionMap.union, sure))
        .set_may_source(own)
        .set_schedule_map(scop.schedule)
        .compute_flow()
    )
    found = [m for m in maps_of(flow.get_may_dependence()) if m.get_tuple_name(_DIM.in_) != statement.name]
    inside = all(m.is_subset(_around(compared, _domain(scop, m))) for m in found)
    if not flow.get_must_no_source().is_empty() or not inside:
        return None
    domains = {s.name: isl.Set.empty(s.domain.get_space()) for s in starts}
    for relation in found:
        name = relation.get_tuple_name(_DIM.in_) or ""
        domains[name] = domains[name].union(relation.domain())
    return {name: domain.coalesce() for name, domain in domains.items()}


def _domain(scop: Scop, relation: isl.Map) -> isl.Set:
    name = relation.get_tuple_name(_DIM.in_)
    return next(s.domain for s in scop.statements if s.name == name)


def _started(
    scop: Scop, compared: _Compared, start: ScopStatement, domain: isl.Set, value: str
) -> ScopStatement | None:
    """Return the store of the value behind a store of the place."""
    name = fresh(f"{start.name}_value", [s.name for s in scop.statements])
    moved = _moved(compared, start, domain)
    if moved is None:
        return None
    domain = domain.set_tuple_name(name)
    order = {position: k for k, position in enumerate(moved)}
    return replace(
        start,
        name=name,
        domain=domain,
        target=scalar_access(domain, value),
        reads=tuple(_renamed(read, name) for read in moved.values()),
        value=with_reads(compared.there, order.__getitem__),
    )


def _renamed(read: ScopAccess, name: str) -> ScopAccess:
    return replace(read, relation=read.relation.set_tuple_name(_DIM.in_, name))


def _asking(compared: _Compared, value: str) -> ScopStatement:
    """Return the statement that compares with the scalar."""
    statement, there = compared.statement, compared.there
    read = Read(len(statement.reads), there.type)
    assert isinstance(statement.condition, Compare)
    condition = rebuilt(statement.condition, lambda part: read if part == there else None)
    whole = (*statement.reads, scalar_access(statement.domain, value))
    kept = read_positions(condition)
    order = {position: k for k, position in enumerate(kept)}
    return replace(
        statement,
        reads=tuple(whole[k] for k in kept),
        condition=with_reads(condition, order.__getitem__),
    )


def _followed(scop: Scop, compared: _Compared, asking: ScopStatement, value: str) -> ScopStatement:
    """Return the store of the value behind the statement, under its condition."""
    assert isinstance(asking.condition, Compare)
    name = fresh(f"{asking.name}_value", [s.name for s in scop.statements])
    domain = asking.domain.set_tuple_name(name)
    sides = map(peeled, (asking.condition.left, asking.condition.right))
    here = next(side for side in sides if not _is_scalar(asking, side, value))
    return replace(
        asking,
        name=name,
        domain=domain,
        target=scalar_access(domain, value),
        reads=tuple(_renamed(read, name) for read in asking.reads),
        value=here,
    )


def _is_scalar(statement: ScopStatement, side: Expression, name: str) -> bool:
    return isinstance(side, Read) and statement.reads[side.position].array == name


def _behind(scop: Scop, statement: ScopStatement, new: ScopStatement) -> Scop:
    at = [s.name for s in scop.statements].index(statement.name) + 1
    statements = (*scop.statements[:at], new, *scop.statements[at:])
    return replace(scop, statements=statements, schedule=beside(scop, statement, new, 1))
