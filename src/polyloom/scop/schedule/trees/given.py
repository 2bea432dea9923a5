"""A schedule tree that a user wrote, in isl's text, as plans; first of all checked against the dependences.

    band        a host loop for each member; ``floor(time / size)``: a host loop over blocks
                members that are coincident, over several statements: parallel coordinates of one node
                over one statement whose instances may run in any order: an md_hom, the whole band
    sequence    one plan after another; ``set``: the same, in the order that is written
    filter      of some instances of a statement: these, as a piece of it
    mark        nothing

Where a member is another function, or nothing inside of a host loop is parallel, the part below is one node
with loops inside, in the order of the tree. A tree is legal if the source of each dependence is before its
sink; updates of one element by one operator may change places.

Source: schedule trees (Verdoolaege et al. 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import islpy as isl

from polyloom.diagnostics import Diagnostic, PolyloomError, Source, error
from polyloom.ir.naming import fresh
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.functions import function_of, isl_integer
from polyloom.scop.dependence.dependences import Dependences
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.hyperplanes import Edge, rows_map
from polyloom.scop.schedule.index_set_splitting import piece
from polyloom.scop.schedule.loop_verdicts import witness_of
from polyloom.scop.schedule.plan import Block, Blocks, Group, Hyperplane, Leaf, Plan, Row, Sequential, row_of
from polyloom.scop.schedule.scheduling import by_snapshot
from polyloom.scop.schedule.statement_groups import Patterns

_DIM = isl.dim_type

START = "start from what `polyloom explain --schedule-tree` prints"


def read_tree(text: Source) -> isl.Schedule:
    """Return a schedule tree. Errors: ``schedule-syntax``."""
    try:
        return isl.Schedule.read_from_str(isl.DEFAULT_CONTEXT, text.text)
    except isl.Error as fault:
        reason = str(fault).partition(" failed: ")[2].partition(" in ")[0] or "it cannot be read"
        raise PolyloomError(
            error("schedule-syntax", f"`{text.name}` is no schedule tree of isl: {reason}", helps=[START])
        ) from fault


def runs_all(tree: isl.Schedule, scop: Scop) -> bool:
    """Whether a tree runs the instances of a part, and no others."""
    wanted, given = _wanted(scop), tree.get_domain().intersect_params(scop.context)
    return bool(given.is_equal(wanted))


def check_tree(tree: isl.Schedule, scop: Scop, found: Dependences) -> None:
    """Refuse a tree that runs other instances, or against a dependence.

    Errors: ``schedule-domain``, ``schedule-order``.
    """
    wanted, given = _wanted(scop), tree.get_domain().intersect_params(scop.context)
    faults = [
        error("schedule-domain", f"the schedule {what} {_example(points)}", helps=[START])
        for what, points in (
            ("leaves out", wanted.subtract(given)),
            ("runs what is not there:", given.subtract(wanted)),
        )
        if not points.is_empty()
    ]
    raise_all(faults)
    raise_all(list(_violations(tree, scop, found)))


def raise_all(faults: Sequence[Diagnostic]) -> None:
    """Raise what was found wrong, if anything was."""
    if faults:
        raise PolyloomError(*faults)


def _wanted(scop: Scop) -> isl.UnionSet:
    domains = (isl.UnionSet.from_set(s.domain) for s in scop.statements)
    return reduce(isl.UnionSet.union, domains).intersect_params(scop.context)


def _example(points: isl.UnionSet) -> str:
    point = isl.Set.from_union_set(isl.UnionSet.from_point(points.sample_point()))
    return str(point).partition("{ ")[2].rpartition(" }")[0].strip() or str(point)


def _violations(tree: isl.Schedule, scop: Scop, found: Dependences) -> Iterator[Diagnostic]:
    """Yield a message for each dependence whose sink does not run after its source."""
    times = tree.get_map()
    wrong = times.lex_ge_union_map(times)
    spans = {s.name: s.span for s in scop.statements}
    for dependence in found.edges:
        relation = dependence.relation.intersect_params(scop.context)
        here = wrong.intersect_domain(relation.domain()).intersect(isl.UnionMap.from_map(relation))
        if dependence.relaxed is not None or here.is_empty():
            continue
        witness = witness_of(dependence, isl.Map.from_union_map(here))
        message = f"the schedule runs {witness.sink} not after {witness.source}"
        notes = [f"{witness}: a {dependence.kind.value} dependence"]
        yield error("schedule-order", message, spans.get(dependence.sink), notes=notes, helps=[START])


def plans_of(
    tree: isl.Schedule, statements: Sequence[ScopStatement], edges: Sequence[Edge], patterns: Patterns
) -> tuple[Plan, ...]:
    """Return the plans of a legal tree. Errors: ``schedule-node``."""
    reader = _Reader({s.name for s in statements}, edges, patterns)
    return reader.plans(tree.get_root(), _Here(tuple(statements)))


@dataclass(frozen=True, eq=False)
class _Here:
    """What runs at a node of the tree: statements, or pieces of them; the loops around."""

    statements: tuple[ScopStatement, ...]
    around: tuple[Hyperplane, ...] = ()


@dataclass(frozen=True, eq=False)
class _Member:
    """A member of a band: the row of each statement, and how many times make a block; 1: each is a step."""

    rows: Hyperplane
    size: int


class _Reader:
    """``names``: of the statements that the tree speaks of, of which others are pieces."""

    def __init__(self, names: set[str], edges: Sequence[Edge], patterns: Patterns) -> None:
        self.names, self.edges, self.patterns = names, edges, patterns

    def _between(self, a: ScopStatement, b: ScopStatement, here: _Here) -> Iterator[Edge]:
        """Yield the dependences from one statement to another that the loops around leave."""
        source, sink = self._name(a), self._name(b)
        for e in self.edges:
            if (e.source, e.sink) != (source, sink):
                continue
            relation = e.relation.set_tuple_name(_DIM.in_, a.name).set_tuple_name(_DIM.out, b.name)
            relation = relation.intersect_domain(a.domain).intersect_range(b.domain)
            for plane in here.around:
                times = [rows_map(s.domain.get_space(), row_of(plane, s)) for s in (a, b)]
                relation = relation.intersect(times[0].apply_range(times[1].reverse()))
            if not relation.is_empty():
                pairs = relation.wrap().flatten()
                yield replace(e, source=a.name, sink=b.name, relation=relation, pairs=pairs)

    def _among(self, here: _Here) -> list[Edge]:
        return [e for a in here.statements for b in here.statements for e in self._between(a, b, here)]

    def plans(self, node: isl.ScheduleNode, here: _Here) -> tuple[Plan, ...]:
        kind = str(node.get_type()).rpartition(".")[2]
        match kind:
            case "domain" | "mark" | "context":
                return self.plans(node.child(0), here)
            case "filter":
                return self.plans(node.child(0), self._filtered(node, here))
            case "sequence" | "set":
                children = (node.child(k) for k in range(node.n_children()))
                return tuple(plan for child in children for plan in self.plans(child, here))
            case "band":
                return self._at_once(here) or self._band(node, 0, here)
            case "leaf":
                return self._at_once(here) or tuple(Leaf(s) for s in here.statements)
            case _:
                raise PolyloomError(
                    error("schedule-node", f"a schedule has no node `{kind}` here", helps=[_NODES, START])
                )

    def _at_once(self, here: _Here) -> tuple[Plan, ...]:
        """Return an md_hom, or a scan or selection, where that is what runs here; else nothing."""
        if not here.statements:
            return ()
        first, *others = here.statements
        if not others:
            binding = [e for e in self._between(first, first, here) if not e.relaxed]
            if all(by_snapshot(first, e, len(here.around)) for e in binding):
                return (Leaf(first, frozenset(e.array for e in binding)),)
        form = self.patterns.group(here.statements, self._among(here)) if _whole(here) else None
        return () if form is None else (Group(form, Block(here.statements, (), len(here.around))),)

    def _filtered(self, node: isl.ScheduleNode, here: _Here) -> _Here:
        """Return what a filter leaves: statements, or pieces of them."""
        wanted = node.filter_get_filter()
        found: list[ScopStatement] = []
        for statement in here.statements:
            points = _points(statement.domain, self._name(statement))
            left = points.intersect(wanted)
            if points.is_subset(wanted):
                found.append(statement)
            elif not left.is_empty():
                found.append(self._piece(statement, isl.Set.from_union_set(left)))
        return replace(here, statements=tuple(found))

    def _piece(self, statement: ScopStatement, points: isl.Set) -> ScopStatement:
        name = self.patterns.names.of((statement.name, str(points)), f"{self._name(statement)}_part")
        return piece(statement, points, name)

    def _name(self, statement: ScopStatement) -> str:
        return next(name for name in (statement.name, *statement.origins) if name in self.names)

    def _band(self, node: isl.ScheduleNode, k: int, here: _Here) -> tuple[Plan, ...]:
        """Return the plans of a band from one of its members on."""
        if k == node.band_n_member():
            return self.plans(node.child(0), here)
        found = self._at_once(here)
        if found or not here.statements:
            return found
        times = self._times(node, k, here)
        member = _member(times)
        if member is None:
            return (self._node(node, (), here),)
        if member.size > 1:
            return (self._in_blocks(node, k, member, here),)
        parallel = self._parallel(node, k, here)
        if parallel:
            return (self._node(node, parallel, here),)
        inside = replace(here, around=(*here.around, member.rows))
        body = self._band(node, k + 1, inside)
        if not any(_is_parallel(plan, len(inside.around)) for plan in body):
            return (self._node(node, (), here),)
        return (Sequential(member.rows, body),)

    def _in_blocks(self, node: isl.ScheduleNode, k: int, member: _Member, here: _Here) -> Blocks:
        block = fresh("block", {n for s in here.statements for n in parameter_names(s.domain)})
        size = member.size
        steps = isl.Map(f"[{block}] -> {{ [t] -> [t] : {size} * {block} <= t < {size} * {block} + {size} }}")
        pieces = []
        for statement in here.statements:
            times = rows_map(statement.domain.get_space(), member.rows[statement.name])
            points = times.apply_range(steps).domain().intersect(statement.domain).coalesce()
            pieces.append(self._piece(statement, points))
        rows = {s.name: member.rows[s.origins[0]] for s in pieces}
        inside = replace(here, statements=tuple(pieces))
        body = self._band(node, k + 1, inside)
        return Blocks(time={**member.rows, **rows}, iterator=block, size=size, body=body)

    def _parallel(self, node: isl.ScheduleNode, k: int, here: _Here) -> tuple[Hyperplane, ...]:
        """Return the members from one on that are coincident, and are so by the dependences."""
        found: list[Hyperplane] = []
        if not node.band_member_get_coincident(k):
            return ()
        edges = self._among(here)
        for j in range(k, node.band_n_member()):
            times = self._times(node, j, here)
            member = _member(times)
            if member is None or member.size > 1 or not node.band_member_get_coincident(j):
                break
            if any(_leaves(e, times) for e in edges):
                break
            found.append(member.rows)
        return tuple(found)

    def _times(self, node: isl.ScheduleNode, k: int, here: _Here) -> dict[str, isl.Map]:
        """Return when the instances of each statement run by one member of a band."""
        function = node.band_get_partial_schedule().get_union_pw_aff(k)
        times = isl.UnionMap.from_union_pw_aff(function)
        found = {}
        for statement in here.statements:
            name = self._name(statement)
            own = isl.Map.from_union_map(times.intersect_domain(_points(statement.domain, name)))
            found[statement.name] = own.set_tuple_name(_DIM.in_, statement.name)
        return found

    def _node(self, node: isl.ScheduleNode, parallel: tuple[Hyperplane, ...], here: _Here) -> Block:
        """Return all that is below as one node, in the order of the tree."""
        times = node.get_subtree_schedule_union_map()
        order = isl.UnionMap.empty(times.get_space())
        for statement in here.statements:
            own = times.intersect_domain(_points(statement.domain, self._name(statement)))
            moved = isl.Map.from_union_map(own).set_tuple_name(_DIM.in_, statement.name)
            order = order.union(isl.UnionMap.from_map(moved))
        return Block(here.statements, parallel, len(here.around), order)


_NODES = "nodes are domain, context, sequence, set, filter, band (`schedule`) and mark"


def _whole(here: _Here) -> bool:
    return not any(s.origins for s in here.statements)


def _points(domain: isl.Set, name: str) -> isl.UnionSet:
    return isl.UnionSet.from_set(domain.set_tuple_name(name))


def _leaves(e: Edge, times: Mapping[str, isl.Map]) -> bool:
    together = times[e.source].apply_range(times[e.sink].reverse())
    return not e.relation.is_subset(together)


def _is_parallel(plan: Plan, around: int) -> bool:
    """Whether anything in a plan is done in parallel."""
    match plan:
        case Leaf(statement=statement):
            return len(statement.iterators) > around
        case Group():
            return True
        case Block(parallel=parallel):
            return bool(parallel)
        case Sequential(body=body):
            return any(_is_parallel(inner, around + 1) for inner in body)
        case Blocks(body=body):
            return any(_is_parallel(inner, around) for inner in body)


def _member(times: Mapping[str, isl.Map]) -> _Member | None:
    """Return a member as rows; None where it is no such function of the iterators."""
    rows: dict[str, Row] = {}
    sizes: set[int] = set()
    for name, relation in times.items():
        function = function_of(relation).gist(relation.domain()).coalesce()
        found = _row(function.as_multi_aff().get_at(0)) if function.isa_multi_aff() else None
        if found is None:
            return None
        rows[name] = found[0]
        sizes.add(found[1])
    return _Member(rows, sizes.pop()) if len(sizes) == 1 else None


def _row(aff: isl.Aff) -> tuple[Row, int] | None:
    """Return a row and the number by which it is divided downwards."""
    if aff.involves_dims(_DIM.param, 0, aff.dim(_DIM.param)):
        return None
    plain = _coefficients(aff)
    if aff.dim(_DIM.div) == 0:
        return None if plain is None else (plain, 1)
    if aff.dim(_DIM.div) != 1 or plain is None or any(plain):
        return None
    if not aff.get_coefficient_val(_DIM.div, 0).is_one():
        return None
    div = aff.get_div(0)
    size = int(div.get_denominator_val().to_python())
    inner = _coefficients(div.scale_val(isl_integer(size)))
    nested = div.involves_dims(_DIM.div, 0, div.dim(_DIM.div))
    return None if inner is None or nested else (inner, size)


def _coefficients(aff: isl.Aff) -> Row | None:
    values = [aff.get_coefficient_val(_DIM.in_, k) for k in range(aff.dim(_DIM.in_))]
    values.append(aff.get_constant_val())
    if not all(v.is_int() for v in values):
        return None
    *row, added = (int(v.to_python()) for v in values)
    return (*row, added) if added else tuple(row)
