"""From a plan to host nodes: loops on the host, md_homs and nests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import groupby
from typing import Any

import islpy as isl

from polyloom.ir.host import Buffer, Copy, HostNode, Index, MdHom, Order, Role, View
from polyloom.ir.naming import fresh
from polyloom.ir.types import ElementType
from polyloom.polyhedra.binding import (
    bind_range,
    parameter_names,
    parametric_point,
    project_out_parameters,
)
from polyloom.polyhedra.bounds import box_between, elementwise_maximum, elementwise_minimum
from polyloom.polyhedra.elimination import eliminate
from polyloom.polyhedra.loops.generate import CodeBuilder
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    leaves_in,
    rename_iterator,
    sum_of,
)
from polyloom.polyhedra.rectangularise import NoBox, straighten
from polyloom.scop.dependence.combiners import MET
from polyloom.scop.dependence.dependences import maps_of
from polyloom.scop.dependence.reductions import Update
from polyloom.scop.lowering.md_homs import NoHom, cases_of, extents_of, hom, pieces_of
from polyloom.scop.lowering.scans import (
    ordered_hom,
    recurrence_hom,
    reduces,
    running_homs,
    selection_hom,
    with_met,
)
from polyloom.scop.lowering.sequential import ParallelDimension, nest
from polyloom.scop.lowering.snapshots import few_elements, few_kept, reading_copy, reading_kept
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.hyperplanes import rows_map
from polyloom.scop.schedule.plan import (
    Block,
    Blocks,
    Group,
    Hyperplane,
    Leaf,
    Plan,
    Sequential,
    row_of,
    statements_of,
    walk_plans,
)
from polyloom.scop.schedule.statement_groups import OrderedUpdate, Recurrence, RunningUpdate, Selection

_DIM = isl.dim_type
FEWEST_POINTS = 3
"""So many single instances make a node together; fewer may become part of the md_homs beside them."""


@dataclass(frozen=True, eq=False)
class Place:
    """Where in the host program a plan stands.

    ``times``: the host loops around, outermost first, with the name of their iterator. ``context``: what is
    known of parameters and host iterators.
    """

    times: tuple[tuple[Hyperplane, str], ...]
    context: isl.Set
    neighbours: Mapping[str, tuple[isl.Set, ...]] = field(default_factory=dict)
    """For each array, the elements that maps at the same place write."""

    def domain(self, statement: ScopStatement) -> isl.Set:
        """Return the instances of a statement that run here, parametric in the host iterators."""
        result = statement.domain
        for plane, name in self.times:
            time = rows_map(result.get_space(), row_of(plane, statement))
            result = result.intersect(bind_range(time, [name]))
        return result.intersect_params(self.context).coalesce()


class Emitter:
    """Makes host nodes; collects the local buffers that they need."""

    def __init__(
        self,
        scop: Scop,
        updates: Mapping[str, Update],
        shapes: Mapping[str, Buffer],
        rewrite: Callable[[ScopStatement], ScopStatement],
        private: Mapping[str, Buffer],
        asked_only: frozenset[str] = frozenset(),
    ) -> None:
        self.scop = scop
        self.rewrite = rewrite
        self.private = private
        self.updates = updates
        self.shapes = shapes
        self.locals: list[Buffer] = []
        self.asked_only = asked_only
        self.used = {*shapes, *parameter_names(scop.context)}

    def nodes(self, plans: Sequence[Plan], place: Place | None = None) -> tuple[HostNode, ...]:
        """Return the host nodes of plans that run one after another."""
        here = place or Place((), self.scop.context)
        here = replace(here, neighbours=self._neighbours(plans, here))
        groups = groupby(plans, key=lambda plan: self._is_point(plan, here))
        return tuple(
            node
            for points, group in groups
            for node in (self._points(list(group), here) if points else self._each(group, here))
        )

    def _each(self, plans: Iterable[Plan], place: Place) -> tuple[HostNode, ...]:
        return tuple(node for plan in plans for node in self._plan(plan, place))

    def _neighbours(self, plans: Sequence[Plan], place: Place) -> dict[str, tuple[isl.Set, ...]]:
        """Return, for each array, the elements that each map among the plans writes."""
        result: dict[str, tuple[isl.Set, ...]] = {}
        for plan in plans:
            if not isinstance(plan, Leaf):
                continue
            target = self.rewrite(plan.statement).target
            stores = target.relation.intersect_domain(place.domain(plan.statement))
            if not target.computed and stores.is_injective():
                result[target.array] = (*result.get(target.array, ()), stores.range())
        return result

    def _beside(self, statement: ScopStatement, domain: isl.Set, place: Place) -> isl.Set | None:
        """Return the elements of maps that write at least what the statement writes."""
        if statement.target.computed:
            return None
        written = statement.target.relation.intersect_domain(domain).range()
        around = [e for e in place.neighbours.get(statement.target.array, ()) if written.is_subset(e)]
        return reduce(isl.Set.union, around) if around else None

    def _is_point(self, plan: Plan, place: Place) -> bool:
        """Whether a plan is one instance of a statement at most."""
        if not isinstance(plan, Leaf):
            return False
        return eliminate(place.domain(plan.statement)).points.dim(_DIM.set) == 0

    def _points(self, plans: Sequence[Plan], place: Place) -> tuple[HostNode, ...]:
        """Return single instances that follow each other as one node."""
        if len(plans) < FEWEST_POINTS:
            return self._each(plans, place)
        statements = [s for plan in plans for s in statements_of(plan)]
        return (self._block(statements, (), place),)

    def _plan(self, plan: Plan, place: Place) -> tuple[HostNode, ...]:
        match plan:
            case Leaf(statement=statement, snapshot=snapshot):
                return self._leaf(statement, snapshot, place)
            case Block(statements=statements, parallel=parallel, order=order):
                return (self._block(statements, parallel, place, order),)
            case Sequential():
                return self._sequential(plan, place)
            case Blocks():
                return self._blocks(plan, place)
            case Group():
                return self._group(plan, place)

    def _leaf(
        self, statement: ScopStatement, snapshot: frozenset[str], place: Place, *, is_case: bool = False
    ) -> tuple[HostNode, ...]:
        update = self.updates.get(statement.root)
        domain = place.domain(statement)
        if domain.is_empty():
            return ()
        if statement.root in self.asked_only:
            planes = () if snapshot else tuple(_own_element_planes(statement, domain))
            return (self._block((statement,), planes, place),)
        stored = self.rewrite(statement)
        is_one = is_case or snapshot or place.times
        some = None if is_one else cases_of(stored, domain, update, place.context)
        if some is not None:
            return (self._by_case(statement, some, place),)
        try:
            parts = (domain,) if snapshot else pieces_of(stored, domain, update)
            made = [
                hom(stored, part, update, place.context, self._beside(stored, part, place)) for part in parts
            ]
        except (NoHom, NoBox):
            return (self._block((statement,), (), place),)
        if len(made) > 1:
            return tuple(made)
        (node,) = made
        copies: list[HostNode] = []
        for array in sorted(snapshot):
            few = few_elements(node, array, {p.name for p in self.scop.parameters})
            if few is not None:
                kept = self._few_kept(node, array, few)
                node = reading_kept(node, few, kept)
                copies.append(kept)
                continue
            copy = self._snapshot(array)
            copies.append(Copy(array, copy))
            node = reading_copy(node, array, copy)
        return (*copies, node)

    def _by_case(self, statement: ScopStatement, some: isl.Set, place: Place) -> HostNode:
        """Return the nodes for some parameters, and others for the rest."""
        condition = CodeBuilder(place.context, {}).condition(some)
        assert condition is not None  # `cases_of` never returns all
        cases = (replace(place, context=c(some)) for c in (place.context.intersect, place.context.subtract))
        then, otherwise = (self._leaf(statement, frozenset(), case, is_case=True) for case in cases)
        return Branch(condition, then, otherwise)

    def _few_kept(self, node: MdHom, array: str, few: View) -> MdHom:
        """Return the map that keeps the elements of a view, with a buffer for them."""
        name = fresh(f"{array}_before", self.used)
        self.used.add(name)
        kept = few_kept(node, few, name, self.shapes[array].type)
        buffer = Buffer(name=name, type=self.shapes[array].type, shape=kept.extents, role=Role.LOCAL)
        self.locals.append(buffer)
        return kept

    def _group(self, plan: Group, place: Place) -> tuple[HostNode, ...]:
        try:
            nodes = self._together(plan, place)
            if any(_scatters(node) for node in nodes):
                raise NoHom("what a scan leaves at its points has to be stored at affine elements")
            return nodes
        except (NoHom, NoBox):
            block = plan.otherwise
            return (self._block(block.statements, block.parallel, place, block.order),)

    def _together(self, plan: Group, place: Place) -> tuple[HostNode, ...]:
        """Return the md_homs of a scan or selection; raises ``NoHom``."""
        form = plan.form
        match form:
            case Selection(moves=moves, best=best):
                domain = place.domain(moves[best])
                stored = replace(form, moves=tuple(self.rewrite(move) for move in moves))
                beside = [self._beside(move, place.domain(move), place) for move in stored.moves]
                return (selection_hom(stored, self.scop, domain, place.context, beside),)
            case RunningUpdate(update=statement, readers=readers):
                self._check_together(statement, readers, place)
                stored_readers = tuple(self.rewrite(reader) for reader in readers)
                found = RunningUpdate(self.rewrite(statement), stored_readers)
                update = self.updates[statement.name]
                return running_homs(found, self.scop, update, place.domain(statement), place.context)
            case OrderedUpdate(statement=statement):
                ordered = replace(form, statement=self.rewrite(statement))
                node = ordered_hom(ordered, self.scop, place.domain(statement), place.context)
                resets = len(form.update.combiner.results) > 1 and reduces(node)
                return (self._with_met(node) if resets else node,)
            case Recurrence(statement=statement):
                found_one = replace(form, statement=self.rewrite(statement))
                return (recurrence_hom(found_one, self.scop, place.domain(statement), place.context),)

    def _check_together(self, update: ScopStatement, readers: Sequence[ScopStatement], place: Place) -> None:
        """Make sure that all run for the same iterations at each step of the host loops; raises ``NoHom``.

        The host loops may visit an iteration of two statements at different times, where no value passes.
        """
        domain = place.domain(update)
        if not all(place.domain(r).set_tuple_name(update.name).is_equal(domain) for r in readers):
            raise NoHom("what a scan stores is stored at another time")

    def _snapshot(self, array: str) -> str:
        return self._beside_of(array, "before", self.shapes[array].type)

    def _beside_of(self, array: str, what: str, kind: ElementType) -> str:
        """Add a local buffer of an array's shape and return its name."""
        name = fresh(f"{array}_{what}", self.used)
        self.used.add(name)
        self.locals.append(replace(self.shapes[array], name=name, type=kind, role=Role.LOCAL))
        return name

    def _with_met(self, node: MdHom) -> MdHom:
        """Return the md_hom of an update beyond whose NaNs nothing counts."""
        (view,) = node.outputs
        if any(not isinstance(i, Index) for i in view.indices):
            raise NoHom("elements that data choose have one value each")
        return with_met(node, self._beside_of(view.buffer, "met", MET))

    def _block(
        self,
        statements: Sequence[ScopStatement],
        parallel: Sequence[Hyperplane],
        place: Place,
        order: isl.UnionMap | None = None,
    ) -> HostNode:
        domains = [place.domain(s) for s in statements]
        if order is None:
            schedule = self._schedule(statements, domains)
        else:
            here = reduce(isl.UnionSet.union, map(isl.UnionSet.from_set, domains))
            schedule = order.intersect_domain(here)
        context, dimensions = place.context, []
        for plane in parallel:
            found = self._dimension(statements, domains, plane, context)
            if found is not None:
                dimension, context = found
                dimensions.append(dimension)
        name = "_".join(s.name for s in statements[:3])
        stored = [self.rewrite(s) for s in statements]
        made = nest(name, stored, schedule, context, dimensions)
        names = {view.buffer for a in made.assignments for view in (a.target, *a.reads)}
        return replace(made, private=tuple(b for n, b in self.private.items() if n in names))

    def _schedule(self, statements: Sequence[ScopStatement], domains: Sequence[isl.Set]) -> isl.UnionMap:
        """Return when the instances run in the source, a piece's when those of its statement do."""
        result = isl.UnionMap.empty(self.scop.schedule.get_space())
        for statement, domain in zip(statements, domains, strict=True):
            whole = isl.UnionSet.from_set(domain.set_tuple_name(statement.root))
            for times in maps_of(self.scop.schedule.intersect_domain(whole)):
                result = result.union(isl.UnionMap.from_map(times.set_tuple_name(_DIM.in_, statement.name)))
        return result

    def _dimension(
        self,
        statements: Sequence[ScopStatement],
        domains: Sequence[isl.Set],
        plane: Hyperplane,
        context: isl.Set,
    ) -> tuple[ParallelDimension, isl.Set] | None:
        """Return a parallel dimension and the context with its iterator as a parameter."""
        pairs = list(zip(statements, domains, strict=True))
        values = [rows_map(d.get_space(), row_of(plane, s)).intersect_domain(d) for s, d in pairs]
        line = reduce(isl.Set.union, (v.range() for v in values)).coalesce()
        try:
            box = straighten(line, context)
        except NoBox:
            return None
        name = fresh(_time_name(statements, plane), {*parameter_names(context), *self.used})
        shift = isl.Map.from_multi_aff(box.coordinates).reverse()
        points = reduce(isl.UnionMap.union, (isl.UnionMap.from_map(v.apply_range(shift)) for v in values))
        known = bind_range(isl.Map.from_range(box.rectangle()), [name])
        known = isl.Set.params(known).intersect_params(context)
        return ParallelDimension(name, extents_of(box)[0], points), known

    def _sequential(self, plan: Sequential, place: Place) -> tuple[HostNode, ...]:
        statements = statements_of(plan)
        values = [
            rows_map(s.domain.get_space(), row_of(plan.time, s)).intersect_domain(place.domain(s))
            for s in statements
        ]
        inner = _block_iterators(plan.body)
        times = (project_out_parameters(v.range(), inner) for v in values)
        line = reduce(isl.Set.union, times).coalesce()
        name = fresh(_time_name(statements, plan.time), {*parameter_names(place.context), *self.used})
        return self._loop(line, name, plan.body, (*place.times, (plan.time, name)), place)

    def _blocks(self, plan: Blocks, place: Place) -> tuple[HostNode, ...]:
        inner = _block_iterators(plan.body)
        points = (project_out_parameters(place.domain(s).params(), inner) for s in statements_of(plan))
        line = _numbers_of(reduce(isl.Set.union, points), plan.iterator).coalesce()
        loops = self._loop(line, plan.iterator, plan.body, place.times, place)
        return tuple(map(_shared, loops)) if plan.parallel else loops

    def _loop(
        self,
        line: isl.Set,
        name: str,
        body: tuple[Plan, ...],
        times: tuple[tuple[Hyperplane, str], ...],
        place: Place,
    ) -> tuple[HostNode, ...]:
        """Return the plans for each point of a line, in increasing order."""
        if line.is_empty():
            return ()
        if line.n_basic_set() > 1:
            line = box_between(elementwise_minimum(line), elementwise_maximum(line)).coalesce()
        steps = line
        point = isl.Map.identity(steps.get_space().map_from_set()).set_tuple_name(_DIM.in_, "P")
        tree = CodeBuilder(place.context, {}).loops(
            isl.UnionMap.from_map(point.intersect_range(steps).intersect_params(place.context))
        )
        inside = bind_range(isl.Map.from_range(steps), [name])
        context = isl.Set.params(inside).intersect_params(place.context)
        return _host_nodes(tree, name, self.nodes(body, Place(times, context)))


