"""Values that a block of a host loop overwrites while instances that read them wait: kept for each step.

Before:                             After, for each block:
for k: w[i] = A[i][k];              for k in the block: w[i] = A[i][k]; w_keep[k - 32 * block][i] = w[i]
       A[i][j] -= A[i][k] * w[j]    A[i][j] -= sum over k in the block of A[i][k] * w_keep[k - 32 * block][j]

A read may be of a value that was kept if all instances of its step find the same one: no write stands between
two of them. That is computed from the dependences, as sets. Several instances must read each: to keep a value
takes as long as an instance that combines it.

Source: Kuck et al. 1981 (node splitting); Venkataraman et al. 2003 (shortest ways in blocks: idea).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.ir.naming import fresh
from polyloom.polyhedra.loops.tree import Number
from polyloom.polyhedra.rectangularise import NoBox
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.reductions import first_reads
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.schedule.access_order import subscripts
from polyloom.scop.schedule.expansion import axis_of, with_axes
from polyloom.scop.schedule.hyperplanes import Edge, edge, rows_map
from polyloom.scop.schedule.node_splitting import then
from polyloom.scop.schedule.plan import Blocks, Hyperplane, Plan, Row, row_of, walk_plans

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept:
    """``statement`` stores what a read of ``reader`` finds at a step into ``array``.

    ``moving``: the iterators of the reader that it has; ``times``: when it runs, in the source's order.
    """

    statement: ScopStatement
    array: ScopArray
    reader: ScopStatement
    moving: tuple[int, ...]
    times: isl.Map


@dataclass(frozen=True, eq=False, kw_only=True)
class Waiting:
    """Statements of a block with those that keep values for ``late`` ones, and the edges between all."""

    statements: tuple[ScopStatement, ...]
    edges: tuple[Edge, ...]
    kept: tuple[Kept, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Steps:
    """A host loop in blocks: its steps by ``time``, ``size`` of them in the block of number ``block``.

    ``around``: the host loops outside, each of whose steps has blocks of its own.
    """

    scop: Scop
    time: Hyperplane
    around: tuple[Hyperplane, ...]
    block: str
    size: int


def may_be_kept(statement: ScopStatement, found: Edge, time: Hyperplane) -> bool:
    """Whether an edge leaves a read whose value can be kept for each step."""
    own = len(statement.iterators)
    row = row_of(time, statement)[:own]
    reads = [read for read in statement.reads if read.array == found.array]
    return (
        found.anti
        and sum(map(abs, row)) == 1
        and all(not r.computed and statement.domain.is_subset(r.relation.domain()) for r in reads)
    )


def with_kept_values(waiting: Waiting, late: Iterable[str], steps: Steps) -> Waiting | None:
    """Return a block in which no ``late`` instance reads what another statement overwrites; None for none."""
    found: Waiting | None = waiting
    for name in late:
        for place in [] if found is None else _overwritten(found, name):
            found = None if found is None else _with_kept(found, name, place, steps)
    return found


def _overwritten(waiting: Waiting, name: str) -> list[int]:
    """Return the positions of reads of what is written later in the block, one for each element."""
    by_name = {s.name: s for s in waiting.statements}
    statement = by_name[name]
    leaving = [e for e in waiting.edges if e.source == name and e.anti and not e.relaxed]
    return [
        place
        for place in sorted(set(first_reads(statement).values()))
        if any(
            e.array == statement.reads[place].array
            and not _through(e.relation, statement.reads[place], by_name[e.sink]).is_empty()
            for e in leaving
        )
    ]


def _through(relation: isl.Map, read: ScopAccess, writer: ScopStatement) -> isl.Map:
    """Return the pairs, the read first, that touch one element through this read."""
    if writer.target.computed:
        return relation
    return relation.intersect(read.relation.apply_range(writer.target.relation.reverse()))


def _with_kept(waiting: Waiting, name: str, place: int, steps: Steps) -> Waiting | None:
    """Return the block with a read's values kept; None where instances of a step find different ones."""
    by_name = {s.name: s for s in waiting.statements}
    statement = by_name[name]
    places = {k for k, first in first_reads(statement).items() if first == place}
    made = _kept(statement, place, steps, waiting)
    if made is None:
        return None
    kept, held, to_kept = made
    read = statement.reads[place]
    edges: list[Edge] = []
    before: dict[str, isl.Map] = {}
    behind: dict[str, isl.Map] = {}
    for e in waiting.edges:
        if e.relaxed or e.array != read.array or name not in (e.source, e.sink):
            edges.append(e)
        elif e.sink == name and not e.anti:
            edges.append(e)
            back = _through(e.relation.reverse(), read, by_name[e.source])
            before[e.source] = back.apply_domain(to_kept).reverse()
        elif e.source == name and e.anti:
            behind[e.sink] = _through(e.relation, read, by_name[e.sink]).apply_domain(to_kept)
            edges += _without(e, statement, places, by_name[e.sink])
        else:
            edges.append(e)
    own = kept.statement.name
    edges += [edge(s, own, read.array, False, False, r) for s, r in before.items() if not r.is_empty()]
    edges += [edge(own, s, read.array, True, False, r) for s, r in behind.items() if not r.is_empty()]
    edges.append(edge(own, name, kept.array.name, False, False, to_kept.reverse()))
    if any(not behind[s].intersect(before[s].reverse()).is_empty() for s in behind.keys() & before.keys()):
        return None
    reading = replace(
        statement, reads=tuple(held if k in places else r for k, r in enumerate(statement.reads))
    )
    pairs = ((kept.statement, reading) if s is statement else (s,) for s in waiting.statements)
    return Waiting(
        statements=tuple(s for pair in pairs for s in pair), edges=tuple(edges), kept=(*waiting.kept, kept)
    )


