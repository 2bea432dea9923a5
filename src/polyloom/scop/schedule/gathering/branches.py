"""What stands under a condition of data runs beside what keeps the condition, point by point.

Before: ``condition_each[i][j] = d[i][k] + d[k][j] < d[i][j]`` for all points, then all of ``if
(condition_each[i][j] != 0) d[i][j] = ..``, then all of ``.. s[i][j] = s[i][k]``. After: the three for each
point, so that the condition can be a variable of the point's own. Where what keeps
conditions is in pieces, each has the instances that ask for its own.

Source: Allen, Kennedy, Optimizing Compilers for Modern Architectures, 2001, Sec. 8.2 (fusion for reuse).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product

import islpy as isl

from polyloom.ir.naming import Names
from polyloom.ir.rebuild import read_positions
from polyloom.scop.model import ScopStatement
from polyloom.scop.schedule.components import components
from polyloom.scop.schedule.expansion import Expansion
from polyloom.scop.schedule.hyperplanes import Edge, edge, parallel_planes
from polyloom.scop.schedule.index_set_splitting import piece
from polyloom.scop.schedule.plan import Block, Hyperplane, Leaf, Plan, Sequential, statements_of
from polyloom.scop.schedule.scheduling import inner_edges

_DIM = isl.dim_type
Statements = tuple[ScopStatement, ...]


def with_branches_inside(
    plans: Sequence[Plan],
    expansions: Sequence[Expansion],
    edges: Sequence[Edge],
    names: Names,
    asked_only: Collection[str] = (),
    around: tuple[Hyperplane, ...] = (),
) -> tuple[Plan, ...]:
    """Return the plans with leaves under a kept condition and the leaf that keeps it as one block.

    So are neighbours among the statements that store where their conditions hold, ``asked_only``, if they
    read the same array. Keeps true: every edge; all points run at once that did before, but for sums under
    the condition.
    """
    result = tuple(_inside(plan, expansions, edges, names, asked_only, around) for plan in plans)
    for expansion in expansions:
        if not expansion.copies:
            found = _Branches(
                plans=result, array=expansion.name, edges=tuple(edges), names=names, around=around
            )
            made = found.joined()
            result = result if made is None else made
    return tuple(_neighbours(result, edges, asked_only, around))


def _inside(
    plan: Plan,
    expansions: Sequence[Expansion],
    edges: Sequence[Edge],
    names: Names,
    asked_only: Collection[str],
    around: tuple[Hyperplane, ...],
) -> Plan:
    if not isinstance(plan, Sequential):
        return plan
    here = [e for e in edges if {e.source, e.sink} <= plan.time.keys()]
    inner = inner_edges(here, plan.time)
    body = with_branches_inside(plan.body, expansions, inner, names, asked_only, (*around, plan.time))
    return Sequential(plan.time, body)


def _neighbours(
    plans: Sequence[Plan], edges: Sequence[Edge], asked_only: Collection[str], around: Sequence[Hyperplane]
) -> Iterator[Plan]:
    """Yield the plans, runs of leaves that store where their conditions hold as blocks."""
    run: list[ScopStatement] = []
    for plan in plans:
        asks = isinstance(plan, Leaf) and not plan.snapshot and plan.statement.root in asked_only
        more = plan.statement if isinstance(plan, Leaf) and asks else None
        if run and (more is None or not _go_together([*run, more], edges, around)):
            yield _together(run, edges, around)
            run = []
        if more is None:
            yield plan
        else:
            run.append(more)
    if run:
        yield _together(run, edges, around)


def _together(run: Sequence[ScopStatement], edges: Sequence[Edge], around: Sequence[Hyperplane]) -> Plan:
    if len(run) == 1:
        return Leaf(run[0])
    return Block(tuple(run), parallel_planes(run, list(edges_among(run, edges)), around), len(around))


def _go_together(run: Sequence[ScopStatement], edges: Sequence[Edge], around: Sequence[Hyperplane]) -> bool:
    """Whether statements have the same points, all of which may run at once, and read one array."""
    first, last = run[0], run[-1]
    if not first.domain.is_equal(last.domain.set_tuple_name(first.name)):
        return False
    if not {r.array for r in last.reads} & {r.array for s in run[:-1] for r in s.reads}:
        return False
    planes = parallel_planes(run, list(edges_among(run, edges)), around)
    return len(planes) == len(first.iterators) - len(around) > 0


@dataclass(frozen=True, eq=False, kw_only=True)
class _Branches:
    """Plans in turn, and an array that may keep conditions."""

    plans: tuple[Plan, ...]
    array: str
    edges: tuple[Edge, ...]
    names: Names
    around: tuple[Hyperplane, ...]

    def joined(self) -> tuple[Plan, ...] | None:
        """Return the plans with what asks the array beside what sets it; None where that cannot be."""
        using = [p for p in self.plans if any(s.uses(self.array) for s in statements_of(p))]
        leaves = [p.statement for p in using if isinstance(p, Leaf) and not p.snapshot]
        serial = [p for p in using if isinstance(p, Block) and not p.parallel and p.order is None]
        if len(serial) == 1:
            return self._beside(serial[0], [p for p in using if p is not serial[0]])
        if len(leaves) < max(2, len(using)) or not any(self._asks(s) for s in leaves):
            return None
        groups = self._groups(leaves)
        blocks = [] if groups is None else [self._block(group) for group in groups]
        made = [block for block in blocks if block is not None]
        if not made or len(made) < len(blocks):
            return None
        rest = [p for p in self.plans if p not in using]
        return _in_order([*rest, *made], self.plans, self.edges)

    def _beside(self, serial: Block, using: Sequence[Plan]) -> tuple[Plan, ...] | None:
        """Return the plans with what asks for conditions in the node that sets them in order.

        That has as many points, and takes longer for each than what would run at once behind it.
        """
        if any(not _is_one_node(plan) for plan in using):
            return None
        asking = [s for plan in using for s in statements_of(plan)]
        longest = max(len(s.iterators) for s in serial.statements)
        if not asking or not all(self._asks(s) and len(s.iterators) <= longest for s in asking):
            return None
        block = Block((*serial.statements, *asking), (), len(self.around))
        rest = [p for p in self.plans if p is not serial and all(p is not u for u in using)]
        return _in_order([*rest, block], self.plans, self.edges)

    def _asks(self, statement: ScopStatement) -> bool:
        """Whether a statement runs under a condition that the array keeps."""
        condition = statement.condition
        if condition is None or statement.target.array == self.array:
            return False
        return any(statement.reads[p].array == self.array for p in read_positions(condition))

    def _groups(self, leaves: Sequence[ScopStatement]) -> list[Statements] | None:
        """Return for each statement that sets conditions what asks for these, in the order of the source."""
        setting = [s for s in leaves if s.target.array == self.array and not s.target.computed]
        asking = [s for s in leaves if s.target.array != self.array]
        groups: list[list[ScopStatement]] = [[s] for s in setting]
        for k, s in enumerate(setting):
            written = _written(s)
            if any(not written.is_disjoint(_written(other)) for other in setting[:k]):
                return None
        for asks in asking:
            shares = self._shares(asks, setting)
            if shares is None:
                return None
            for group, share in zip(groups, shares, strict=True):
                group += [share] if share is not None else []
        return [tuple(group) for group in groups]

    def _shares(
        self, asks: ScopStatement, setting: Sequence[ScopStatement]
    ) -> list[ScopStatement | None] | None:
        """Return what a statement has to do with the conditions that each of others sets."""
        wanted = [r.relation for r in asks.reads if r.array == self.array]
        left, shares = asks.domain, list[ScopStatement | None]()
        for k, s in enumerate(setting):
            found = [r.intersect_range(_written(s)).domain() for r in wanted]
            domain = reduce(isl.Set.intersect, found).intersect(asks.domain).coalesce()
            left = left.subtract(domain)
            if domain.is_empty():
                shares.append(None)
            elif asks.domain.is_subset(domain):
                shares.append(asks)
            else:
                shares.append(piece(asks, domain, self.names.of((asks.name, k), f"{asks.name}_{k + 1}")))
        return shares if left.is_empty() else None

    def _block(self, group: Statements) -> Plan | None:
        """Return a group as a block that is as parallel as it can be; None where it is not parallel enough.

        What combines values under the condition runs in order then, as it would in a loop of the source.
        """
        if len(group) == 1:
            return Leaf(group[0])
        between = list(edges_among(group, self.edges))
        size = len(group[0].iterators) - len(self.around)
        if size < 1 or any(len(s.iterators) != len(group[0].iterators) for s in group):
            return None
        combining = {e.source for e in between if e.relaxed and e.source == e.sink}
        plain = [s for s in group if s.name not in combining]
        others = [e for e in between if not {e.source, e.sink} & combining]
        if not plain or len(parallel_planes(plain, others, self.around)) < size:
            return None
        planes = parallel_planes(group, between, self.around)
        return Block(group, planes, len(self.around)) if planes else None


def edges_among(statements: Collection[ScopStatement], edges: Sequence[Edge]) -> Iterator[Edge]:
    """Yield the edges between the instances that statements, or pieces of those with edges, have."""
    of: dict[str, list[ScopStatement]] = {}
    for s in statements:
        for name in (s.name, *s.origins):
            of.setdefault(name, []).append(s)
    for old in edges:
        for a, b in product(of.get(old.source, ()), of.get(old.sink, ())):
            if (a.name, b.name) == (old.source, old.sink):
                yield old
                continue
            relation = old.relation.set_tuple_name(_DIM.in_, a.name).set_tuple_name(_DIM.out, b.name)
            relation = relation.intersect_domain(a.domain).intersect_range(b.domain)
            if not relation.is_empty():
                yield edge(a.name, b.name, old.array, old.anti, old.relaxed, relation)


def _in_order(
    plans: Sequence[Plan], before: Sequence[Plan], edges: Sequence[Edge]
) -> tuple[Plan, ...] | None:
    """Return plans in an order that respects the edges, and else that of those before; None without one."""
    place = {
        name: k
        for k, p in reversed(list(enumerate(before)))
        for s in statements_of(p)
        for name in (s.root, s.name)
    }
    firsts = [(statements_of(p)[0], p) for p in plans if statements_of(p)]
    ordered = [p for _, p in sorted(firsts, key=lambda pair: place.get(pair[0].name, place[pair[0].root]))]
    statements = [s for p in ordered for s in statements_of(p)]
    arrows = [(e.source, e.sink) for e in edges_among(statements, edges) if not e.relaxed]
    for plan in ordered:
        inside = [s.name for s in statements_of(plan)]
        arrows += list(zip(inside, (*inside[1:], inside[0]), strict=True))
    found = components([s.name for s in statements], arrows)
    of = {s.name: p for p in ordered for s in statements_of(p)}
    result = tuple(of[group[0]] for group in found)
    return result if len(result) == len(ordered) else None


def _is_one_node(plan: Plan) -> bool:
    """Whether statements run in one node, in the order of the source or at once."""
    if isinstance(plan, Leaf):
        return not plan.snapshot
    return isinstance(plan, Block) and plan.order is None


def _written(statement: ScopStatement) -> isl.Set:
    return statement.target.relation.intersect_domain(statement.domain).range()