def _own_element_planes(statement: ScopStatement, domain: isl.Set) -> Iterator[Hyperplane]:
    """Yield a plane for each iterator in which no two instances that store into one element differ."""
    if statement.target.computed:
        return
    stores = statement.target.relation.intersect_domain(domain)
    between = stores.apply_range(stores.reverse()).deltas()
    size = domain.dim(_DIM.set)
    for k in range(size):
        is_one_point = (
            domain.project_out(_DIM.set, k + 1, size - k - 1).project_out(_DIM.set, 0, k).is_singleton()
        )
        if not is_one_point and between.is_subset(between.fix_val(_DIM.set, k, isl.Val(0))):
            yield {statement.name: tuple(int(j == k) for j in range(size))}


def _shared(node: HostNode) -> HostNode:
    """Return loops over tiles as loops whose iterations may run at once: those that end before a number."""
    match node:
        case Loop(iterator=name, condition=Operation("<", (Name(left), _))) if left == name:
            return replace(node, parallel=True)
        case Loop(iterator=name, condition=Operation("<=", (Name(left), last))) if left == name:
            end = Operation("<", (Name(name), sum_of([(1, last), (1, Number(1))])))
            return replace(node, condition=end, parallel=True)
        case Branch(condition=condition, body=body, otherwise=otherwise):
            return Branch(condition, tuple(map(_shared, body)), tuple(map(_shared, otherwise)))
        case _:
            return node


