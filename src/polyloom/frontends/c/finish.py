"""Drafts to the polyhedral model: iterators become dimensions, positions become schedules.

Where the walk has iterators as parameters, ``[i, N] -> { [] : 0 <= i < N }``, the model has dimensions,
``[N] -> { S1[i] : 0 <= i < N }``.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator as Iterator_
from dataclasses import dataclass, replace

import islpy as isl

from polyloom.frontends.c.integers.relations import dimensioned, dimensioned_map, positions, reference
from polyloom.frontends.c.scope.drafts import Access, Draft
from polyloom.frontends.c.scope.sets import parameter_affine
from polyloom.frontends.c.scope.state import State
from polyloom.ir.expressions import Expression, Iterator, ParameterValue, Read, walk
from polyloom.ir.rebuild import rebuilt
from polyloom.scop.model import ScopAccess, ScopStatement

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement as C has it: also one that has no place in a host program, with the ``draft`` it comes
    from.

    ``reads``, ``writes``, ``must``: all that it touches; ``model`` is None where it cannot be computed.
    """

    draft: Draft
    name: str
    domain: isl.Set
    reads: tuple[ScopAccess, ...]
    writes: tuple[ScopAccess, ...]
    must: tuple[ScopAccess, ...]
    model: ScopStatement | None


def statements_of(state: State) -> tuple[Statement, ...]:
    """Return the statements, named by their labels, else ``S1``, ``S2``, ... in textual order."""
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
    local = {position: k for k, position in enumerate(positions(draft, state))}
    numbers = {frame.iterator: k for k, frame in enumerate(draft.frames)}
    tested = frozenset(_tested(draft))

    def access(position: int) -> ScopAccess:
        found = _access(state.pool[position], draft, name, domain, local, numbers)
        return _in_bounds(found) if position in tested else found

    reads = tuple(access(p) for p in local)
    extra = tuple(access(p) for p in draft.reads)
    writes = tuple(access(p) for p in draft.writes)
    must = tuple(access(p) for p in draft.must) if draft.condition is None else ()
    if draft.target is None:
        return Statement(draft, name, domain, (*reads, *extra), writes, must, None)
    model = _model(draft, name, domain, access(draft.target), reads, local, numbers)
    if model.condition is None and not model.target.computed:
        must = (*must, model.target)
    return Statement(draft, name, domain, (*reads, *extra), (model.target, *writes), must, model)


def _model(
    draft: Draft,
    name: str,
    domain: isl.Set,
    target: ScopAccess,
    reads: tuple[ScopAccess, ...],
    local: dict[int, int],
    numbers: dict[str, int],
) -> ScopStatement:
    assert draft.value is not None
    return ScopStatement(
        name=name,
        domain=domain,
        iterators=tuple(frame.name for frame in draft.frames),
        loops=tuple(frame.span for frame in draft.frames),
        target=target,
        reads=reads,
        value=localised(draft.value, local, numbers),
        condition=None if draft.condition is None else localised(draft.condition, local, numbers),
        span=draft.span,
    )


def _tested(draft: Draft) -> Iterator_[int]:
    """Yield the reads of the condition."""
    if draft.condition is not None:
        yield from (part.position for part in walk(draft.condition) if isinstance(part, Read))


def _in_bounds(access: ScopAccess) -> ScopAccess:
    """Restrict a condition's read to where no index is negative: elsewhere C has no such element."""
    space = access.relation.range().get_space()
    proper = isl.Set.universe(space)
    for k in range(space.dim(_DIM.set)):
        proper = proper.lower_bound_val(_DIM.set, k, isl.Val(0))
    return replace(access, relation=access.relation.intersect_range(proper))


def _access(
    access: Access,
    draft: Draft,
    name: str,
    domain: isl.Set,
    local: dict[int, int],
    numbers: dict[str, int],
) -> ScopAccess:
    relation = dimensioned_map(reference(access), draft.frames, name)
    within = dimensioned(access.within, draft.frames, name)
    restricted = relation.intersect_domain(domain.intersect(within)).coalesce()
    indices = tuple(localised(index.value, local, numbers) for index in access.indices)
    data = tuple((k, indices[k]) for k, index in enumerate(access.indices) if index.affine is None)
    return ScopAccess(
        array=access.array, relation=restricted, computed=data, span=access.span, indices=indices
    )


def localised(expression: Expression, local: dict[int, int], numbers: dict[str, int]) -> Expression:
    """Return an expression with the statement's own positions of reads and numbers of dimensions."""

    def own(part: Expression) -> Expression | None:
        match part:
            case Read(position=position, type=element):
                return Read(local[position], element)
            case ParameterValue(name=name, type=element) if name in numbers:
                return Iterator(numbers[name], element)
            case _:
                return None

    return rebuilt(expression, own)


def schedule_of(statements: Iterable[Statement]) -> isl.UnionMap:
    """Return ``{ S1[i, j] -> [0, i, 0, j, 0] }``; a loop that counts down has ``-i``."""
    found = tuple(statements)
    depth = max((len(s.draft.frames) for s in found), default=0)
    result = isl.UnionMap("{ }")
    for statement in found:
        times = _times(statement.draft, depth, statement.name)
        result = result.union(isl.UnionMap.from_map(times.intersect_domain(statement.domain)))
    return result


def _times(draft: Draft, depth: int, name: str) -> isl.Map:
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
    return dimensioned_map(relation, draft.frames, name)
