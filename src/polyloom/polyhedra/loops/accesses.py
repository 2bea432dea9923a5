"""Questions about what loops access and carry out: outside of arrays, at two points, twice, or never.

Elements are ``[parameters] -> { [iterators] -> array[subscripts] }``; instances are the same with the name of
a statement. Every answer is a point as text, or None where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import reduce

import islpy as isl

from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.meaning import instances_visited
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import IntExpression, Number, Tree

_DIM = isl.dim_type
Elements = isl.Map
Instances = isl.Set


class NotKnown(Exception):
    """isl has no word for it, or would take too long; the text is the question."""


@contextmanager
def question(text: str, operations: int) -> Iterator[None]:
    """Let isl do so many operations on a question inside. Errors: NotKnown."""
    try:
        with at_most(operations, text):
            yield
    except (isl.Error, TooHardError, KeyError) as fault:
        raise NotKnown(text) from fault


def outside(
    scope: Scope, array: str, subscripts: Sequence[IntExpression | None], extents: Sequence[IntExpression]
) -> str | None:
    """Return an element that is accessed and not in the array; a subscript that is None is right."""
    for subscript, extent in zip(subscripts, extents, strict=True):
        if subscript is None:
            continue
        place = scope.value(subscript)
        wrong = place.lt_set(scope.value(Number(0))).union(place.ge_set(scope.value(extent)))
        points = scope.points.intersect(wrong)
        if not points.is_empty():
            return _text(scope.tuples(array, subscripts).intersect_domain(points).range(), "[]")
    return None


class Apart(Enum):
    """How an integer at a first point differs from the one at a second point."""

    EQUAL = "equal"
    BEFORE = "before"
    OTHER = "other"


@dataclass(frozen=True)
class Pair:
    """Iterator number ``first`` of one access and number ``second`` of the other, and how they differ.

    ``distance``: by how much, for ``BEFORE``; None: by any.
    """

    first: int
    second: int
    apart: Apart
    distance: int | None = None


@dataclass(frozen=True)
class Meeting:
    """An element that is accessed at two points: its subscripts, and the iterators at both."""

    element: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    parameters: Mapping[str, int]


def together(elements: Sequence[Elements], count: int) -> Elements:
    """Return what several accesses access, over the first iterators alone, which they share."""
    parts = (e.project_out(_DIM.in_, count, e.dim(_DIM.in_) - count) for e in elements)
    return reduce(isl.Map.union, parts)


def meeting(first: Elements, second: Elements, pairs: Sequence[Pair]) -> Meeting | None:
    """Return an element that two accesses to one array meet in, at points that differ as ``pairs`` say."""
    ranks = first.dim(_DIM.out), first.dim(_DIM.in_), second.dim(_DIM.in_)
    points = first.reverse().range_product(second.reverse()).wrap().flatten()
    for pair in pairs:
        points = _restricted(points, ranks[0] + pair.first, ranks[0] + ranks[1] + pair.second, pair)
    return None if points.is_empty() else _meeting(points.sample_point(), ranks)


def _restricted(points: isl.Set, first: int, second: int, pair: Pair) -> isl.Set:
    match pair:
        case Pair(apart=Apart.EQUAL):
            return points.add_constraint(_difference(points, first, second, 0, equal=True))
        case Pair(apart=Apart.BEFORE, distance=None):
            return points.add_constraint(_difference(points, first, second, 1))
        case Pair(apart=Apart.BEFORE, distance=int() as distance):
            return points.add_constraint(_difference(points, first, second, distance, equal=True))
        case _:
            before = points.add_constraint(_difference(points, first, second, 1))
            return before.union(points.add_constraint(_difference(points, second, first, 1)))


def _difference(
    points: isl.Set, first: int, second: int, distance: int, *, equal: bool = False
) -> isl.Constraint:
    """Return ``second - first >= distance``, or ``=``."""
    space = isl.LocalSpace.from_space(points.get_space())
    make = isl.Constraint.equality_alloc if equal else isl.Constraint.inequality_alloc
    constraint = make(space).set_coefficient_val(_DIM.set, second, isl.Val(1))
    constraint = constraint.set_coefficient_val(_DIM.set, first, isl.Val(-1))
    return constraint.set_constant_val(isl_integer(-distance))


def _meeting(point: isl.Point, ranks: tuple[int, int, int]) -> Meeting:
    values, (rank, first, _) = _coordinates(point), ranks
    element, points = values[:rank], values[rank:]
    return Meeting(element, points[:first], points[first:], _parameters(point))


def _coordinates(point: isl.Point) -> tuple[int, ...]:
    dims = range(point.get_space().dim(_DIM.set))
    return tuple(int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in dims)


def _parameters(point: isl.Point) -> Mapping[str, int]:
    space = point.get_space()
    return {
        space.get_dim_name(_DIM.param, k) or "": int(point.get_coordinate_val(_DIM.param, k).to_python())
        for k in range(space.dim(_DIM.param))
    }


def _text(points: isl.Set, brackets: str = "()") -> str:
    """Return a point of a set as ```S(3, 0)`, with n = 4``."""
    point = points.sample_point()
    inside = brackets[0] + ", ".join(map(str, _coordinates(point))) + brackets[1]
    return f"`{points.get_tuple_name()}{inside}`{at_parameters(_parameters(point))}"


def at_parameters(parameters: Mapping[str, int]) -> str:
    """Return ``, with n = 4``, or nothing."""
    given = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return f", with {given}" if given else ""


def alone(
    access: Elements, others: Iterable[tuple[Elements, Sequence[Pair]]], *, earlier: bool
) -> str | None:
    """Return an element of an access that no other accesses at a point that differs as its pairs say.

    ``first`` of a pair is an iterator of the other access. ``earlier``: ``BEFORE`` says that it is before the
    access; else after it.
    """
    rest = access
    for other, pairs in others:
        if rest.is_empty():
            break
        rest = rest.subtract(_related(access, other, pairs, earlier).apply_range(other))
    return None if rest.is_empty() else _text(rest.range(), "[]")


def _related(access: Elements, other: Elements, pairs: Sequence[Pair], earlier: bool) -> isl.Map:
    """Return ``{ [iterators of the access] -> [iterators of the other] }``."""
    domains = (e.get_space().domain() for e in (access, other))
    relation = isl.Map.universe(isl.Space.map_from_domain_and_range(*domains))
    order = isl.Map.order_gt if earlier else isl.Map.order_lt
    for pair in pairs:
        relate = isl.Map.equate if pair.apart is Apart.EQUAL else order
        relation = relate(relation, _DIM.in_, pair.second, _DIM.out, pair.first)
    return relation


def inside(elements: Elements, outer: Sequence[int]) -> Elements:
    """Return elements with some of the iterators before them: ``{ [i, k] -> [i, place] }``."""
    domain = elements.get_space().domain()
    at = isl.Map.identity(domain.map_from_set())
    for position in reversed(range(at.dim(_DIM.out))):
        if position not in outer:
            at = at.project_out(_DIM.out, position, 1)
    name = elements.get_tuple_name(_DIM.out)
    return at.range_product(elements).flatten_range().set_tuple_name(_DIM.out, name)


def repeated(done: Sequence[Elements]) -> str | None:
    """Return an instance that is carried out twice, at two points or at two places."""
    seen: Instances | None = None
    for instances in done:
        if not instances.is_injective():
            same = instances.apply_range(instances.reverse())
            again = same.subtract(isl.Map.identity(same.get_space())).domain()
            return _text(instances.intersect_domain(again).range())
        found = instances.range()
        if seen is not None and not seen.is_disjoint(found):
            return _text(seen.intersect(found))
        seen = found if seen is None else seen.union(found)
    return None


def one_to_one(
    pairs: Sequence[tuple[Elements, Elements]], others: Sequence[tuple[Elements, Elements]] | None
) -> bool:
    """Return whether pairs of elements, each at one point, have each element once; and are the ``others``."""
    places = _places(pairs)
    same = others is None or places.is_equal(_places(others))
    return same and places.is_single_valued() and places.is_injective()


def _places(pairs: Sequence[tuple[Elements, Elements]]) -> isl.UnionMap:
    """Return ``{ a[..] -> b[..] }`` of what is accessed at the same points."""
    return reduce(isl.UnionMap.union, (isl.UnionMap(a.reverse().apply_range(b)) for a, b in pairs))


def carried_out(done: Sequence[Elements]) -> Instances | None:
    """Return the instances that are carried out; None for none."""
    ranges = [instances.range() for instances in done]
    return reduce(isl.Set.union, ranges) if ranges else None


def only_in(first: Instances, second: Instances | None, brackets: str = "()") -> str | None:
    """Return an instance of the first set that is not in the second; None is the empty set."""
    rest = first if second is None else first.subtract(second)
    return None if rest.is_empty() else _text(rest, brackets)


def instances_of(tree: Tree, scope: Scope) -> Mapping[str, Instances]:
    """Return the instances of each statement that loops visit."""
    found: dict[str, Instances] = {}
    instances_visited(tree, scope).foreach_set(lambda s: found.update({s.get_tuple_name() or "": s}))
    return found
