"""Scans and selections as md_homs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import islpy as isl

from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Iterator,
    Read,
    Select,
)
from polyloom.ir.host import CombineOperator, Combiner, Index, MdHom, Order, View
from polyloom.ir.rebuild import Leaf, read_positions, with_leaves
from polyloom.ir.value_ranges import SIGNED
from polyloom.polyhedra.elimination import eliminate
from polyloom.scop.dependence.combiners import NUMBERS, combiner, met, neutral
from polyloom.scop.dependence.nesting import direction
from polyloom.scop.dependence.reductions import Update
from polyloom.scop.lowering.md_homs import (
    Inputs,
    NoHom,
    Shape,
    everywhere,
    extents_of,
    guard_of,
    hom,
    shape_of,
    written_of,
)
from polyloom.scop.lowering.views import Frame
from polyloom.scop.model import Scop, ScopStatement
from polyloom.scop.schedule.statement_groups import (
    STRICT,
    OrderedUpdate,
    Recurrence,
    RunningUpdate,
    Selection,
)

_DIM = isl.dim_type
_OP = {
    CompareOp.GT: BinaryOp.MAXIMUM,
    CompareOp.GE: BinaryOp.MAXIMUM,
    CompareOp.LT: BinaryOp.MINIMUM,
    CompareOp.LE: BinaryOp.MINIMUM,
}


def selection_hom(
    found: Selection,
    scop: Scop,
    domain: isl.Set,
    context: isl.Set,
    neighbours: Sequence[isl.Set | None],
) -> MdHom:
    """Return ``if (x[i] > best) { best = x[i]; place = i; }`` as one md_hom with two results.

    The operator takes the right operand where its ``best`` is better, so ties go to the first point; with
    ``>=`` where it is as good, unless its place tells that it stands for no point. ``neighbours``: for each
    result, its elements that maps beside the selection write (see ``md_homs.hom``).
    """
    best = found.moves[found.best]
    update = Update(_OP[found.op], _selecting(found, None), best.value, frozenset())
    shape = shape_of(best, eliminate(domain), update, context, _common(found, neighbours))
    if not shape.reduced:
        raise NoHom("there is one point for each result: nothing is combined")
    for k in shape.reduced:
        _check_order(scop, best, shape.frame, k)
    inputs = Inputs(shape.frame)
    results = [_result(move, shape, inputs) for move in found.moves]
    operator = _selecting(found, None if found.op in STRICT else _place([term for _, term, _ in results]))
    combine = tuple(
        CombineOperator(Order.POINTWISE, operator)
        if k in shape.reduced
        else CombineOperator(Order.CONCATENATE)
        for k in range(len(shape.frame.names))
    )
    return MdHom(
        name=best.name,
        iterators=shape.frame.names,
        extents=extents_of(shape.box),
        inputs=tuple(inputs.views),
        outputs=tuple(output for output, _, _ in results),
        terms=tuple(term for _, term, _ in results),
        combine=combine,
        initial=tuple(start for _, _, start in results),
        finish=(None,) * len(results),
        guard=guard_of(shape),
        written=written_of(shape),
        span=best.span,
    )


def _common(found: Selection, neighbours: Sequence[isl.Set | None]) -> isl.Set | None:
    """Return the neighbours of the best value, where those of all results belong to the same instances."""
    name, stored = found.moves[found.best].name, []
    for move, elements in zip(found.moves, neighbours, strict=True):
        if elements is None:
            return None
        stored.append(everywhere(move.target).intersect_range(elements).domain().set_tuple_name(name))
    return neighbours[found.best] if all(stored[0].is_equal(s) for s in stored) else None


def _result(move: ScopStatement, shape: Shape, inputs: Inputs) -> tuple[View, Expression, Expression]:
    """Return the output view, the term and the start of one result; raises ``NoHom``."""
    frame = _frame_for(shape.frame, move)
    view = frame.view(move.target, {})
    if any(not isinstance(i, Index) or any(i.coefficients[k] for k in shape.reduced) for i in view.indices):
        raise NoHom("a result depends on the dimensions that are combined")
    places = Inputs(frame, inputs.views).positions(move, read_positions(move.value))
    return view, frame.expression(move.value, places), Read(inputs.position(view), move.value.type)


def ordered_hom(found: OrderedUpdate, scop: Scop, domain: isl.Set, context: isl.Set) -> MdHom:
    """Return an update whose terms combine in their order; of a ``resetting`` one the first value alone."""
    shape = shape_of(found.statement, eliminate(domain), found.update, context)
    for k in shape.reduced:
        _check_order(scop, found.statement, shape.frame, k)
    return hom(found.statement, domain, found.update, context)


def reduces(node: MdHom) -> bool:
    """Whether any dimension of an md_hom is combined into one value."""
    return any(operator.order is Order.POINTWISE for operator in node.combine)


def with_met(node: MdHom, buffer: str) -> MdHom:
    """Return the md_hom of a ``resetting`` update with its second value, which goes to ``buffer``.

    ``buffer`` has the shape of the buffer that the update writes.
    """
    (view,), (term,), (start,) = node.outputs, node.terms, node.initial
    return replace(
        node,
        outputs=(view, View(buffer, view.indices)),
        terms=(term, met(term)),
        initial=(start, NUMBERS),
        finish=(None, None),
    )


def _selecting(found: Selection, place: int | None) -> Combiner:
    """Return the operator; ``place``: the result that tells a point from what stands for none."""
    count = len(found.moves)
    types = [move.value.type for move in found.moves]
    chosen: Expression = Compare(
        found.op, Read(count + found.best, types[found.best]), Read(found.best, types[found.best])
    )
    neutrals = [neutral(_OP[found.op], t) if k == found.best else 0 for k, t in enumerate(types)]
    if place is not None:
        none = Constant(int(types[place].lowest), types[place])
        chosen = Binary(BinaryOp.AND, chosen, Compare(CompareOp.NE, Read(count + place, none.type), none))
        neutrals[place] = none.value
    results = tuple(Select(chosen, Read(count + k, t), Read(k, t)) for k, t in enumerate(types))
    name = "argmax" if _OP[found.op] is BinaryOp.MAXIMUM else "argmin"
    return Combiner(name=name, results=results, neutral=tuple(neutrals), commutative=False)


def _place(terms: Sequence[Expression]) -> int:
    """Return a result whose terms are never the least integer of their type; raises ``NoHom``."""
    found = next((k for k, term in enumerate(terms) if _is_place(term)), None)
    if found is None:
        raise NoHom("nothing tells the last one of equal values from none")
    return found


def _is_place(term: Expression) -> bool:
    """Whether a term is an iterator, which begins at 0, less a small number at most."""
    match term:
        case Iterator(type=kind):
            return kind in SIGNED
        case Binary(op=BinaryOp.ADD, left=Iterator(type=kind), right=Constant(value=value)):
            return kind in SIGNED and value > -_SMALL
        case Binary(op=BinaryOp.SUBTRACT, left=Iterator(type=kind), right=Constant(value=value)):
            return kind in SIGNED and value < _SMALL
        case _:
            return False


_SMALL = 100
"""Less than any type of signed integers has below 0."""


def running_homs(
    found: RunningUpdate, scop: Scop, update: Update, domain: isl.Set, context: isl.Set
) -> tuple[MdHom, ...]:
    """Return ``s += x[i]; y[i] = s`` as a scan into ``y``, and the sum that ``s`` ends with."""
    shape = shape_of(found.update, eliminate(domain), update, context)
    if len(shape.reduced) != 1:
        raise NoHom("a scan has one dimension")
    (dimension,) = shape.reduced
    _check_order(scop, found.update, shape.frame, dimension)
    scans = [_scan(found.update, reader, shape, update, dimension) for reader in found.readers]
    return (*scans, hom(found.update, domain, update, context))


def _scan(
    statement: ScopStatement, reader: ScopStatement, shape: Shape, update: Update, dimension: int
) -> MdHom:
    inputs = Inputs(shape.frame)
    places = inputs.positions(statement, read_positions(update.term))
    term = shape.frame.expression(update.term, places)
    start = Read(inputs.position(shape.frame.view(statement.target, {})), term.type)
    frame = _frame_for(shape.frame, reader)
    array = statement.target.array
    needed = [p for p in read_positions(reader.value) if reader.reads[p].array != array]
    there = Inputs(frame, inputs.views).positions(reader, needed)
    held = {p: _HELD for p in read_positions(reader.value) if reader.reads[p].array == array}
    value = _with_held(frame.expression(reader.value, {**there, **held}), len(inputs.views))
    target = frame.view(reader.target, {})
    operator = update.combiner
    made = _prefix(reader, shape, dimension, operator, tuple(inputs.views), target, term, start)
    plain = isinstance(value, Read) and value.position == len(inputs.views)
    return made if plain else replace(made, finish=(value,))


_HELD = -1
"""The position of the combined value until the number of inputs is known."""


def _with_held(value: Expression, position: int) -> Expression:
    def leaf(part: Leaf) -> Expression:
        return Read(position, part.type) if isinstance(part, Read) and part.position == _HELD else part

    return with_leaves(value, leaf)


def recurrence_hom(found: Recurrence, scop: Scop, domain: isl.Set, context: isl.Set) -> MdHom:
    """Return ``y[i] = y[i - 1] + x[i]`` as a scan that starts from the element before the first."""
    statement = found.statement
    shape = shape_of(statement, eliminate(domain), None, context)
    dimension = _coordinate(shape.frame, found.dimension)
    _check_order(scop, statement, shape.frame, dimension)
    _check_from_zero(shape.frame.points, dimension)
    inputs = Inputs(shape.frame)
    places = inputs.positions(statement, read_positions(found.term))
    term = shape.frame.expression(found.term, places)
    first = _at_zero(shape.frame, dimension)
    start = Read(inputs.position(first.view(statement.reads[found.previous], {})), term.type)
    target = shape.frame.view(statement.target, {})
    operator = combiner(found.op, term.type)
    return _prefix(statement, shape, dimension, operator, tuple(inputs.views), target, term, start)


def _prefix(
    statement: ScopStatement,
    shape: Shape,
    dimension: int,
    operator: Combiner,
    inputs: tuple[View, ...],
    target: View,
    term: Expression,
    start: Expression,
) -> MdHom:
    guard = guard_of(shape)
    combine = tuple(
        CombineOperator(Order.PREFIX, operator) if k == dimension else CombineOperator(Order.CONCATENATE)
        for k in range(len(shape.frame.names))
    )
    return MdHom(
        name=statement.name,
        iterators=shape.frame.names,
        extents=extents_of(shape.box),
        inputs=inputs,
        outputs=(target,),
        terms=(term,),
        combine=combine,
        initial=(start,),
        finish=(None,),
        guard=guard,
        written=guard,
        span=statement.span,
    )


def _frame_for(frame: Frame, statement: ScopStatement) -> Frame:
    """Return the same coordinates for a statement that runs for the same iterations."""
    coordinates = frame.coordinates.set_tuple_name(_DIM.out, statement.name)
    return replace(frame, coordinates=coordinates)


def _check_order(scop: Scop, statement: ScopStatement, frame: Frame, dimension: int) -> None:
    """Make sure that a coordinate grows in the order of the source; raises ``NoHom``.

    The outermost loop that it moves decides: along a diagonal the inner one may count against it.
    """
    outs = range(frame.coordinates.dim(_DIM.out))
    moved = ((k, frame.coordinates.get_at(k).get_coefficient_val(_DIM.in_, dimension)) for k in outs)
    first = next(((k, value) for k, value in moved if not value.is_zero()), None)
    if first is not None and first[1].is_pos() != (direction(scop, statement, first[0]) > 0):
        raise NoHom("the loop counts downwards")


def _coordinate(frame: Frame, k: int) -> int:
    """Return the coordinate that moves iterator number k, and it alone; raises ``NoHom``."""
    outs = range(frame.coordinates.dim(_DIM.out))
    for dimension in range(len(frame.names)):
        moved = [frame.coordinates.get_at(j).get_coefficient_val(_DIM.in_, dimension) for j in outs]
        if moved[k].is_one() and all(v.is_zero() for j, v in enumerate(moved) if j != k):
            return dimension
    raise NoHom("no coordinate is the loop's iterator")


def _check_from_zero(points: isl.Set, dimension: int) -> None:
    """Make sure that every line along a dimension begins at 0 and has no gaps; raises ``NoHom``."""
    later = points.intersect(points.lower_bound_val(_DIM.set, dimension, isl.Val(1)))
    back = isl.MultiAff.identity(points.get_space().map_from_set())
    step = back.set_aff(dimension, back.get_at(dimension).add_constant_val(isl.Val(1)))
    if not later.preimage_multi_aff(step).is_subset(points):
        raise NoHom("the lines begin at different places")


def _at_zero(frame: Frame, dimension: int) -> Frame:
    """Return the coordinates at the first point of a dimension."""
    first = isl.MultiAff.identity(frame.points.get_space().map_from_set())
    zero = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(frame.points.get_space()))
    first = first.set_aff(dimension, zero)
    coordinates = frame.coordinates.pullback_multi_aff(first)
    return replace(frame, coordinates=coordinates)
