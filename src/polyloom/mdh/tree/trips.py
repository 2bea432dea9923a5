"""How often parallel loops are carried out, which of them are one, and which store under conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from polyloom.mdh.tree.nodes import Array, Code, Compute, For, If, Kind, Space, Statement, Store, While
from polyloom.mdh.tree.rewrite import blocks, walk
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Number,
    Operation,
    names_in,
    product_of,
    replace_names,
    sum_of,
)


def is_parallel(statement: Statement) -> bool:
    """Return whether there is a parallel loop in a statement."""
    return any(isinstance(s, For) and s.kind is Kind.GROUP for s in walk((statement,)))


def nested_groups(loop: For) -> list[For]:
    """Return a parallel loop with those right inside it whose bounds do not depend on outer ones."""
    loops = [loop]
    while len(loops[-1].body) == 1:
        (inner,) = loops[-1].body
        if not isinstance(inner, For) or inner.kind is not Kind.GROUP:
            break
        if (names_in(inner.start) | names_in(inner.end)) & {each.iterator for each in loops}:
            break
        loops.append(inner)
    return loops


ITERATIONS = 16
"""How often a loop goes of which data decide that. A guess."""


def stores_where_asked(loop: For) -> bool:
    """Return whether points without loops inside store to arrays under conditions on data."""
    inside = list(walk(loop.body))
    own = {s.name for s in inside if isinstance(s, Array)}
    if any(
        isinstance(s, For | While) or (isinstance(s, Array) and s.space is not Space.REGISTER) for s in inside
    ):
        return False
    asking = (s for s in inside if isinstance(s, If) and isinstance(s.condition, Compute))
    stores = (s for each in asking for s in walk((*each.body, *each.otherwise)) if isinstance(s, Store))
    return any(s.array not in own for s in stores)


def trip_count(loop: For) -> IntExpression:
    """Return how many iterations a loop ``from start to end step number`` has. Errors: ValueError."""
    if not isinstance(loop.step, Number) or loop.step.value < 1:
        raise ValueError(f"the loop over {loop.iterator} has no such step")
    step = loop.step.value
    length = sum_of([(1, loop.end), (-1, loop.start), (1, Number(step - 1))])
    if isinstance(length, Number):
        return Number(max(0, length.value // step))
    steps = length if step == 1 else Operation("/", (length, Number(step)))
    return Operation("max", (Number(0), steps))


def shared_points(code: Code, integers: AbstractSet[str]) -> list[IntExpression] | None:
    """Return the points of each nest of loops that threads share, of integers; None where one is not known.

    Loops outside are in the middle of their ranges: ``n * (n / 2)`` points of a triangle.
    """
    try:
        return list(dict.fromkeys(_shared_points(code, integers, {})))
    except ValueError:
        return None


def _shared_points(
    code: Code, integers: AbstractSet[str], middles: Mapping[str, IntExpression]
) -> Iterator[IntExpression]:
    for statement in code:
        inner = middles
        if isinstance(statement, For):
            if statement.kind is Kind.GROUP:
                yield from map(product_of, _trips(statement, integers, middles))
                continue
            inner = {**middles, statement.iterator: _middle(statement, middles)}
        for block in blocks(statement):
            yield from _shared_points(block, integers, inner)


def _trips(
    loop: For, integers: AbstractSet[str], middles: Mapping[str, IntExpression]
) -> Iterator[list[IntExpression]]:
    """Yield the trip counts from a loop to each innermost one in it. Errors: ValueError where not known."""
    trips = replace_names(trip_count(loop), middles)
    if not names_in(trips) <= integers:
        raise ValueError(f"how often the loop over {loop.iterator} is carried out is not known")
    inner = {**middles, loop.iterator: _middle(loop, middles)}
    found = False
    for nested in _outermost(loop.body):
        for further in _trips(nested, integers, inner):
            found = True
            yield [trips, *further]
    if not found:
        yield [trips, Number(ITERATIONS)] if any(isinstance(s, While) for s in walk(loop.body)) else [trips]


def _outermost(code: Code) -> Iterator[For]:
    """Yield the loops in code that are in no other loop of it."""
    for statement in code:
        if isinstance(statement, For):
            yield statement
        else:
            for block in blocks(statement):
                yield from _outermost(block)


def _middle(loop: For, middles: Mapping[str, IntExpression]) -> IntExpression:
    both = sum_of([(1, replace_names(loop.start, middles)), (1, replace_names(loop.end, middles))])
    return Number(both.value // 2) if isinstance(both, Number) else Operation("/", (both, Number(2)))


SAMPLES = 4
"""Ways through nested loops that are looked at where work differs between iterations."""

_FACTORS = (1, 5, 3, 7)


@dataclass(frozen=True)
class Way:
    """One of ``SAMPLES`` ways through nested loops: at which of its iterations each of them is looked at.

    At an eighth, three, five or seven eighths of its range, so that all ways together meet each of these once
    in every loop, and two neighbouring loops never at the same: ``depth`` loops are outside (a lattice rule).
    """

    number: int
    depth: int = 0

    @property
    def further(self) -> Way:
        """The same way in the next loop further in."""
        return Way(self.number, self.depth + 1)

    @property
    def eighths(self) -> int:
        """How far in its range a loop is looked at."""
        return (2 * self.number + 1) * _FACTORS[self.depth % len(_FACTORS)] % 8

    def place(self, trips: int) -> int:
        """Return which of its iterations a loop is looked at."""
        return trips * self.eighths // 8
