"""Drafts to the polyhedral model: iterators become dimensions, positions become schedules.

Where the walk has iterators as parameters, ``[i, N] -> { [] : 0 <= i < N }``, the model has dimensions,
``[N] -> { S1[i] : 0 <= i < N }``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.frontends.c.state import Access, Draft, Frame, Index, State, parameter_affine
from polyloom.ir.expressions import (
    Binary,
    Compare,
    Convert,
    Expression,
    Iterator,
    ParameterValue,
    Read,
    Select,
    Unary,
    walk,
)
from polyloom.scop.model import ScopAccess, ScopStatement

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement as C has it: also one that has no place in a host program, with the ``draft`` it comes from.

    ``reads`` and ``writes``: all that it touches; ``model`` is None where it cannot be computed.
    """

    draft: Draft
    name: str
    domain: isl.Set
    reads: tuple[ScopAccess, ...]
    writes: tuple[ScopAccess, ...]
    must_write: bool
    model: ScopStatement | None


def statements_of(state: State) -> tuple[Statement, ...]:
    """Return the statements with instances, named by their labels, else ``S1``, ``S2``, ... in textual order."""
    found = []
    for number, draft in enumerate(state.drafts, 1):
        name = draft.name or _free(f"S{number}", state.labels)
        found.append(_statement(draft, name, state))
    return tuple(found)


def _free(name: str, labels: set[str]) -> str:
    while name in labels:
        name += "_"
    return name


def _statement(draft: Draft, name: str, state: State) -> Statement:
    domain = dimensioned(draft.domain, draft.frames, name)
    positions = _positions(draft, state)
    local = {position: k for k, position in enumerate(positions)}
    numbers = {frame.iterator: k for k, frame in enumerate(draft.frames)}

    def access(position: int) -> ScopAccess:
        return _access(state.pool[position], draft, name, domain, local, numbers)

    reads = tuple(access(p) for p in positions)
    extra = tuple(access(p) for p in draft.reads)
    writes = tuple(access(p) for p in draft.writes)
    if draft.target is None or draft.value is None:
        return Statement(draft, name, domain, (*reads, *extra), writes, False, None)
    target = access(draft.target)
    condition = None if draft.condition is None else localised(draft.condition, local, numbers)
    model = ScopStatement(
        name=name,
        domain=domain,
        iterators=tuple(frame.name for frame in draft.frames),
        loops=tuple(frame.span for frame in draft.frames),
        target=target,
        reads=reads,
        value=localised(draft.value, local, numbers),
        condition=condition,
        span=draft.span,
    )
    must = condition is None and not target.computed
    return Statement(draft, name, domain, (*reads, *extra), (target, *writes), must, model)


def _positions(draft: Draft, state: State) -> tuple[int, ...]:
    """Return the reads of a statement in the pool: of its value, its condition, and the indices of all these."""
    roots = [e for e in (draft.value, draft.condition) if e is not None]
    for position in (draft.target, *draft.reads, *draft.writes):
        roots += (
            [] if position is None else [i.value for i in state.pool[position].indices if i.affine is None]
        )
    found: dict[int, None] = {}
    while roots:
        for part in walk(roots.pop(0)):
            if isinstance(part, Read) and part.position not in found:
                found[part.position] = None
                indices = state.pool[part.position].indices
                roots += [i.value for i in indices if i.affine is None]
    return tuple(found)


def _access(
    access: Access,
    draft: Draft,
    name: str,
    domain: isl.Set,
    local: dict[int, int],
    numbers: dict[str, int],
) -> ScopAccess:
    relation = _relation(access, draft, name)
    within = dimensioned(access.within, draft.frames, name)
    indices = tuple(localised(index.value, local, numbers) for index in access.indices)
    computed = tuple((k, indices[k]) for k, index in enumerate(access.indices) if index.affine is None)
    restricted = relation.intersect_domain(domain.intersect(within)).coalesce()
    return ScopAccess(access.array, restricted, computed, access.span, indices)


