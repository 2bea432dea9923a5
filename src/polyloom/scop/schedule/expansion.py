"""Expansion: a scalar or array that is set anew in every iteration gets an element for every iteration.

Before: ``w = A[i][j]; w -= A[i][k] * A[k][j]; A[i][j] = w``. After: ``w_each[i][j]`` in place of ``w``, and
at the end ``w`` gets the value of the last iteration, where ``w`` lives on. What the plan does not need is
taken back by ``scop.contract``.

Source: Feautrier 1988 (array expansion), restricted to whole loops. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from polyloom.ir.expressions import Read
from polyloom.ir.naming import fresh
from polyloom.polyhedra.loops.affine_expressions import least_of
from polyloom.polyhedra.loops.tree import IntExpression
from polyloom.polyhedra.rectangularise import NoBox, straighten
from polyloom.scop.dependence.dependences import Dependence, Dependences, Kind
from polyloom.scop.dependence.nesting import Entries, direction, last_position, schedules, shared_loops
from polyloom.scop.model import Origin, Scop, ScopAccess, ScopArray, ScopStatement
from polyloom.scop.schedule.arrays import accesses, accesses_to, shape

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Axis:
    """A loop that an array is expanded along: the iterator's number, its first value, how many there are.

    ``step``: 1 where the loop counts upwards, -1 where it counts downwards.
    """

    dimension: int
    step: int
    first: isl.Aff
    extent: IntExpression


@dataclass(frozen=True, eq=False, kw_only=True)
class Expansion:
    """``array`` became ``name``, with an index for each of ``axes`` in front.

    ``copies``: the statements that store last values back, each with the statement whose write it is.
    """

    array: ScopArray
    name: str
    axes: tuple[Axis, ...]
    copies: tuple[tuple[str, str], ...] = ()
    alone: bool = True
    """Whether this is the only use of the array: else it has a name for each."""


@dataclass(frozen=True, eq=False)
class _Web:
    """Statements that pass values to each other by an array: one use of it.

    ``private``: how many of the outermost loops keep each value in the iteration that wrote it.
    """

    array: ScopArray
    statements: tuple[str, ...]
    edges: tuple[Dependence, ...]
    private: int


def expanded(scop: Scop, found: Dependences) -> tuple[Scop, tuple[Expansion, ...]]:
    """Return the part with every array expanded that can be, and what was done."""
    entries = schedules(scop)
    expansions: list[Expansion] = []
    result = scop
    webs = [web for a in scop.arrays if _separable(scop, a, found) for web in _webs(scop, a, found, entries)]
    for web in webs:
        axes = _axes(scop, web, webs, found, entries)
        alone = sum(other.array is web.array for other in webs) == 1
        if axes or not alone:
            result, expansion = _apply(result, web.array, web.statements, axes, found)
            expansions.append(replace(expansion, alone=alone))
    return result, tuple(expansions)


def _separable(scop: Scop, array: ScopArray, found: Dependences) -> bool:
    """Whether every value of the array comes from one known write of this part."""
    users = list(accesses_to(scop, array.name))
    edges = any(e.array == array.name for e in found.edges)
    if not edges or array.name in found.exposed or any(access.computed for _, access in users):
        return False
    lives_on = array.origin is not Origin.INNER
    return not (lives_on and any(s.condition is not None and s.target.array == array.name for s, _ in users))


def _webs(scop: Scop, array: ScopArray, found: Dependences, entries: dict[str, Entries]) -> Iterator[_Web]:
    """Yield the statements that use the array, in groups that pass values to each other."""
    groups = [{s.name} for s in scop.statements if any(a.array == array.name for a in accesses(s))]
    edges = [e for e in found.edges if e.array == array.name]
    for e in edges:
        if e.kind is Kind.FLOW:
            joined = [group for group in groups if e.source in group or e.sink in group]
            groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    if array.shape and len(groups) > 1:
        return
    order = [s.name for s in scop.statements]
    for names in sorted(
        (sorted(group, key=order.index) for group in groups), key=lambda g: order.index(g[0])
    ):
        own = tuple(e for e in edges if {e.source, e.sink} <= set(names))
        shared = shared_loops(entries, sorted(names))
        private = next((k for k in range(shared) if not _stays(own, Kind.FLOW, k)), shared)
        yield _Web(array, tuple(names), own, private)


def _axes(
    scop: Scop, web: _Web, webs: Sequence[_Web], found: Dependences, entries: dict[str, Entries]
) -> tuple[Axis, ...]:
    """Return the loops to expand the array of a web along."""
    wanted = [k for k in range(web.private) if _reused(web.edges, k)]
    if web.array.shape:
        wanted = [k for k in wanted if _otherwise_parallel(scop, web, webs, found, entries, k)]
    try:
        users = [s for s in scop.statements if s.name in web.statements]
        return tuple(axis_of(scop, users, k) for k in wanted)
    except NoBox:
        return ()


def _stays(edges: Sequence[Dependence], kind: Kind, k: int) -> bool:
    """Whether all edges of a kind have the same iterator number k at both ends."""
    return all(e.relation.is_subset(_equal(e.relation, k)) for e in edges if e.kind is kind)


def _reused(edges: Sequence[Dependence], k: int) -> bool:
    """Whether an element is used again in another iteration of loop k, of the same outer ones."""
    for edge in edges:
        relation = edge.relation
        for outer in range(k):
            relation = relation.intersect(_equal(relation, outer))
        if edge.kind is not Kind.FLOW and not relation.is_subset(_equal(relation, k)):
            return True
    return False


def _equal(relation: isl.Map, k: int) -> isl.Map:
    return isl.Map.universe(relation.get_space()).equate(_DIM.in_, k, _DIM.out, k)


def _otherwise_parallel(
    scop: Scop, web: _Web, webs: Sequence[_Web], found: Dependences, entries: dict[str, Entries], k: int
) -> bool:
    """Whether nothing but reuse keeps loop k in order: of the array, and of others that the loops declare.

    An array that lives on is not expanded for the sake of others: all but its last values would be in vain.
    """
    here = web.statements[0]
    inside = {s.name for s in scop.statements if shared_loops(entries, [here, s.name]) > k}
    others = webs if web.array.origin is Origin.INNER else ()
    expandable = (web, *(w for w in others if w.array.origin is Origin.INNER and w.private > k))
    reuse = {e for w in expandable for e in w.edges if e.kind is not Kind.FLOW}
    edges = (e for e in found.edges if e.relaxed is None and {e.source, e.sink} <= inside)
    return all(e.relation.is_subset(_equal(e.relation, k)) for e in edges if e not in reuse)


def axis_of(scop: Scop, users: Sequence[ScopStatement], k: int) -> Axis:
    """Return the range of an iterator over all statements that use an array. Errors: ``NoBox``."""
    line: isl.Set | None = None
    for statement in users:
        rest = statement.domain.dim(_DIM.set) - k - 1
        values = statement.domain.project_out(_DIM.set, k + 1, rest).project_out(_DIM.set, 0, k)
        line = values if line is None else line.union(values)
    assert line is not None
    box = straighten(line.intersect_params(scop.context).coalesce(), scop.context)
    first = box.coordinates.get_at(0)
    first = first.set_coefficient_val(_DIM.in_, 0, isl.Val(0)).drop_dims(_DIM.in_, 0, 1)
    return Axis(k, direction(scop, users[0], k), first, least_of(box.extents[0]))


def with_axes(access: ScopAccess, name: str, axes: Sequence[Axis]) -> ScopAccess:
    """Return the access to the expanded array.

    ``{ S[i, j] -> w[] }`` becomes ``{ S[i, j] -> w_each[i - 1] }``.
    """
    relation = access.relation.reset_tuple_id(_DIM.out)
    domain = relation.domain().get_space()
    size = domain.dim(_DIM.set)
    for axis in reversed(axes):
        first = axis.first.insert_dims(_DIM.in_, 0, size)
        first = first.set_tuple_id(_DIM.in_, domain.get_tuple_id(_DIM.set))
        index = first.neg().add_coefficient_val(_DIM.in_, axis.dimension, isl.Val(1))
        relation = isl.Map.from_aff(index).flat_range_product(relation)
    return replace(access, array=name, relation=relation.set_tuple_name(_DIM.out, name), indices=())


def _apply(
    scop: Scop, array: ScopArray, web: Sequence[str], axes: tuple[Axis, ...], found: Dependences
) -> tuple[Scop, Expansion]:
    name = fresh(f"{array.name}_each", [a.name for a in scop.arrays])
    extents = (*(axis.extent for axis in axes), *shape(scop, array))
    larger = replace(array, name=name, shape=extents, origin=Origin.INNER)
    statements = [through(s, array.name, name, axes) if s.name in web else s for s in scop.statements]
    writers = [s for s in scop.statements if s.name in web and s.target.array == array.name]
    copies = (
        list(_copies(scop, writers, array, name, axes, found)) if array.origin is not Origin.INNER else []
    )
    result = replace(
        scop,
        statements=(*statements, *(copy for copy, _ in copies)),
        arrays=(*scop.arrays, larger),
        schedule=_with_copies(scop, [copy for copy, _ in copies]),
    )
    return result, Expansion(
        array=array, name=name, axes=axes, copies=tuple((copy.name, of) for copy, of in copies)
    )


def through(statement: ScopStatement, array: str, name: str, axes: Sequence[Axis]) -> ScopStatement:
    """Return the statement with the expanded array in place of ``array``."""

    def moved(access: ScopAccess) -> ScopAccess:
        return with_axes(access, name, axes) if access.array == array else access

    return replace(
        statement, target=moved(statement.target), reads=tuple(moved(read) for read in statement.reads)
    )


def _copies(
    scop: Scop,
    writers: Sequence[ScopStatement],
    array: ScopArray,
    name: str,
    axes: Sequence[Axis],
    found: Dependences,
) -> Iterator[tuple[ScopStatement, str]]:
    """Yield statements that store the last value of each element back."""
    for writer in writers:
        last = writer.domain.intersect_params(scop.context)
        for edge in found.edges:
            if edge.array == array.name and edge.kind is Kind.OUTPUT and edge.source == writer.name:
                last = last.subtract(edge.relation.domain())
        if last.is_empty():
            continue
        label = fresh(f"{array.name}_last_of_{writer.name}", [s.name for s in scop.statements])
        yield _copy(writer, label, last.coalesce(), array, name, axes), writer.name


def _copy(
    writer: ScopStatement, label: str, last: isl.Set, array: ScopArray, name: str, axes: Sequence[Axis]
) -> ScopStatement:
    def renamed(access: ScopAccess) -> ScopAccess:
        return replace(access, relation=access.relation.set_tuple_name(_DIM.in_, label))

    target = replace(renamed(writer.target), indices=())
    return replace(
        writer,
        name=label,
        domain=last.set_tuple_name(label),
        target=target,
        reads=(renamed(with_axes(writer.target, name, axes)),),
        value=Read(0, array.type),
        condition=None,
    )


def _with_copies(scop: Scop, copies: Sequence[ScopStatement]) -> isl.UnionMap:
    """Return the schedule with the copies after everything else."""
    schedule = scop.schedule
    if not copies:
        return schedule
    position = last_position(scop) + 1
    length = isl.Set.from_union_set(schedule.range()).dim(_DIM.set)
    for copy in copies:
        time = isl.Map.from_domain_and_range(
            copy.domain, isl.Set("{ [" + ", ".join([str(position)] + ["0"] * (length - 1)) + "] }")
        )
        schedule = schedule.union(isl.UnionMap.from_map(time))
    return schedule
