"""What loops visit, worked out from their text with C's arithmetic: the proof of what isl generated.

Source: loopy's ``check_implemented_domains`` (idea). Not in the papers: isl's generator loses instances of a
few sets with large coefficients, so its result is compared with what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import islpy as isl

from polyloom.polyhedra.effort import TooHardError, at_most
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import Branch, Instance, IntExpression, Loop, Name, Number, Tree


def visited(tree: Tree, context: isl.Set, renamed: Mapping[str, str]) -> isl.UnionSet:
    """Return ``[parameters] -> { S[i, j] }``: the instances that loops visit where ``context`` holds.

    ``renamed``: parameter names to the names that stand for them in the tree.
    """
    return instances_visited(tree, Scope.outside(context, renamed))


def visited_in_order(
    tree: Tree, schedule: isl.UnionMap, context: isl.Set, renamed: Mapping[str, str]
) -> bool:
    """Whether loops visit an instance before each one that a schedule puts later.

    ``schedule``: ``[parameters] -> { S[i, j] -> [t] }``; its domain is what the loops visit.
    """
    instances = list(_timed(tree, Scope.outside(context, renamed), ()))
    length = max((len(time) for *_, time in instances), default=0)
    times = isl.UnionMap.empty(schedule.get_space().params())
    for scope, instance, time in instances:
        padded = (*time, *(Number(0) for _ in range(length - len(time))))
        here = scope.tuples(instance.statement, instance.arguments)
        times = times.union(here.reverse().apply_range(scope.tuples("time", padded)))
    later = schedule.lex_lt_union_map(schedule)
    return bool(later.is_disjoint(times.lex_ge_union_map(times)))


def _timed(
    tree: Tree, scope: Scope, time: tuple[IntExpression, ...]
) -> Iterator[tuple[Scope, Instance, tuple[IntExpression, ...]]]:
    """Yield each instance with when it is visited: its place in each body, the iterator of each loop."""
    for place, node in enumerate(tree):
        here = (*time, Number(place))
        match node:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                inner = scope.inside(iterator, start, condition, step)
                yield from _timed(body, inner, (*here, Name(iterator)))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                yield from _timed(body, scope.where(condition), here)
                yield from _timed(otherwise, scope.where(condition, holds=False), here)
            case Instance():
                yield scope, node, here


OPERATIONS = 2_000_000
"""What isl may spend on comparing what two trees visit."""


def visit_the_same(a: Tree, b: Tree, parameters: Iterable[str]) -> str | None:
    """Return an instance that only one of two trees visits; None where they visit the same.

    None, too, where isl cannot express it or not in ``OPERATIONS``.
    """
    scope = Scope.of_names(sorted(parameters))
    try:
        with at_most(OPERATIONS):
            return only_in_one(instances_visited(a, scope), instances_visited(b, scope))
    except (isl.Error, TooHardError, KeyError):
        return None


def only_in_one(a: isl.UnionSet, b: isl.UnionSet) -> str | None:
    """Return a point, as text, of one of two sets that is not in the other; None where they are equal."""
    if a.is_equal(b):
        return None
    lost = a.subtract(b)
    lost, which = (b.subtract(a), "new") if lost.is_empty() else (lost, "lost")
    return f"{which}: {lost.sample_point()}"


def instances_visited(tree: Tree, scope: Scope) -> isl.UnionSet:
    """Return the instances that loops visit inside a scope."""
    result = isl.UnionSet.empty(scope.points.get_space().params())
    for node in tree:
        match node:
            case Loop(iterator=iterator, start=start, condition=condition, step=step, body=body):
                result = result.union(instances_visited(body, scope.inside(iterator, start, condition, step)))
            case Branch(condition=condition, body=body, otherwise=otherwise):
                result = result.union(instances_visited(body, scope.where(condition)))
                result = result.union(instances_visited(otherwise, scope.where(condition, holds=False)))
            case Instance(statement=statement, arguments=arguments):
                instances = scope.tuples(statement, arguments).range()
                result = result.union(isl.UnionSet.from_set(instances))
    return result
