"""Elements that are stored behind a long loop over registers are asked for in front of it.

    total = 0                                          total = 0
    for k from 0 to 128: total = total + ...           prefetch &C[r][c]
    C[r][c] = C[r][c] + total                          for k from 0 to 128: ...

A register tile's rows lie apart: the processor does not foresee the next tile's, and nothing else can be done
while they come. They are asked for once, also where several loops follow each other: that over the rest of a
loop in steps, or one for each total. It is a hint, so it means nothing: what there is to prove is
the same without it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from polyloom.mdh.print.c_scope import Scope
from polyloom.mdh.tree.nodes import ZERO, Array, Code, Compute, For, Kind, Space, Statement, Store
from polyloom.mdh.tree.rewrite import declared_in, integers_of, substituted
from polyloom.mdh.tree.trips import trip_count
from polyloom.polyhedra.loops.tree import Number, names_in

LEAST_TRIPS = 24
"""A loop of fewer iterations is over before what was asked for is there."""

MOST_LINES = 32
"""More of them push each other out, and what the loop needs."""


def prefetches(
    before: Sequence[Statement], loop: Statement, after: Code, scope: Scope, asked: Collection[str]
) -> list[str]:
    """Return what is to be asked for in front of a loop of a block, and was not ``asked`` for before.

    Nothing unless totals in registers are stored behind it.
    """
    if not scope.dialect.has_prefetches or not isinstance(loop, For) or not _is_long(loop):
        return []
    if not any(isinstance(s, Array) and s.space is Space.REGISTER and s.totals is not None for s in before):
        return []
    later = frozenset(declared_in(after))
    stores = [s for s in _stored(after) if _is_in_memory(s, scope) and not _is_data(s)]
    known = [s for s in stores if not later & {n for i in integers_of(s) for n in names_in(i)}]
    places = dict.fromkeys(scope.place(s.array, s.subscripts) for s in known)
    return [place for place in places if place not in asked] if len(places) <= MOST_LINES else []


def _is_long(loop: For) -> bool:
    if loop.kind is not Kind.SEQUENTIAL:
        return False
    try:
        trips = trip_count(loop)
    except ValueError:
        return False
    return not isinstance(trips, Number) or trips.value >= LEAST_TRIPS


def _is_in_memory(store: Store, scope: Scope) -> bool:
    variable = scope.variables.get(store.array)
    return variable is not None and bool(variable.shape) and not variable.held


def _is_data(store: Store) -> bool:
    return any(isinstance(subscript, Compute) for subscript in store.subscripts)


def _stored(code: Code) -> Iterator[Store]:
    """Yield stores that follow at once, the first lane of those in vectors."""
    for statement in code:
        match statement:
            case Store():
                yield statement
            case For(kind=Kind.VECTOR, iterator=lane, body=body):
                yield from _stored(substituted(body, lane, ZERO))
            case _:
                pass
