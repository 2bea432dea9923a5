"""One statement, all of whose instances may run in any order, as an md_hom.

Source: md_poly, Sec. 3.2.2, parameters 1-8 of the views and of md_hom. Unlike the paper, updates become
combine operators, and domains that are no boxes get a guard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from polyloom.ir.expressions import Constant, Expression, Read, Select
from polyloom.ir.host import CombineOperator, Combiner, Index, MdHom, Order, View
from polyloom.ir.naming import fresh_all
from polyloom.ir.rebuild import read_positions
from polyloom.polyhedra.binding import parameter_names
from polyloom.polyhedra.elimination import Reduced, eliminate, without_quotients
from polyloom.polyhedra.functions import compose, function_of
from polyloom.polyhedra.loops.affine_expressions import least_of
from polyloom.polyhedra.loops.tree import IntExpression
from polyloom.polyhedra.rectangularise import Box, straighten
from polyloom.scop.dependence.reductions import Update
from polyloom.scop.lowering.digits import digits, pieces, with_remainders
from polyloom.scop.lowering.kept_dimensions import basis_of, undecided
from polyloom.scop.lowering.views import Frame, condition_of
from polyloom.scop.model import ScopAccess, ScopStatement

_DIM = isl.dim_type


class NoHom(Exception):  # a statement that has no form as an md_hom; it becomes a nest
    """The text says why."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shape:
    """The coordinates of an md_hom: ``frame`` of all its dimensions; ``reduced``: those that are reduced.

    ``rectangle``: ``{ [y] }``, all points of the box, where the context holds. ``results``: over the kept
    dimensions, their rectangle, also where there is nothing to combine. ``stored``: over the kept dimensions,
    where results are stored; None: where there is something to combine.
    """

    frame: Frame
    box: Box
    rectangle: isl.Set
    reduced: frozenset[int]
    results: isl.Set
    stored: isl.Set | None = None

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that are not reduced."""
        return tuple(k for k in range(len(self.frame.names)) if k not in self.reduced)


@dataclass(eq=False)
class Inputs:
    """The views that an md_hom reads so far, each once."""

    frame: Frame
    views: list[View] = field(default_factory=list)

    def position(self, view: View) -> int:
        """Return the place of a view, which is added if it is new."""
        if view not in self.views:
            self.views.append(view)
        return self.views.index(view)

    def positions(self, statement: ScopStatement, needed: Sequence[int]) -> dict[int, int]:
        """Return new positions for the reads that are needed, and for those that their indices need."""
        result: dict[int, int] = {}
        for k in _with_indices(statement, needed):
            result[k] = self.position(self.frame.view(statement.reads[k], result))
        return result


def hom(
    statement: ScopStatement,
    domain: isl.Set,
    update: Update | None,
    context: isl.Set,
    neighbours: isl.Set | None = None,
) -> MdHom:
    """Return the md_hom of the instances in ``domain``; raises ``NoHom`` where there is none.

    ``neighbours``: elements of the target that maps beside a reduction write. It writes them too, unchanged
    where it has no term, so that the maps can become part of it.
    """
    free = _free(statement, domain, update)
    if update is not None and update.combiner.commutative and not statement.target.computed:
        free = with_remainders(free, _target_rows(statement.target, free.map, free.points)) or free
    shape = shape_of(statement, free, update, context, neighbours)
    if update is None or not shape.reduced:
        return _map(statement, shape)
    return _reduction(statement, shape, update)


def pieces_of(statement: ScopStatement, domain: isl.Set, update: Update | None) -> tuple[isl.Set, ...]:
    """Return the instances in parts, each of which has an md_hom of its own with a fuller box."""
    if update is None or not update.combiner.commutative or statement.target.computed:
        return (domain,)
    free = _free(statement, domain, update)
    try:
        rows = _target_rows(statement.target, free.map, free.points)
        return pieces(free, rows, _dense(statement, free, update))
    except NoHom:
        return (domain,)


def cases_of(
    statement: ScopStatement, domain: isl.Set, update: Update | None, context: isl.Set
) -> isl.Set | None:
    """Return for which parameters the instances have another md_hom than for others; None where for none."""
    if update is None or statement.target.computed:
        return None
    free = _free(statement, domain, update)
    try:
        rows = _target_rows(statement.target, free.map, free.points)
    except NoHom:
        return None
    return undecided(digits(rows, free.points), free.points, _dense(statement, free, update), context)


def _dense(statement: ScopStatement, free: Reduced, update: Update) -> set[int]:
    """Return the dimensions along which reads that others move too are contiguous."""
    result: set[int] = set()
    for k, access in enumerate(statement.reads):
        if access.computed or k in update.accumulators:
            continue
        try:
            rows = _target_rows(access, free.map, free.points)
        except NoHom:
            continue
        moving = {j for row in rows for j, c in enumerate(row) if c}
        result |= {j for row in rows[-1:] for j, c in enumerate(row) if abs(c) == 1 and len(moving) > 1}
    return result


def _free(statement: ScopStatement, domain: isl.Set, update: Update | None) -> Reduced:
    """Return the instances by the dimensions that do not follow from others."""
    free = eliminate(domain)
    return _without_blocks(statement, free) if update is None or update.combiner.commutative else free


def shape_of(
    statement: ScopStatement,
    free: Reduced,
    update: Update | None,
    context: isl.Set,
    neighbours: isl.Set | None = None,
) -> Shape:
    """Return coordinates in which reduced dimensions are apart from kept ones; ``free``: the instances."""
    coordinates, points = free.map, free.points
    reduced: frozenset[int] = frozenset()
    if update is not None:
        dense = _dense(statement, free, update)
        basis, reduced = _reduced(statement.target, coordinates, points, dense, context)
        if not update.combiner.commutative and not basis.plain_is_equal(_identity(points)):
            raise NoHom("the operands would change places")
        coordinates, points = compose(basis, coordinates), points.preimage_multi_aff(basis)
    box = straighten(points, context)
    if update is not None and _moves(statement.target, compose(box.coordinates, coordinates), box, reduced):
        order = [k for k in range(points.dim(_DIM.set)) if k not in reduced] + sorted(reduced)
        permuted = _permutation(points, order)
        coordinates, points = compose(permuted, coordinates), points.preimage_multi_aff(permuted)
        reduced = frozenset(range(len(order) - len(reduced), len(order)))
        box = straighten(points, context)
    stored = _stored(statement.target, coordinates, points, reduced, neighbours)
    if stored is not None:
        box, stored = _with_room(box, points, stored, reduced, context)
    coordinates = compose(box.coordinates, coordinates)
    names = _names(statement, coordinates, parameter_names(context))
    frame = Frame(coordinates, box.points.intersect_params(context), names)
    rectangle = box.rectangle().intersect_params(context)
    results = _onto_kept(box.rectangle(reduced).intersect_params(context), reduced)
    return Shape(frame=frame, box=box, rectangle=rectangle, reduced=reduced, results=results, stored=stored)


def _without_blocks(statement: ScopStatement, free: Reduced) -> Reduced:
    """Leave out dimensions that nothing uses and the others tell: loops over tiles that somebody wrote."""
    try:
        rows = tuple(_used_rows(statement, free.map, free.points))
    except NoHom:
        return free
    fewer = without_quotients(free.points, rows)
    return free if fewer is None else Reduced(compose(fewer.map, free.map), fewer.points)


def _used_rows(
    statement: ScopStatement, coordinates: isl.MultiAff, points: isl.Set
) -> Iterator[tuple[int, ...]]:
    """Yield the linear parts of all subscripts; values and subscripts from data may divide iterators."""
    if statement.target.computed:
        raise NoHom("data choose the target")
    for access in (statement.target, *statement.reads):
        if not access.computed:
            yield from _target_rows(access, coordinates, points)


def _onto_kept(points: isl.Set, reduced: frozenset[int]) -> isl.Set:
    for k in sorted(reduced, reverse=True):
        points = points.project_out(_DIM.set, k, 1)
    return points


def _stored(
    target: ScopAccess,
    coordinates: isl.MultiAff,
    points: isl.Set,
    reduced: frozenset[int],
    neighbours: isl.Set | None,
) -> isl.Set | None:
    """Return the kept points whose element is among ``neighbours``, and ``points``."""
    if neighbours is None or not reduced or target.computed:
        return None
    kept = everywhere(target).apply_domain(isl.Map.from_multi_aff(coordinates).reverse())
    for k in sorted(reduced, reverse=True):
        kept = kept.project_out(_DIM.in_, k, 1)
    wanted = kept.intersect_range(neighbours).domain()
    return wanted.union(_onto_kept(points, reduced)).coalesce() if wanted.is_bounded() else None


def everywhere(access: ScopAccess) -> isl.Map:
    """Return the access for all instances there could be."""
    return access.relation.gist_domain(access.relation.domain())


def _with_room(
    box: Box, points: isl.Set, stored: isl.Set, reduced: frozenset[int], context: isl.Set
) -> tuple[Box, isl.Set]:
    """Return a box that has room for the stored points too, and those in its coordinates."""
    room = stored
    for k in sorted(reduced):
        room = room.insert_dims(_DIM.set, k, 1)
    if not stored.intersect_params(points.params()).is_subset(_onto_kept(points, reduced)):
        box = _wider(points, room, reduced, context)
    return box, _onto_kept(room.preimage_multi_aff(box.coordinates), reduced)


def _wider(points: isl.Set, room: isl.Set, reduced: frozenset[int], context: isl.Set) -> Box:
    """Return a box for points, and for those of ``room`` on the same lines along the kept dimensions."""
    others = points
    for k in reversed(range(points.dim(_DIM.set))):
        if k not in reduced:
            others = others.project_out(_DIM.set, k, 1)
    for k in range(points.dim(_DIM.set)):
        if k not in reduced:
            others = others.insert_dims(_DIM.set, k, 1)
    box = straighten(points.union(room.intersect(others)).coalesce(), context)
    return replace(box, points=points.preimage_multi_aff(box.coordinates))


def _names(statement: ScopStatement, coordinates: isl.MultiAff, taken: Sequence[str]) -> tuple[str, ...]:
    """Name each coordinate after the iterator that grows with it alone."""
    wanted = []
    for j in range(coordinates.dim(_DIM.in_)):
        moving = [
            statement.iterators[k]
            for k in range(len(statement.iterators))
            if not coordinates.get_at(k).get_coefficient_val(_DIM.in_, j).is_zero()
        ]
        wanted.append(moving[0] if moving else f"i{j}")
    return fresh_all(wanted, taken)


def _reduced(
    target: ScopAccess,
    coordinates: isl.MultiAff,
    points: isl.Set,
    dense: Collection[int],
    context: isl.Set,
) -> tuple[isl.MultiAff, frozenset[int]]:
    """Return a basis ``{ [y] -> [z] }`` in which the target does not depend on the dimensions returned."""
    size = points.dim(_DIM.set)
    identity = _identity(points)
    if target.computed:
        return identity, frozenset(range(size))
    rows = digits(_target_rows(target, coordinates, points), points)
    together = basis_of(rows, points, dense, context)
    if together is not None:
        return together
    return identity, frozenset(k for k in range(size) if not any(row[k] for row in rows))


def _moves(target: ScopAccess, coordinates: isl.MultiAff, box: Box, reduced: frozenset[int]) -> bool:
    """Whether straightening made the target depend on dimensions that are reduced.

    It does where a kept dimension is counted from a bound that a reduced one before it gives: then
    the kept dimensions have to come first.
    """
    if target.computed:
        return False
    return any(row[k] for row in _target_rows(target, coordinates, box.points) for k in reduced)


def _permutation(points: isl.Set, order: Sequence[int]) -> isl.MultiAff:
    """Return ``{ [y] -> [z] }`` with ``z[order[k]] = y[k]``."""
    identity = _identity(points)
    result = identity
    for k, position in enumerate(order):
        result = result.set_aff(position, identity.get_at(k))
    return result


def _identity(points: isl.Set) -> isl.MultiAff:
    return isl.MultiAff.identity(points.get_space().map_from_set())


def _target_rows(
    target: ScopAccess, coordinates: isl.MultiAff, points: isl.Set
) -> tuple[tuple[int, ...], ...]:
    """Return the linear part of the target's subscripts; raises ``NoHom`` where they are not linear."""
    here = target.relation.apply_domain(isl.Map.from_multi_aff(coordinates).reverse())
    functions = function_of(here.intersect_domain(points)).coalesce().gist(points)
    if not functions.isa_multi_aff():
        raise NoHom("the target has several forms")
    function = functions.as_multi_aff()
    rows = []
    for k in range(function.dim(_DIM.out)):
        aff = function.get_at(k)
        values = [aff.get_coefficient_val(_DIM.in_, j) for j in range(function.dim(_DIM.in_))]
        divided = any(
            aff.get_div(d).involves_dims(_DIM.in_, 0, len(values)) for d in range(aff.dim(_DIM.div))
        )
        if divided or not all(v.is_int() for v in values):
            raise NoHom("the target divides iterators")
        rows.append(tuple(int(v.to_python()) for v in values))
    return tuple(rows)