def _relation(access: Access, draft: Draft, name: str) -> isl.Map:
    relation = isl.Map("{ [] -> [] }")
    for index in access.indices:
        relation = relation.flat_range_product(_index_relation(index))
    for _ in range(access.whole):
        relation = relation.flat_range_product(isl.Map("{ [] -> [o] : o >= 0 }"))
    relation = relation.set_tuple_name(_DIM.out, access.array)
    for k, frame in enumerate(draft.frames):
        relation = _moved_map(relation, k, frame)
    return relation.set_tuple_name(_DIM.in_, name)


def _index_relation(index: Index) -> isl.Map:
    if index.affine is None:
        return isl.Map("{ [] -> [o] : o >= 0 }")
    return isl.Map.from_pw_aff(index.affine)


def _moved_map(relation: isl.Map, k: int, frame: Frame) -> isl.Map:
    at = relation.find_dim_by_name(_DIM.param, frame.iterator)
    if at < 0:
        relation = relation.add_dims(_DIM.in_, 1)
    else:
        relation = relation.move_dims(_DIM.in_, k, _DIM.param, at, 1)
    return relation.set_dim_name(_DIM.in_, k, frame.name)


def dimensioned(points: isl.Set, frames: Sequence[Frame], name: str) -> isl.Set:
    """Return ``{ name[iterators] }`` of a set over parameters."""
    for k, frame in enumerate(frames):
        at = points.find_dim_by_name(_DIM.param, frame.iterator)
        if at < 0:
            points = points.add_dims(_DIM.set, 1)
        else:
            points = points.move_dims(_DIM.set, k, _DIM.param, at, 1)
        points = points.set_dim_name(_DIM.set, k, frame.name)
    return points.set_tuple_name(name)


def localised(expression: Expression, local: dict[int, int], numbers: dict[str, int]) -> Expression:
    """Return an expression with the statement's own positions of reads and numbers of dimensions."""

    def inside(part: Expression) -> Expression:
        return localised(part, local, numbers)

    match expression:
        case Read(position=position, type=element):
            return Read(local[position], element)
        case ParameterValue(name=name, type=element) if name in numbers:
            return Iterator(numbers[name], element)
        case Unary(op=op, operand=x):
            return Unary(op, inside(x))
        case Convert(type=element, operand=x):
            return Convert(element, inside(x))
        case Binary(op=op, left=a, right=b):
            return Binary(op, inside(a), inside(b))
        case Compare(op=compare, left=a, right=b):
            return Compare(compare, inside(a), inside(b))
        case Select(condition=c, then=a, otherwise=b):
            return Select(inside(c), inside(a), inside(b))
        case _:
            return expression


def schedule_of(statements: Iterable[Statement]) -> isl.UnionMap:
    """Return ``{ S1[i, j] -> [0, i, 0, j, 0] }``; a loop that counts down has ``-i``."""
    found = tuple(statements)
    depth = max((len(s.draft.frames) for s in found), default=0)
    result = isl.UnionMap("{ }")
    for statement in found:
        times = _times(statement.draft, depth).set_tuple_name(_DIM.in_, statement.name)
        result = result.union(isl.UnionMap.from_map(times.intersect_domain(statement.domain)))
    return result


def _times(draft: Draft, depth: int) -> isl.Map:
    relation = isl.Map("{ [] -> [] }")
    for k, position in enumerate(draft.position):
        relation = relation.flat_range_product(isl.Map(f"{{ [] -> [{position}] }}"))
        if k < len(draft.frames):
            frame = draft.frames[k]
            value = parameter_affine(frame.iterator)
            value = value.neg() if frame.descending else value
            relation = relation.flat_range_product(isl.Map.from_pw_aff(value))
    for _ in range(2 * (depth - len(draft.frames))):
        relation = relation.flat_range_product(isl.Map("{ [] -> [0] }"))
    for k, frame in enumerate(draft.frames):
        relation = _moved_map(relation, k, frame)
    return relation
