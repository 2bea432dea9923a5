"""What lies in front of the element that a pointer points to: ``x[i + k]`` where k is negative.

C has such elements where the pointer points into an array; the model's arrays begin at 0. Not in the papers.
"""

from __future__ import annotations

from functools import reduce

import islpy as isl

from polyloom.frontends.c.integers.relations import domains_of
from polyloom.frontends.c.scope.sets import constant_affine, without_set
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.syntax.faults import refuse


def begin_at_pointers(state: State) -> None:
    """Take for granted, where it is no matter of course, that no element in front of a pointer is accessed.

    Who runs the part asks it. Errors: ``c-extent`` where no values of the parameters are such.
    """
    uses = [
        k
        for k, access in enumerate(state.pool)
        if access.indices and state.arrays[access.array].extents[:1] == (None,)
    ]
    for use, domain in zip(uses, domains_of(state, uses), strict=True):
        index = state.pool[use].indices[0].affine
        if index is not None:
            _begin(use, index.ge_set(constant_affine(0)), domain, state)


def _begin(use: int, inside: isl.Set, domain: isl.Set, state: State) -> None:
    made = domain.intersect(state.context).intersect(state.limits)
    if made.is_subset(inside):
        return
    refused = without_set(made.subtract(inside), state.iterators).gist(state.limits)
    context = state.context.subtract(refused).coalesce()
    parts = [isl.Set.from_basic_set(part) for part in context.get_basic_sets()]
    where_made = [part for part in parts if not made.is_disjoint(part)]
    access = state.pool[use]
    name = state.arrays[access.array].place.variable.name
    if not where_made or not made.intersect(reduce(isl.Set.union, where_made)).is_subset(inside):
        refuse(
            "c-extent",
            f"an element in front of the one that `{name}` points to may be accessed",
            access.span,
            notes=["where its array begins is not known"],
            helps=["give the loops a pointer to the first element that they access"],
        )
    state.context = reduce(isl.Set.union, where_made)
    state.assumed[f"no element in front of `{name}` is accessed"] = None