def _map(statement: ScopStatement, shape: Shape) -> MdHom:
    """Return the md_hom of a statement whose instances write different elements; raises ``NoHom``.

    Where a condition of the data decides, every point stores: its new value or the old one. An index that is
    computed from data may be none of the array's then.
    """
    if statement.condition is not None and statement.target.computed:
        raise NoHom("the target may not exist where the condition does not hold")
    inputs = Inputs(shape.frame)
    needed = [*read_positions(statement.value), *_condition_reads(statement)]
    places = inputs.positions(statement, needed)
    term = shape.frame.expression(statement.value, places)
    output = _output(statement, shape, inputs)
    if statement.condition is not None:
        before = Read(inputs.position(output), term.type)
        term = Select(shape.frame.expression(statement.condition, places), term, before)
    guard = guard_of(shape)
    combine = tuple(CombineOperator(Order.CONCATENATE) for _ in shape.frame.names)
    return _hom(statement, shape, tuple(inputs.views), output, term, combine, None, guard, guard)


def _reduction(statement: ScopStatement, shape: Shape, update: Update) -> MdHom:
    """Return the md_hom of an update that combines into what the buffer holds."""
    inputs = Inputs(shape.frame)
    places = inputs.positions(statement, read_positions(update.term))
    term = shape.frame.expression(update.term, places)
    output = _output(statement, shape, inputs)
    start = Read(inputs.position(output), term.type)
    combine = _operators(shape, update.combiner)
    guard = guard_of(shape)
    written = guard if statement.target.computed else written_of(shape)
    return _hom(statement, shape, tuple(inputs.views), output, term, combine, start, guard, written)


