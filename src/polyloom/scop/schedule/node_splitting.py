"""Node splitting: a value that a later iteration overwrites is kept apart, by a statement of its own.

Before: ``a[i] = x[i]; b[i] = a[i] + a[i + 1];``, where neither can be done for all i before the other: the
second needs the new ``a[i]`` and the old ``a[i + 1]``. After: ``a_old[i] = a[i + 1]`` for all i, then all new
values of ``a``, then ``b[i] = a[i] + a_old[i]``.

It is done where statements run in order for nothing but such reads.

Source: Kuck et al. 1981 (node splitting).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.rectangularise import NoBox
from polyloom.scop.dependence.dependences import Dependence, Dependences, Kind, maps_of
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopStatement
from polyloom.scop.schedule.components import components
from polyloom.scop.schedule.expansion import Axis, axis_of, with_axes

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class _Place:
    """A read of a statement, by its position."""

    statement: ScopStatement
    position: int

    @property
    def access(self) -> ScopAccess:
        return self.statement.reads[self.position]


def with_old_values(scop: Scop, found: Dependences) -> tuple[Scop, frozenset[str]]:
    """Return the part with values kept apart, and the arrays whose dependences are others now."""
    edges = [e for e in found.edges if e.relaxed is None]
    groups = components([s.name for s in scop.statements], ((e.source, e.sink) for e in edges))
    touched: set[str] = set()
    for group in groups:
        inside = [e for e in edges if e.source in group and e.sink in group]
        for place in _kept_apart(scop, group, inside) if len(group) > 1 else ():
            made = _kept(scop, place)
            if made is not None:
                scop, name = made
                touched |= {name, place.access.array}
    return scop, frozenset(touched)


def _kept_apart(scop: Scop, group: Sequence[str], edges: Sequence[Dependence]) -> list[_Place]:
    """Return the reads without which nothing runs in order; none where that is not so."""
    members = {s.name: s for s in scop.statements if s.name in group}
    between = [e for e in edges if e.kind is Kind.ANTI and e.source != e.sink]
    if any(not s.iterators for s in members.values()) or not _falls_apart(group, edges, between):
        return []
    old = [p for s in members.values() for p in _old_reads(s, members, edges)]
    broken = [e for e in between if _is_of(e, old, members)]
    if not _falls_apart(group, edges, broken):
        return []
    at = {name: k for k, (name,) in enumerate(_order(group, edges, broken))}
    needed = [e for e in broken if at[e.sink] < at[e.source]]
    return [p for p in old if any(_is_through(e, p, members) for e in needed)]


def _order(
    group: Sequence[str], edges: Sequence[Dependence], without: Sequence[Dependence]
) -> Sequence[Sequence[str]]:
    rest = [e for e in edges if all(e is not other for other in without)]
    return components(list(group), ((e.source, e.sink) for e in rest))


def _falls_apart(group: Sequence[str], edges: Sequence[Dependence], without: Sequence[Dependence]) -> bool:
    """Whether each statement can be done for all iterations before the next, but for some dependences."""
    if any(e.source == e.sink and e.kind is not Kind.ANTI for e in edges):
        return False
    return len(_order(group, edges, without)) == len(group)


def _old_reads(
    statement: ScopStatement, members: dict[str, ScopStatement], edges: Sequence[Dependence]
) -> Iterator[_Place]:
    """Yield the reads of elements that no statement of the group has written before."""
    for position, read in enumerate(statement.reads):
        place = _Place(statement, position)
        flows = (
            e for e in edges if e.kind is Kind.FLOW and e.sink == statement.name and e.array == read.array
        )
        if not read.computed and not any(
            _meets(e.relation.reverse(), place, members[e.source]) for e in flows
        ):
            yield place


def _is_of(edge: Dependence, old: Sequence[_Place], members: dict[str, ScopStatement]) -> bool:
    """Whether all reads that an edge starts from are among these."""
    source = members[edge.source]
    reads = [_Place(source, k) for k, read in enumerate(source.reads) if read.array == edge.array]
    if any(p.access.computed for p in reads):
        return False
    known = {(p.statement.name, p.position) for p in old}
    return all((source.name, p.position) in known for p in reads if _is_through(edge, p, members))


def _is_through(edge: Dependence, place: _Place, members: dict[str, ScopStatement]) -> bool:
    if edge.source != place.statement.name or edge.array != place.access.array:
        return False
    return _meets(edge.relation, place, members[edge.sink])


def _meets(relation: isl.Map, place: _Place, writer: ScopStatement) -> bool:
    """Whether pairs of a relation, the read first, touch one element through this read."""
    if writer.target.computed:
        return True
    both = place.access.relation.apply_range(writer.target.relation.reverse())
    return not relation.intersect(both).is_empty()


def _kept(scop: Scop, place: _Place) -> tuple[Scop, str] | None:
    """Return the part with a read's values in an array of their own; None where its domain is no box."""
    statement, read = place.statement, place.access
    statement = next(s for s in scop.statements if s.name == statement.name)
    array = next(a for a in scop.arrays if a.name == read.array)
    try:
        axes = tuple(axis_of(scop, [statement], k) for k in range(len(statement.iterators)))
    except NoBox:
        return None
    name = fresh(f"{array.name}_old", [a.name for a in scop.arrays])
    label = fresh(f"{statement.name}_old", [s.name for s in scop.statements])
    held = _element(statement, read, name, axes)
    keeping = _keeping(statement, read, label, held, array.type)
    reads = tuple(held if k == place.position else r for k, r in enumerate(statement.reads))
    reading = replace(statement, reads=reads)
    statements = tuple(
        new for s in scop.statements for new in ((keeping, reading) if s is statement else (s,))
    )
    shape = tuple(axis.extent for axis in axes)
    larger = replace(array, name=name, shape=shape, origin=Origin.INNER, linear=False, record=(), levels=())
    schedule = _before(scop.schedule, statement.name, label)
    return replace(scop, statements=statements, arrays=(*scop.arrays, larger), schedule=schedule), name


