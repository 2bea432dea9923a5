"""References as relations, with iterators as parameters: ``[i] -> { [] -> A[i, i + 1] }``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl

from polyloom.frontends.c.scope.drafts import Access, Draft, Frame
from polyloom.frontends.c.scope.names import Index
from polyloom.frontends.c.scope.state import State
from polyloom.ir.expressions import Expression, Read, walk

_DIM = isl.dim_type


def reference(access: Access) -> isl.Map:
    """Return ``{ [] -> A[indices] }``; an index that is not affine is any that is not negative."""
    if access.relation is not None:
        return access.relation
    relation = isl.Map("{ [] -> [] }")
    anything = isl.Map("{ [] -> [o] }") if access.whole else isl.Map("{ [] -> [o] : o >= 0 }")
    for index in access.indices:
        relation = relation.flat_range_product(_index(index, anything))
    for _ in range(access.whole):
        relation = relation.flat_range_product(anything)
    return relation.set_tuple_name(_DIM.out, access.array)


def _index(index: Index, anything: isl.Map) -> isl.Map:
    return anything if index.affine is None else isl.Map.from_pw_aff(index.affine)


def positions(draft: Draft, state: State) -> tuple[int, ...]:
    """Return the reads of a statement in the pool: of its value and condition, and of the indices of all
    it touches.
    """
    roots = [e for e in (draft.value, draft.condition) if e is not None]
    for position in (draft.target, *draft.reads, *draft.writes):
        roots += [] if position is None else computed(state.pool[position])
    found: dict[int, None] = {}
    while roots:
        for part in walk(roots.pop(0)):
            if isinstance(part, Read) and part.position not in found:
                found[part.position] = None
                roots += computed(state.pool[part.position])
    return tuple(found)


def computed(access: Access) -> list[Expression]:
    """Return the indices that depend on data."""
    return [index.value for index in access.indices if index.affine is None]


def without(relation: isl.Map, frames: Iterable[Frame]) -> isl.Map:
    """Return a relation for any values of some iterators."""
    for frame in frames:
        at = relation.find_dim_by_name(_DIM.param, frame.iterator)
        if at >= 0:
            relation = relation.project_out(_DIM.param, at, 1)
    return relation


def dimensioned(points: isl.Set, frames: Sequence[Frame], name: str) -> isl.Set:
    """Return ``{ name[iterators] }`` of a set over parameters."""
    return dimensioned_map(isl.Map.from_domain(points), frames, name).domain()


def dimensioned_map(relation: isl.Map, frames: Sequence[Frame], name: str) -> isl.Map:
    """Return ``{ name[iterators] -> A[...] }`` of a relation over parameters."""
    for k, frame in enumerate(frames):
        at = relation.find_dim_by_name(_DIM.param, frame.iterator)
        moved = relation.move_dims(_DIM.in_, k, _DIM.param, at, 1) if at >= 0 else None
        relation = relation.add_dims(_DIM.in_, 1) if moved is None else moved
        relation = relation.set_dim_name(_DIM.in_, k, frame.name)
    return relation.set_tuple_name(_DIM.in_, name)


def domains_of(state: State, uses: list[int]) -> list[isl.Set]:
    """Return where each reference is made, over all statements that make it."""
    found: dict[int, isl.Set] = {}
    for draft in state.drafts:
        made = (*positions(draft, state), *draft.reads, *draft.writes)
        for position in (*made, *(() if draft.target is None else (draft.target,))):
            points = draft.domain.intersect(state.pool[position].within)
            found[position] = found[position].union(points) if position in found else points
    return [found.get(use, isl.Set("{ [] : false }")) for use in uses]
