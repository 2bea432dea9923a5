"""Blocks of a host loop: what does not need the rest of a block, or is not needed by it, becomes a reduction.

Before:                                    After:
for q: A[r][q] /= A[q][q];                 for blocks: for q in the block: the same for r or c in the block;
       A[r][c] -= A[r][q] * A[q][c]        A[r][c] -= sum over q in the block of A[r][q] * A[q][c]

An instance may wait if no dependence leads from it to another instance of its block; it may go first if none
leads to it. Both are computed from the dependences, as sets over a parameter, the number of the block.

Source: blocked factorisations (Dongarra et al. 1984: idea). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, reduce

import islpy as isl

from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.blocks.columns import in_columns
from polyloom.scop.schedule.blocks.kept_values import (
    Steps,
    Waiting,
    kept_by,
    may_be_kept,
    with_kept_values,
    with_rows,
)
from polyloom.scop.schedule.hyperplanes import Edge, instances_from, rows_map
from polyloom.scop.schedule.index_set_splitting import edges_between, piece
from polyloom.scop.schedule.plan import (
    Blocks,
    Hyperplane,
    Leaf,
    Plan,
    Sequential,
    has_wavefronts,
    host_loops,
    statements_of,
)
from polyloom.scop.schedule.scheduling import arrange, inner_edges
from polyloom.scop.schedule.statement_groups import Patterns, asks_others

_DIM = isl.dim_type

SIZES = (32, 8)
"""Steps of a host loop in a block, and of one of its blocks in turn: what waits then reads and writes its
results once for so many steps. With 64 LU of 1000 spent half of its time on what does not wait (Zen 2)."""

MAXIMUM_PIECES = 4
"""Pieces of a statement that do not wait; more of them cost more launches than blocks save."""


LEAST_DIMENSIONS = 2
"""Of an update that can be a product: one of its results, one of its terms."""

LEAST_EXTENT = 64
"""Points along one iterator that a product of a matrix and a vector has at least where it has many: a band
of a few elements is done step by step."""


def may_have_blocks(statements: Sequence[ScopStatement]) -> bool:
    """Whether any statement has the dimensions of a product."""
    return any(len(s.iterators) >= LEAST_DIMENSIONS for s in statements)


def blocked(
    plans: Sequence[Plan],
    edges: Sequence[Edge],
    scop: Scop,
    patterns: Patterns,
    sizes: tuple[int, ...] = SIZES,
) -> tuple[Plan, ...]:
    """Return the plans with host loops in blocks where updates of at least two dimensions can wait."""
    made = _Blocking(scop, patterns)
    known = {s.name: s for s in scop.statements}
    return tuple(made.blocked(plan, known, edges, (), sizes) for plan in plans)


@dataclass(frozen=True, eq=False)
class _Blocking:
    """Makes blocks of host loops."""

    scop: Scop
    patterns: Patterns

    def blocked(
        self,
        plan: Plan,
        known: Mapping[str, ScopStatement],
        edges: Sequence[Edge],
        around: tuple[Hyperplane, ...],
        sizes: tuple[int, ...],
    ) -> Plan:
        """Return a plan with its host loop, or those inside of it, in blocks.

        ``known``: the statements as they were when the plan was made; those inside may be pieces of them.
        """
        if not isinstance(plan, Sequential) or not sizes:
            return plan
        known = {**known, **{s.name: s for s in statements_of(plan)}}
        if not plan.time.keys() <= known.keys():
            return plan
        here = [e for e in edges if {e.source, e.sink} <= plan.time.keys()]
        statements = [s for name, s in known.items() if name in plan.time]
        found = self._in_blocks(statements, here, plan.time, around, sizes)
        if found is None and sizes == SIZES:
            found = in_columns(statements, here, plan.time, around, self.patterns)
        if found is not None and _is_as_parallel(found, plan):
            return found
        if not {s.name for s in statements_of(plan)} <= plan.time.keys():
            return plan
        within, inner = inner_edges(here, plan.time), (*around, plan.time)
        body = tuple(self.blocked(p, known, within, inner, sizes) for p in plan.body)
        return Sequential(with_rows(plan.time, kept_by(body)), body)

    def _in_blocks(
        self,
        statements: Sequence[ScopStatement],
        edges: Sequence[Edge],
        time: Hyperplane,
        around: tuple[Hyperplane, ...],
        sizes: tuple[int, ...],
    ) -> Blocks | None:
        """Return the plan of a host loop in blocks; None where no product waits.

        What is stored where other data say so is none: it is no sum, and step by step whole rows may be
        left out.
        """
        plain = {s.name for s in statements if not asks_others(s)}
        products = {
            e.source
            for e in edges
            if e.relaxed and e.source == e.sink and e.relation.dim(_DIM.in_) >= LEAST_DIMENSIONS + len(around)
        } & plain
        if not products:
            return None
        block = fresh("block", {name for s in statements for name in parameter_names(s.domain)})
        begin = {block: sizes[0]}
        inside = {s.name: instances_from(s, time[s.name], begin, size=sizes[0]) for s in statements}
        own = [e for e in (e.between(inside) for e in edges) if e is not None]
        apart = {s.name: _Block(own, time, products).apart(s, inside[s.name]) for s in statements}
        pieces = self._pieces(statements, inside, apart, block)
        if pieces is None:
            return None
        together = {s.name for s, waits in pieces if waits is not None}
        in_block = Steps(scop=self.scop, time=time, around=around, block=block, size=sizes[0])
        waiting = with_kept_values(
            Waiting(
                statements=tuple(s for s, _ in pieces),
                edges=tuple(edges_between([s for s, _ in pieces], edges)),
            ),
            [s.name for s, waits in pieces if waits is Wait.KEPT],
            in_block,
        )
        if not together or waiting is None:
            return None
        around = tuple(with_rows(plane, waiting.kept) for plane in around)
        body = arrange(waiting.statements, waiting.edges, self.patterns, around)
        if not together <= {plan.statement.name for plan in body if isinstance(plan, Leaf)}:
            return None
        known = {s.name: s for s in waiting.statements}
        inner = tuple(self.blocked(p, known, waiting.edges, around, sizes[1:]) for p in body)
        every = (*waiting.kept, *kept_by(inner))
        time = with_rows(time, every)
        return Blocks(time=time, iterator=block, size=sizes[0], body=inner, kept=waiting.kept)

    def _pieces(
        self,
        statements: Sequence[ScopStatement],
        inside: Mapping[str, isl.Set],
        apart: Mapping[str, _Apart | None],
        block: str,
    ) -> list[tuple[ScopStatement, Wait | None]] | None:
        """Return the statements in pieces, with how those wait that do; None where there are too many."""
        names = self.patterns.names
        result: list[tuple[ScopStatement, Wait | None]] = []
        for statement in statements:
            whole, found = inside[statement.name], apart[statement.name]
            if found is None:
                name = names.of((block, statement.name), statement.name)
                result.append((piece(statement, whole, name), None))
                continue
            step_by_step = reduce(isl.Set.subtract, found.parts, whole)
            rest = step_by_step.coalesce().make_disjoint().get_basic_sets()
            if len(rest) > MAXIMUM_PIECES:
                return None
            own = [(isl.Set.from_basic_set(part), None) for part in rest]
            parts = [*own, *((part, found.wait) for part in found.parts)]
            for k, (domain, wait) in enumerate(parts):
                name = names.of((block, statement.name, k), f"{statement.name}_{k + 1}")
                result.append((piece(statement, domain, name), wait))
        return result


def _is_as_parallel(found: Plan, before: Plan) -> bool:
    """Whether a block has as few steps as the loop had; wavefronts have tiles of their own."""
    return host_loops([found]) <= host_loops([before]) and not has_wavefronts([found, before])


class Wait(Enum):
    """How instances run together."""

    FIRST = "before the rest of their block"
    LAST = "after it"
    KEPT = "after it, with what it overwrites kept"


@dataclass(frozen=True, eq=False)
class _Apart:
    """Disjoint convex sets of instances that run together."""

    parts: tuple[isl.Set, ...]
    wait: Wait


@dataclass(frozen=True, eq=False)
class _Block:
    """The edges inside of a block; ``products``: the statements that may be set apart."""

    edges: Sequence[Edge]
    time: Hyperplane
    products: AbstractSet[str]

    def apart(self, statement: ScopStatement, whole: isl.Set) -> _Apart | None:
        """Return instances that can run together after, or before, the rest of their block; None for none.

        Where they are no convex set, the parts of the most dimensions; the others go step by step.
        """
        name = statement.name
        if name not in self.products:
            return None
        leaving = [e for e in self.edges if e.source == name and not e.relaxed]
        late = thickest(_without(whole, [e.relation.domain() for e in leaving]))
        if self._combines(name, late, steps=True):
            return self._chosen(late, whole, Wait.LAST)
        entering = [
            e.relation.range()
            for e in self.edges
            if e.sink == name and not e.relaxed and e.source not in self.first
        ]
        early = thickest(_without(whole, entering))
        if self._combines(name, early, steps=False):
            return self._chosen(early, whole, Wait.FIRST)
        needed = [e.relation.domain() for e in leaving if not may_be_kept(statement, e, self.time)]
        kept = thickest(_without(whole, needed))
        if len(needed) < len(leaving) and self._combines(name, kept, steps=True):
            return self._chosen(kept, whole, Wait.KEPT)
        return None

    def _chosen(self, parts: Sequence[isl.Set], whole: isl.Set, wait: Wait) -> _Apart | None:
        found = [part for part in parts if _equalities(part) == _equalities(whole) and _is_large(part)]
        return _Apart(tuple(found), wait) if 0 < len(found) <= MAXIMUM_PIECES else None

    @cached_property
    def first(self) -> AbstractSet[str]:
        """The statements of which nothing waits for anything in the block."""
        others = {e.source for e in self.edges} - self.products
        return others - {e.sink for e in self.edges if not e.relaxed}

    def _combines(self, name: str, parts: Sequence[isl.Set], *, steps: bool) -> bool:
        """Whether instances combine several terms of an element, those of several ``steps`` if asked."""
        if not parts:
            return False
        points = parts[0]
        row = rows_map(points.get_space(), self.time[name])
        same_step = row.apply_range(row.reverse())
        for e in self.edges:
            if e.relaxed and e.source == e.sink == name:
                met = e.relation.intersect_domain(points).intersect_range(points)
                if not met.is_empty() and not (steps and met.is_subset(same_step)):
                    return True
        return False


def _is_large(part: isl.Set) -> bool:
    """Whether what waits may be of three dimensions, or reach far along one of two, in one block."""
    dimensions = part.dim(_DIM.set)
    if dimensions > LEAST_DIMENSIONS:
        return True
    apart = isl.Map.from_domain_and_range(part, part).deltas().reset_tuple_id()
    names = [f"i{k}" for k in range(dimensions)]
    far = " or ".join(f"{name} >= {LEAST_EXTENT - 1}" for name in names)
    return not apart.is_disjoint(isl.Set(f"{{ [{', '.join(names)}] : {far} }}"))


def _without(whole: isl.Set, parts: Sequence[isl.Set]) -> isl.Set:
    return reduce(isl.Set.subtract, parts, whole).coalesce()


def thickest(points: isl.Set) -> list[isl.Set]:
    """Return the disjoint convex parts with the fewest equalities."""
    parts = points.get_basic_sets() if points.n_basic_set() <= 1 else points.make_disjoint().get_basic_sets()
    found = [isl.Set.from_basic_set(part) for part in parts]
    least = min(map(_equalities, found), default=0)
    return [part for part in found if _equalities(part) == least]


def _equalities(points: isl.Set) -> int:
    return int(points.affine_hull().n_constraint())
