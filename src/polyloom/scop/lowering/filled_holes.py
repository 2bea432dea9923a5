"""Points that one inequality leaves out of an md_hom are computed like the others, and nothing comes of them.

Before: ``a[i] += f(x[i], x[j])`` over i, j, where ``j >= i + 1 or i >= j + 1``: each point asks.
After: ``a[i] += j != i ? f(x[i], x[j]) : 0`` over the whole rectangle, which runs in vectors.

A map into a local array that nothing else stores to is computed there as well: what it stores was nobody's,
and only points that are left out read it. What such points read must exist, and what they compute must not
trap. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import (
    Binary,
    BinaryOp,
    Compare,
    CompareOp,
    Constant,
    Expression,
    Select,
    may_trap,
    walk,
)
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, Order, Role, View, expressions_of, uses
from polyloom.ir.inequalities import conjunction, conjuncts, inequalities_of
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import (
    Branch,
    IntExpression,
    Loop,
    Number,
    Operation,
    leaves_in,
    sum_of,
)

_PLACE = ElementType.INT64


def with_filled_holes(program: HostProgram) -> HostProgram:
    """Return a program whose md_homs compute the points that an inequality of two integers leaves out."""
    return replace(program, body=_filled(program, program.body))


def _filled(program: HostProgram, nodes: Sequence[HostNode]) -> tuple[HostNode, ...]:
    """Return nodes that run one after another."""
    whole: set[str] = {b.name for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    found: list[HostNode] = []
    for node in nodes:
        match node:
            case Loop(body=body):
                node = replace(node, body=_filled(program, body))
            case Branch(body=body, otherwise=otherwise):
                node = replace(node, body=_filled(program, body), otherwise=_filled(program, otherwise))
            case MdHom():
                node = _without_hole(program, node, whole) or node
                whole |= {view.buffer for view in node.outputs if _covers(program, node, view)}
            case _:
                pass
        found.append(node)
    return tuple(found)


def _without_hole(program: HostProgram, node: MdHom, whole: set[str]) -> MdHom | None:
    """Return an md_hom that computes the points of its hole; None where there is none, or they may not be."""
    conditions = list(conjuncts(node.guard))
    holes = [(c, hole) for c in conditions if (hole := _hole(c, node.iterators)) is not None]
    if len(holes) != 1 or not _may_be_computed(program, node, whole):
        return None
    condition, hole = holes[0]
    guard = conjunction([c for c in conditions if c != condition])
    if all(o.order is Order.CONCATENATE for o in node.combine):
        alone = all(_is_its_own(program, node, view) for view in node.outputs)
        return replace(node, guard=guard, written=guard) if alone and node.written == node.guard else None
    neutral = _neutral(node)
    if neutral is None or condition in conjuncts(node.written):
        return None
    outside = _differ(hole)
    terms = (Select(outside, t, Constant(n, t.type)) for t, n in zip(node.terms, neutral, strict=True))
    return replace(node, guard=guard, terms=tuple(terms))


def _neutral(node: MdHom) -> tuple[float | int, ...] | None:
    """Return what changes nothing, per output; None where dimensions are combined in several ways."""
    combiners = [o.combiner for o in node.combine if o.order is not Order.CONCATENATE]
    pointwise = all(o.order in (Order.CONCATENATE, Order.POINTWISE) for o in node.combine)
    first = combiners[0]
    if not pointwise or first is None or any(c != first for c in combiners):
        return None
    known = tuple(n for n in first.neutral if n is not None)
    return known if len(known) == len(first.neutral) else None


def _hole(condition: IntExpression, iterators: Sequence[str]) -> Index | None:
    """Return what is 0 exactly where ``a >= 1 or -a >= 1`` does not hold; None for another condition."""
    match condition:
        case Operation(operator="or", operands=(left, right)):
            above, below = inequalities_of(left, iterators), inequalities_of(right, iterators)
        case _:
            return None
    if above is None or below is None or len(above) != 1 or len(below) != 1:
        return None
    opposite = tuple(-c for c in below[0].coefficients)
    if above[0].coefficients != opposite or above[0].constant + below[0].constant != -2:
        return None
    return Index.of(above[0].coefficients, above[0].constant + 1)


def _differ(hole: Index) -> Expression:
    """Return the condition that an affine function of the iterators is not 0."""

    def side(sign: int) -> Expression:
        terms: list[Expression] = [
            scalar.Iterator(d, _PLACE) if abs(c) == 1 else scalar.Iterator(d, _PLACE) * abs(c)
            for d, c in enumerate(hole.coefficients)
            if sign * c > 0
        ]
        if sign * hole.constant > 0 or not terms:
            terms.append(Constant(max(0, sign * hole.constant), _PLACE))
        first, *others = terms
        for term in others:
            first = Binary(BinaryOp.ADD, first, term)
        return first

    return Compare(CompareOp.NE, side(1), side(-1))


def _may_be_computed(program: HostProgram, node: MdHom, whole: set[str]) -> bool:
    """Whether each point of the rectangle has the elements that it reads, and cannot trap."""
    if any(map(may_trap, expressions_of(node))):
        return False
    return all(view.buffer in whole and _is_inside(program, node, view) for view in _read(node))


def _read(node: MdHom) -> Iterator[View]:
    """Yield the views that terms read; where a reduction starts and ends, it is at points that there are."""
    positions = {p.position for t in node.terms for p in walk(t) if isinstance(p, scalar.Read)}
    return (node.inputs[p] for p in sorted(positions))


def _is_inside(program: HostProgram, node: MdHom, view: View) -> bool:
    """Whether a view has an element at each point of the rectangle, as far as sums of integers tell."""
    shape = program.buffer(view.buffer).shape
    return len(shape) == len(view.indices) and all(
        isinstance(index, Index) and _reaches(node, index, extent)
        for index, extent in zip(view.indices, shape, strict=True)
    )


def _reaches(node: MdHom, index: Index, extent: IntExpression) -> bool:
    """Whether an index is neither negative nor beyond an extent, wherever there are points."""
    ends = [
        (c, sum_of([(1, e), (-1, Number(1))])) for c, e in zip(index.coefficients, node.extents, strict=True)
    ]
    least = sum_of([(1, index.offset), *((c, last) for c, last in ends if c < 0)])
    greatest = sum_of([(1, index.offset), *((c, last) for c, last in ends if c > 0)])
    room = sum_of([(1, extent), (-1, greatest), (-1, Number(1))])
    return all(isinstance(e, Number) and e.value >= 0 for e in (least, room))


def _is_its_own(program: HostProgram, node: MdHom, view: View) -> bool:
    """Whether a map stores to a local array that has room for all its points, and that it alone stores to."""
    users = [leaf for leaf in leaves_in(program.body) if view.buffer in uses([leaf]).written]
    local = program.buffer(view.buffer).role is Role.LOCAL
    return local and len(users) == 1 and _is_inside(program, node, view) and _is_one_to_one(node, view)


def _is_one_to_one(node: MdHom, view: View) -> bool:
    """Whether each iterator is one of the indices."""
    count = len(node.extents)
    rows = [tuple(map(abs, index.coefficients)) for index in view.affine]
    return all(Index.unit(d, count).coefficients in rows for d in range(count))


def _covers(program: HostProgram, node: MdHom, view: View) -> bool:
    """Whether a map stores every element of an array."""
    maps = all(o.order is Order.CONCATENATE for o in node.combine)
    if not maps or node.guard is not None or node.written is not None:
        return False
    shape = program.buffer(view.buffer).shape
    identity = tuple(Index.unit(k, len(node.extents)) for k in range(len(node.extents)))
    return view.indices == identity and node.extents == shape