def _operators(shape: Shape, combiner: Combiner) -> tuple[CombineOperator, ...]:
    reduce_ = CombineOperator(Order.POINTWISE, combiner)
    keep = CombineOperator(Order.CONCATENATE)
    return tuple(reduce_ if k in shape.reduced else keep for k in range(len(shape.frame.names)))


def _hom(
    statement: ScopStatement,
    shape: Shape,
    inputs: tuple[View, ...],
    output: View,
    term: Expression,
    combine: tuple[CombineOperator, ...],
    initial: Expression | None,
    guard: IntExpression | None,
    written: IntExpression | None,
) -> MdHom:
    return MdHom(
        name=statement.name,
        iterators=shape.frame.names,
        extents=extents_of(shape.box),
        inputs=inputs,
        outputs=(output,),
        terms=(term,),
        combine=combine,
        initial=(initial,),
        finish=(None,),
        guard=guard,
        written=written,
        span=statement.span,
    )


def extents_of(box: Box) -> tuple[IntExpression, ...]:
    """Return the extents over parameters and host iterators."""
    return tuple(least_of(extent) for extent in box.extents)


def _output(statement: ScopStatement, shape: Shape, inputs: Inputs) -> View:
    """Return the output view; what its indices read becomes an input.

    An index that is computed from data counts only where the statement's condition holds. Elsewhere it is 0:
    what is combined there is the neutral element, and the index may be none of the array's.
    """
    needed = [p for _, e in statement.target.computed for p in read_positions(e)]
    condition = statement.condition if statement.target.computed else None
    tested = () if condition is None else read_positions(condition)
    if condition is None or any(statement.reads[p].array == statement.target.array for p in tested):
        return shape.frame.view(statement.target, inputs.positions(statement, needed))
    places = inputs.positions(statement, [*needed, *tested])
    view, holds = shape.frame.view(statement.target, places), shape.frame.expression(condition, places)
    indices = (i if isinstance(i, Index) else _where(holds, i) for i in view.indices)
    return replace(view, indices=tuple(indices))


def _where(holds: Expression, index: Expression) -> Expression:
    return Select(holds, index, Constant(0, index.type))


def guard_of(shape: Shape) -> IntExpression | None:
    """Return which points of the rectangle there are; None where it is all of them."""
    return condition_of(shape.frame.points, shape.rectangle, shape.frame.names)


def written_of(shape: Shape) -> IntExpression | None:
    """Return at which kept points results are stored.

    Where there is nothing to combine the element may not exist: ``for (j = 0; j < m; j++) s[m] += x[j]``.
    """
    points = _onto_kept(shape.frame.points, shape.reduced) if shape.stored is None else shape.stored
    names = [shape.frame.names[k] for k in shape.kept]
    return condition_of(points.coalesce(), shape.results, names)


def _condition_reads(statement: ScopStatement) -> tuple[int, ...]:
    return () if statement.condition is None else read_positions(statement.condition)


def _with_indices(statement: ScopStatement, needed: Sequence[int]) -> list[int]:
    """Return the reads that are needed, after those that their computed indices need."""
    result: list[int] = []

    def add(position: int) -> None:
        for _, index in statement.reads[position].computed:
            for inner in read_positions(index):
                add(inner)
        if position not in result:
            result.append(position)

    for position in needed:
        add(position)
    return result
