"""Large results of maps, which are stored past the caches.

    for i from 0 to 2^24: c[i] = a[i] + b[i]      c goes to memory, and is not read from there first

A processor reads a line into its caches before a part of it is stored, and writes it back later: twice the
traffic. Of results that the caches could not keep for whoever reads them next, that is for nothing. Only
vectors of neighbouring elements are stored so, of loops that do nothing but compute them, also from copies of
inputs: what is summed up in registers takes longer than its results.

On two cores of a Zen 4 a sum of two arrays of 64 MB took 0.65 to 0.7 of the time so, a stencil of 7 points
0.95, and a filter of 25 points, whose totals are in registers, 1.07.

Not in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from math import prod

from polyloom.ir.types import ElementType
from polyloom.mdh.tree.nodes import Array, Code, Compute, For, Function, Kind, Parameter, Store
from polyloom.mdh.tree.rewrite import blocks, loads_of, walk
from polyloom.polyhedra.loops.tree import Name, Number, linear_terms

PART_OF_CACHE = 2
"""Results that are larger than the last cache over this would push all else out of it."""

_CONVERTED = (ElementType.FLOAT16, ElementType.BOOL)
"""Types whose vectors are other ones in registers."""


def past_caches(function: Function, caches: Sequence[int], *, of_large: bool = False) -> Function:
    """Return a function that says which of its results bypass ``caches``: bytes, from the innermost outwards.

    ``of_large``: arrays of open sizes are larger than ``least_past``, too. Keeps true: everything, since it
    is a hint for whoever prints stores.
    """
    if not caches:
        return function
    origin = {p.name: p.name for p in function.parameters} | {r.name: r.parameter for r in function.reshaped}
    loaded = {origin.get(load.array) for statement in walk(function.body) for load in loads_of(statement)}
    sizes = {p.name: _bytes(p, math.inf if of_large else 0) for p in function.parameters}
    large = {name for name, size in sizes.items() if size > least_past(caches)}
    stores = [s for s in _stores(function.body) if origin.get(s.store.array) in large - loaded]
    in_vectors = {origin[s.store.array] for s in stores if s.lane is not None}
    own = {s.name for s in walk(function.body) if isinstance(s, Array)}
    totals = {s.array for s in walk(function.body) if isinstance(s, Store) and _goes_on(s)} & own
    others = {origin[s.store.array] for s in stores if not _is_of_map(s, totals)}
    return replace(function, streamed=frozenset(in_vectors - others))


def least_past(caches: Sequence[int]) -> int:
    """Return the bytes of the largest results that do not bypass these caches."""
    return caches[-1] // PART_OF_CACHE


def _bytes(parameter: Parameter, unknown: float) -> float:
    """Return the size of an array, ``unknown`` where that is not known; 0: nothing is stored as it is."""
    if parameter.constant or parameter.type in _CONVERTED:
        return 0
    shape = [n.value for n in parameter.shape if isinstance(n, Number)]
    return prod(shape) * parameter.type.size if len(shape) == len(parameter.shape) else unknown


@dataclass(frozen=True)
class _Stored:
    """A store, and the lane of the vector that it stores; None outside of vectors."""

    store: Store
    lane: str | None


def _stores(code: Code, lane: str | None = None) -> Iterator[_Stored]:
    for statement in code:
        if isinstance(statement, Store):
            yield _Stored(statement, lane)
        if isinstance(statement, For) and statement.kind is Kind.VECTOR:
            yield from _stores(statement.body, statement.iterator)
        else:
            yield from (stored for block in blocks(statement) for stored in _stores(block, lane))


def _goes_on(store: Store) -> bool:
    """Whether a value depends on the one before it, as those of totals do."""
    return any(load.array == store.array for load in store.value.loads)


def _is_of_map(stored: _Stored, totals: AbstractSet[str]) -> bool:
    """Whether what is stored is none of the function's ``totals``, and goes to neighbours in vectors."""
    store, lane = stored.store, stored.lane
    if any(load.array in totals for load in store.value.loads):
        return False
    if lane is None:
        return True
    last = store.subscripts[-1] if store.subscripts else None
    return (
        last is not None and not isinstance(last, Compute) and (1, Name(lane)) in linear_terms([(1, last)])[0]
    )