def _block_iterators(plans: Sequence[Plan]) -> list[str]:
    """Return the iterators of blocks inside plans, which are parameters of the statements' domains."""
    return [p.iterator for p in walk_plans(plans) if isinstance(p, Blocks)]


def _numbers_of(points: isl.Set, parameter: str) -> isl.Set:
    """Return ``{ [t] }``, the values of a parameter at ``points``."""
    line = parametric_point("", (parameter,)).intersect_params(points)
    return project_out_parameters(line, (parameter,))


def _scatters(node: HostNode) -> bool:
    """Whether a scan stores at elements that are no affine function: each would combine what it holds."""
    if not isinstance(node, MdHom) or all(o.order is not Order.PREFIX for o in node.combine):
        return False
    return any(not isinstance(i, Index) for view in node.outputs for i in view.indices)


def _host_nodes(tree: Tree, name: str, body: tuple[HostNode, ...]) -> tuple[HostNode, ...]:
    """Return loops over the points of one dimension as host loops over ``name``."""
    result: list[HostNode] = []
    for node in tree:
        match node:
            case Loop():
                loop = _named(node, name)
                result.append(replace(loop, body=_host_nodes(loop.body, name, body)))
            case Branch(condition=condition, body=then, otherwise=otherwise):
                inner = _host_nodes(then, name, body)
                result.append(Branch(condition, inner, _host_nodes(otherwise, name, body)))
            case Instance(arguments=(Name(name=known),)) if known == name:
                result += body
            case Instance(arguments=(value,)):
                once = Operation("<=", (Name(name), value))
                result.append(Loop(iterator=name, start=value, condition=once, step=Number(1), body=body))
            case _:
                raise AssertionError(node)
    return tuple(result)


def _named(loop: Loop[Part], name: str) -> Loop[Any]:
    """Call the iterator by ``name`` where it is itself the point."""
    if any(i.arguments != (Name(loop.iterator),) for i in leaves_in(loop.body)):
        return loop
    (renamed,) = rename_iterator((loop,), loop.iterator, name)
    assert isinstance(renamed, Loop)
    return renamed


def _time_name(statements: Sequence[ScopStatement], plane: Hyperplane) -> str:
    """Name a hyperplane after the iterator that it is, else ``w`` for wavefront."""
    for statement in statements:
        row = row_of(plane, statement)
        moving = [k for k, c in enumerate(row[: len(statement.iterators)]) if c]
        if len(moving) == 1:
            return statement.iterators[moving[0]]
    return "w"