def _element(statement: ScopStatement, read: ScopAccess, name: str, axes: Sequence[Axis]) -> ScopAccess:
    """Return the access to an iteration's own element."""
    domain = read.relation.domain()
    scalar = isl.Map.from_domain_and_range(domain, isl.Set("{ [] }"))
    return with_axes(replace(read, relation=scalar), name, axes)


def _keeping(
    statement: ScopStatement, read: ScopAccess, label: str, held: ScopAccess, kind: ElementType
) -> ScopStatement:
    """Return the statement that keeps what a read finds."""

    def renamed(access: ScopAccess) -> ScopAccess:
        return replace(access, relation=access.relation.set_tuple_name(_DIM.in_, label), indices=())

    domain = read.relation.domain().intersect(statement.domain)
    return replace(
        statement,
        name=label,
        domain=domain.set_tuple_name(label),
        target=renamed(held),
        reads=(renamed(read),),
        value=Read(0, kind),
        condition=None,
        origins=(),
    )


def _before(schedule: isl.UnionMap, name: str, label: str) -> isl.UnionMap:
    """Return the schedule with a new statement right before another one, in the same iterations."""
    maps = maps_of(schedule)
    found = [then(m, 1) for m in maps]
    own = next(m for m in maps if m.get_tuple_name(_DIM.in_) == name)
    found.append(then(own, 0).set_tuple_name(_DIM.in_, label))
    return reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, found))


def then(schedule: isl.Map, last: int) -> isl.Map:
    """Return a schedule with a constant behind all others."""
    end = isl.Map.from_domain_and_range(
        isl.Set.universe(schedule.get_space().domain()), isl.Set(f"{{ [{last}] }}")
    )
    return schedule.flat_range_product(end)
