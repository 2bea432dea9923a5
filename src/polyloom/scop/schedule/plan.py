"""The order in which statements run: host loops, nodes that are parallel, nodes that are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from polyloom.scop.model import ScopStatement

if TYPE_CHECKING:
    import islpy as isl

    from polyloom.scop.schedule.blocks.kept_values import Kept
    from polyloom.scop.schedule.statement_groups import Form

Row = tuple[int, ...]
"""Coefficients of a linear function of a statement's iterators; one more, where there is one, is added."""

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
class Block:
    """Statements in their order in the source, for every point of the ``parallel`` coordinates.

    ``around``: how many host loops stand outside. ``order``: when instances run, where it is not that order.
    """

    statements: tuple[ScopStatement, ...]
    parallel: tuple[Hyperplane, ...]
    around: int = 0
    order: isl.UnionMap | None = None


@dataclass(frozen=True, eq=False)
class Group:
    """Statements that are md_homs together: scans and selections. ``otherwise``: where they are not."""

    form: Form
    otherwise: Block


@dataclass(frozen=True, eq=False)
class Sequential:
    """``body`` for each value of the hyperplane, in increasing order, on the host."""

    time: Hyperplane
    body: tuple[Plan, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Blocks:
    """``body`` for each block of ``size`` values of the hyperplane, in increasing order, on the host.

    ``iterator``: the number of the block, a parameter of the domains of the body's statements. ``kept``: what
    stores values for those that wait, which are statements of the body too.
    """

    time: Hyperplane
    iterator: str
    size: int
    body: tuple[Plan, ...]
    kept: tuple[Kept, ...] = ()
    parallel: bool = False


Plan = Leaf | Group | Block | Sequential | Blocks


def statements_of(plan: Plan) -> tuple[ScopStatement, ...]:
    """Return the statements that a plan runs, in order."""
    match plan:
        case Leaf(statement=statement):
            return (statement,)
        case Group(otherwise=Block(statements=statements)) | Block(statements=statements):
            return statements
        case Sequential(body=body) | Blocks(body=body):
            return tuple(s for inner in body for s in statements_of(inner))


def walk_plans(plans: Iterable[Plan]) -> Iterator[Plan]:
    """Yield the plans and everything inside them, outside first."""
    for plan in plans:
        yield plan
        if isinstance(plan, Sequential | Blocks):
            yield from walk_plans(plan.body)


class Part(Enum):
    """What becomes of an iterator of the source."""

    PARALLEL = "a dimension of md_homs"
    TOGETHER = "a dimension of a scan or of a selection"
    HOST = "a host loop"
    BLOCKS = "a host loop in blocks"
    WAVEFRONT = "part of a wavefront on the host"
    INSIDE = "a loop inside a node"


def parts(plans: Iterable[Plan]) -> dict[str, tuple[Part, ...]]:
    """Return for every statement what becomes of its iterators; of one in pieces, of its first piece."""
    result: dict[str, tuple[Part, ...]] = {}
    for plan in plans:
        _add_parts(plan, (), result)
    return result


def _add_parts(
    plan: Plan, around: tuple[Sequential | Blocks, ...], result: dict[str, tuple[Part, ...]]
) -> None:
    if isinstance(plan, Sequential | Blocks):
        for inner in plan.body:
            _add_parts(inner, (*around, plan), result)
        return
    for statement in statements_of(plan):
        size = len(statement.iterators)
        rows = [(row_of(loop.time, statement)[:size], isinstance(loop, Blocks)) for loop in around]
        along = [row_of(p, statement) for p in plan.parallel] if isinstance(plan, Block) else None
        found = [_part(k, rows, along) for k in range(size)]
        if isinstance(plan, Group):
            found = [Part.TOGETHER if part is Part.PARALLEL else part for part in found]
        result.setdefault(statement.root, tuple(found))


def _part(k: int, times: Iterable[tuple[Row, bool]], parallel: Iterable[Row] | None) -> Part:
    """Return what becomes of an iterator; ``times``: rows of host loops, and which of them are in blocks."""
    moving = [(row, in_blocks) for row, in_blocks in times if row[k]]
    if any(in_blocks for _, in_blocks in moving):
        return Part.BLOCKS
    if moving:
        return Part.HOST if any(_is_unit(row) for row, _ in moving) else Part.WAVEFRONT
    inside = parallel is not None and not any(row[k] for row in parallel)
    return Part.INSIDE if inside else Part.PARALLEL


def _is_unit(row: Row) -> bool:
    return sum(map(abs, row)) == 1


class NoRow(Exception):  # an internal fault: a plan holds a statement that was not planned
    """The text is the statement."""


def row_of(plane: Hyperplane, statement: ScopStatement) -> Row:
    """Return the row of a statement, or of the nearest one that it is a piece of."""
    found = next((name for name in (statement.name, *statement.origins) if name in plane), None)
    if found is None:
        raise NoRow(statement.name)
    return plane[found]


Score = tuple[int, int]
"""Dimensions of the longest chain of steps; loops of launches around each other. Less is better."""


def score(plans: Iterable[Plan]) -> Score:
    """Return the score of plans that follow each other."""
    found = [_score(plan) for plan in plans]
    return max((s for s, _ in found), default=0), max((n for _, n in found), default=0)


def _score(plan: Plan) -> Score:
    match plan:
        case Leaf() | Group():
            return 0, 0
        case Block(statements=statements, parallel=parallel, around=around):
            return max(0, max(len(s.iterators) for s in statements) - len(parallel) - around), 0
        case Sequential(body=body) | Blocks(body=body):
            steps, launches = score(body)
            return steps + 1, launches + 1


def host_loops(plans: Iterable[Plan]) -> int:
    """Return how many host loops over steps, not over blocks, stand inside each other at most."""
    return max(map(_host_loops, plans), default=0)


def _host_loops(plan: Plan) -> int:
    match plan:
        case Sequential(body=body):
            return host_loops(body) + 1
        case Blocks(body=body):
            return host_loops(body)
        case _:
            return 0


def has_wavefronts(plans: Iterable[Plan]) -> bool:
    """Whether any host loop goes along several iterators of a statement at once."""
    rows = (row for p in walk_plans(plans) if isinstance(p, Sequential) for row in p.time.values())
    return any(sum(c != 0 for c in row) > 1 for row in rows)