def _without(
    found: Edge, statement: ScopStatement, places: AbstractSet[int], writer: ScopStatement
) -> Iterator[Edge]:
    """Yield the part of an edge that other reads than those at some places give."""
    others = [r for k, r in enumerate(statement.reads) if k not in places and r.array == found.array]
    relations = [_through(found.relation, read, writer) for read in others]
    rest = reduce(isl.Map.union, relations, isl.Map.empty(found.relation.get_space()))
    if not rest.is_empty():
        yield edge(found.source, found.sink, found.array, found.anti, found.relaxed, rest.coalesce())


def _kept(
    statement: ScopStatement, place: int, steps: Steps, waiting: Waiting
) -> tuple[Kept, ScopAccess, isl.Map] | None:
    """Return what keeps a read's values, how the statement reads them, and which instance keeps its own.

    None where none of them is read more than once.
    """
    read = statement.reads[place]
    row = row_of(steps.time, statement)
    outside = [row_of(plane, statement) for plane in steps.around]
    moving = _moving(statement, read, [row, *outside])
    if len(moving) == len(statement.iterators):
        return None
    label = fresh(f"{read.array}_keep", [s.name for s in (*steps.scop.statements, *waiting.statements)])
    label = fresh(f"{label}_{statement.name}", [s.name for s in waiting.statements])
    to_kept = _projection(statement, moving, label)
    relation = to_kept.reverse().apply_range(read.relation)
    source = next(s for s in steps.scop.statements if s.name == statement.root)
    others = [k for k in moving if not row[k] and not any(r[k] for r in outside)]
    try:
        axes = [axis_of(steps.scop, [source], k) for k in others]
    except NoBox:
        return None
    if not relation.is_single_valued():
        return None
    array = next(a for a in steps.scop.arrays if a.name == read.array)
    name = f"{label}_values"
    shape = (Number(steps.size), *(axis.extent for axis in axes))
    larger = replace(
        array, name=name, shape=shape, origin=Origin.INNER, linear=False, record=(), levels=(), variable=""
    )
    domain = statement.domain.apply(to_kept)
    here = ScopAccess(array=name, relation=isl.Map.from_domain_and_range(domain, isl.Set("{ [] }")))
    here = with_axes(here, name, [replace(a, dimension=moving.index(a.dimension)) for a in axes])
    step = rows_map(statement.domain.get_space(), row)
    number = isl.Map(f"[{steps.block}] -> {{ [t] -> [t - {steps.size} * {steps.block}] }}")
    step = to_kept.reverse().apply_range(step.apply_range(number))
    target = replace(here, relation=step.flat_range_product(here.relation).set_tuple_name(_DIM.out, name))
    keeping = ScopStatement(
        name=label,
        domain=domain.coalesce(),
        iterators=tuple(statement.iterators[k] for k in moving),
        loops=tuple(statement.loops[k] for k in moving),
        target=target,
        reads=(replace(read, relation=relation, indices=()),),
        value=Read(0, array.type),
        span=statement.span,
    )
    held = replace(target, relation=to_kept.apply_range(target.relation), span=read.span)
    times = _first(steps.scop, statement, to_kept)
    kept = Kept(statement=keeping, array=larger, reader=statement, moving=tuple(moving), times=times)
    return kept, held, to_kept


def _moving(statement: ScopStatement, read: ScopAccess, rows: Sequence[Row]) -> list[int]:
    """Return the iterators that say which element is read, and at which steps of host loops."""
    indices = subscripts(statement, read)
    return [
        k
        for k in range(len(statement.iterators))
        if any(row[k] for row in rows) or any(index.involves_dims(_DIM.in_, k, 1) for index in indices)
    ]


def _projection(statement: ScopStatement, moving: Sequence[int], label: str) -> isl.Map:
    """Return ``{ S[k, i, j] -> label[k, i] }``, for the instances of a statement."""
    result = isl.Map.identity(statement.domain.get_space().map_from_set())
    for k in reversed(range(len(statement.iterators))):
        if k not in moving:
            result = result.project_out(_DIM.out, k, 1)
    return result.set_tuple_name(_DIM.out, label).intersect_domain(statement.domain)


def _first(scop: Scop, statement: ScopStatement, to_kept: isl.Map) -> isl.Map:
    """Return when the first instance reads what is kept for it."""
    own = next(m for m in maps_of(scop.schedule) if m.get_tuple_name(_DIM.in_) == statement.root)
    return to_kept.reverse().apply_range(own.set_tuple_name(_DIM.in_, statement.name)).lexmin()


def kept_by(plans: Iterable[Plan]) -> tuple[Kept, ...]:
    """Return what all blocks of plans keep."""
    return tuple(k for plan in walk_plans(plans) if isinstance(plan, Blocks) for k in plan.kept)


def with_rows(plane: Hyperplane, kept: Iterable[Kept]) -> Hyperplane:
    """Return a host loop with the steps of what keeps values inside of it."""
    result = dict(plane)
    for found in kept:
        row = row_of(result, found.reader)
        own = len(found.reader.iterators)
        result[found.statement.name] = (*(row[k] for k in found.moving), *row[own:])
    return result


def with_kept(scop: Scop, kept: Sequence[Kept]) -> Scop:
    """Return the part with arrays for what is kept, and the time when it is: right before it is read."""
    if not kept:
        return scop
    times = [then(m, 1) for m in maps_of(scop.schedule)] + [then(k.times, 0) for k in kept]
    schedule = reduce(isl.UnionMap.union, map(isl.UnionMap.from_map, times))
    return replace(scop, arrays=(*scop.arrays, *(k.array for k in kept)), schedule=schedule)
