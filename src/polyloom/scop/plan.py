"""The order in which statements run: host loops, nodes that are parallel, nodes that are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from polyloom.scop.model import ScopStatement

Row = tuple[int, ...]
"""Coefficients of a linear function of a statement's iterators."""

Hyperplane = Mapping[str, Row]
"""A row for every statement, by its name: a common time, or a common parallel coordinate."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """All instances of one statement that remain, in any order: one md_hom.

    ``snapshot``: arrays whose elements are read before other instances of the statement write them.
    """

    statement: ScopStatement
    snapshot: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Scan:
    """Prefix combinations: see ``scop.scans``. ``statements``: the update first, then the readers."""

    statements: tuple[ScopStatement, ...]


@dataclass(frozen=True, eq=False)
class Block:
    """Statements in their order in the source, for every point of the ``parallel`` coordinates.

    ``around``: how many host loops stand outside.
    """

    statements: tuple[ScopStatement, ...]
    parallel: tuple[Hyperplane, ...]
    around: int = 0


@dataclass(frozen=True, eq=False)
class Sequential:
    """``body`` for each value of the hyperplane, in increasing order, on the host."""

    time: Hyperplane
    body: tuple[Plan, ...]


Plan = Leaf | Scan | Block | Sequential


def statements_of(plan: Plan) -> tuple[ScopStatement, ...]:
    """Return the statements that a plan runs, in order."""
    match plan:
        case Leaf(statement=statement):
            return (statement,)
        case Scan(statements=statements) | Block(statements=statements):
            return statements
        case Sequential(body=body):
            return tuple(s for inner in body for s in statements_of(inner))


def walk_plans(plans: Iterable[Plan]) -> Iterator[Plan]:
    """Yield the plans and everything inside them, outside first."""
    for plan in plans:
        yield plan
        if isinstance(plan, Sequential):
            yield from walk_plans(plan.body)


Score = tuple[int, int]
"""Dimensions of the longest chain of steps; loops of launches around each other. Less is better."""


def score(plans: Iterable[Plan]) -> Score:
    """Return the score of plans that follow each other."""
    found = [_score(plan) for plan in plans]
    return max((s for s, _ in found), default=0), max((n for _, n in found), default=0)


def _score(plan: Plan) -> Score:
    match plan:
        case Leaf() | Scan():
            return 0, 0
        case Block(statements=statements, parallel=parallel, around=around):
            return max(0, max(len(s.iterators) for s in statements) - len(parallel) - around), 0
        case Sequential(body=body):
            steps, launches = score(body)
            return steps + 1, launches + 1
