"""Blocks of a host loop: what does not need the rest of a block, or is not needed by it, becomes a reduction.

Before:                                    After:
for q: A[r][q] /= A[q][q];                 for blocks: for q in the block: the same for r or c in the block;
       A[r][c] -= A[r][q] * A[q][c]        A[r][c] -= sum over q in the block of A[r][q] * A[q][c]

An instance may wait if no dependence leads from it to another instance of its block; it may go first if none
leads to it. Both are computed from the dependences, as sets over a parameter, the number of the block.

Source: blocked factorisations (Dongarra et al. 1984: idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, reduce

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.hyperplanes import Edge, edge, rows_map
from polyloom.scop.schedule.index_set_splitting import edges_between, piece
from polyloom.scop.schedule.plan import Blocks, Hyperplane, Leaf, Plan, Sequential, statements_of
from polyloom.scop.schedule.scheduling import arrange, inner_edges
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type

SIZES = (64, 8)
"""Steps of a host loop in a block, and of one of its blocks in turn: what waits then reads and writes its
results once for so many steps."""

MAXIMUM_PIECES = 4
"""Pieces of a statement that do not wait; more of them cost more launches than blocks save."""


LEAST_DIMENSIONS = 3
"""Of an update that can be a product: two of its results, one of its terms."""


def may_have_blocks(statements: Sequence[ScopStatement]) -> bool:
    """Whether any statement has the dimensions of a product."""
    return any(len(s.iterators) >= LEAST_DIMENSIONS for s in statements)


def blocked(
    plans: Sequence[Plan],
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...] = (),
    sizes: tuple[int, ...] = SIZES,
) -> tuple[Plan, ...]:
    """Return the plans with host loops in blocks where updates of at least two dimensions can wait."""
    return tuple(_blocked(plan, edges, patterns, around, sizes) for plan in plans)


def _blocked(
    plan: Plan,
    edges: Sequence[Edge],
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
    sizes: tuple[int, ...],
) -> Plan:
    if not isinstance(plan, Sequential) or not sizes:
        return plan
    statements = statements_of(plan)
    names = {s.name for s in statements}
    if not names <= plan.time.keys():
        return plan
    here = [e for e in edges if {e.source, e.sink} <= names]
    found = _in_blocks(statements, here, plan.time, patterns, around, sizes)
    if found is not None:
        return found
    body = blocked(plan.body, inner_edges(here, plan.time), patterns, (*around, plan.time), sizes)
    return Sequential(plan.time, body)


def _in_blocks(
    statements: Sequence[ScopStatement],
    edges: Sequence[Edge],
    time: Hyperplane,
    patterns: Patterns,
    around: tuple[Hyperplane, ...],
    sizes: tuple[int, ...],
) -> Blocks | None:
    """Return the plan of a host loop in blocks; None where no product waits."""
    products = {
        e.source
        for e in edges
        if e.relaxed and e.source == e.sink and e.relation.dim(_DIM.in_) >= LEAST_DIMENSIONS + len(around)
    }
    if not products:
        return None
    block = fresh("block", {name for s in statements for name in parameter_names(s.domain)})
    inside = {s.name: _block_of(s, time, block, sizes[0]) for s in statements}
    own = [e for e in (_within(e, inside) for e in edges) if e is not None]
    pieces: list[ScopStatement] = []
    together: set[str] = set()
    for statement in statements:
        whole = inside[statement.name]
        apart = _Block(own, time, products).apart(statement, whole) if statement.name in products else None
        if apart is None:
            pieces.append(piece(statement, whole, patterns.names.of((block, statement.name), statement.name)))
            continue
        step_by_step = whole.subtract(apart).coalesce().make_disjoint().get_basic_sets()
        if len(step_by_step) > MAXIMUM_PIECES:
            return None
        for k, domain in enumerate((*map(isl.Set.from_basic_set, step_by_step), apart)):
            name = patterns.names.of((block, statement.name, k), f"{statement.name}_{k + 1}")
            pieces.append(piece(statement, domain, name))
        together.add(pieces[-1].name)
    if not together:
        return None
    between = list(edges_between(pieces, edges))
    body = arrange(pieces, between, patterns, around)
    if not together <= {plan.statement.name for plan in body if isinstance(plan, Leaf)}:
        return None
    return Blocks(time, block, sizes[0], blocked(body, between, patterns, around, sizes[1:]))


def _block_of(statement: ScopStatement, time: Hyperplane, block: str, size: int) -> isl.Set:
    """Return the instances of a block: those with ``size * block <= time(x) < size * block + size``."""
    times = rows_map(statement.domain.get_space(), time[statement.name])
    steps = isl.Set(f"[{block}] -> {{ [t] : 0 <= t - {size} * {block} < {size} }}")
    return statement.domain.intersect(times.intersect_range(steps).domain()).coalesce()


def _within(edge_: Edge, inside: dict[str, isl.Set]) -> Edge | None:
    relation = edge_.relation.intersect_domain(inside[edge_.source]).intersect_range(inside[edge_.sink])
    if relation.is_empty():
        return None
    return edge(edge_.source, edge_.sink, edge_.array, edge_.anti, edge_.relaxed, relation)


@dataclass(frozen=True, eq=False)
class _Block:
    """The edges inside of a block; ``products``: the statements that may be set apart."""

    edges: Sequence[Edge]
    time: Hyperplane
    products: AbstractSet[str]

    def apart(self, statement: ScopStatement, whole: isl.Set) -> isl.Set | None:
        """Return instances that can run together after, or before, the rest of their block; None for none.

        Where they are no one convex set, the part of the most dimensions; the others go step by step.
        """
        name = statement.name
        leaving = [e.relation.domain() for e in self.edges if e.source == name and not e.relaxed]
        late = _thickest(reduce(isl.Set.subtract, leaving, whole).coalesce())
        if late is not None and self._combines(name, late, steps=True):
            return late if _equalities(late) == _equalities(whole) else None
        entering = [
            e.relation.range()
            for e in self.edges
            if e.sink == name and not e.relaxed and e.source not in self.first
        ]
        early = _thickest(reduce(isl.Set.subtract, entering, whole).coalesce())
        if early is not None and self._combines(name, early, steps=False):
            return early if _equalities(early) == _equalities(whole) else None
        return None

    @cached_property
    def first(self) -> AbstractSet[str]:
        """The statements of which nothing waits for anything in the block."""
        others = {e.source for e in self.edges} - self.products
        return others - {e.sink for e in self.edges if not e.relaxed}

    def _combines(self, name: str, points: isl.Set, *, steps: bool) -> bool:
        """Whether instances combine several terms of an element, those of several ``steps`` if asked."""
        row = rows_map(points.get_space(), self.time[name])
        same_step = row.apply_range(row.reverse())
        for e in self.edges:
            if e.relaxed and e.source == e.sink == name:
                met = e.relation.intersect_domain(points).intersect_range(points)
                if not met.is_empty() and not (steps and met.is_subset(same_step)):
                    return True
        return False


def _thickest(points: isl.Set) -> isl.Set | None:
    """Return the part with the fewest equalities; None where there is nothing."""
    return min(map(isl.Set.from_basic_set, points.get_basic_sets()), key=_equalities, default=None)


def _equalities(points: isl.Set) -> int:
    return int(points.affine_hull().n_constraint())
