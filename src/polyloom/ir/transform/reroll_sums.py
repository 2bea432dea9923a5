"""Sums whose loop somebody has unrolled: the loop as it was before.

    for i from 0 to n:                                           for i from 0 to 4 n:
      s = s + (x[4 i] * y[4 i] + ... + x[4 i + 3] * y[4 i + 3])  ->  s = s + x[i] * y[i]

Reads that lie four apart have no vectors; those of the loop before do.

Sums of floats have another order, so this is not for ``--fp strict``. Source: loop rerolling, the inverse of
unrolling. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyloom.ir import expressions as scalar
from polyloom.ir.expressions import Binary, BinaryOp, Expression, Read, Unary, UnaryOp, walk
from polyloom.ir.host import HostLeaf, HostNode, HostProgram, Index, MdHom, Order, View
from polyloom.ir.rebuild import with_reads
from polyloom.ir.transform.fuse_maps import without_unread_inputs
from polyloom.polyhedra.loops.tree import Number, names_in, product_of, sum_of, with_leaves


def rerolled_sums(program: HostProgram) -> HostProgram:
    """Return the program with sums of alike terms over more points.

    Every element gets the value that it had, but for the order of sums.
    """

    def change(node: HostLeaf) -> tuple[HostNode, ...]:
        made = rerolled(node) if isinstance(node, MdHom) else None
        return (node if made is None else made,)

    return replace(program, body=with_leaves(program.body, change))


def _is_sum(hom: MdHom) -> bool:
    """Whether an md_hom has one result, its terms are added, and no data say where anything lies."""
    if len(hom.outputs) != 1 or not any(_adds(hom)):
        return False
    return all(isinstance(i, Index) for view in (*hom.inputs, *hom.outputs) for i in view.indices)


def _adds(hom: MdHom) -> Iterator[bool]:
    """Yield for each dimension whether its points are added."""
    kind = hom.terms[0].type
    added = (Binary(BinaryOp.ADD, Read(0, kind), Read(1, kind)),)
    for operator in hom.combine:
        combiner = operator.combiner
        is_sum = combiner is not None and combiner.results == added and combiner.associative
        yield operator.order is Order.POINTWISE and is_sum


def rerolled(hom: MdHom) -> MdHom | None:
    """Return a sum over all that is added at its points; None where that is not alike, or not in a row."""
    if not _is_sum(hom):
        return None
    terms = _summands(hom.terms[0])
    shape = with_reads(terms[0], lambda _: 0)
    if len(terms) < 2 or any(with_reads(term, lambda _: 0) != shape for term in terms):
        return None
    if any(isinstance(part, scalar.Iterator) for part in walk(shape)):
        return None
    added = list(_adds(hom))
    if any(o.combiner is not None and not adds for adds, o in zip(added, hom.combine, strict=True)):
        return None
    candidates = (k for k, adds in enumerate(added) if adds)
    return next((made for k in candidates if (made := _along(hom, terms, k)) is not None), None)


def _along(hom: MdHom, terms: Sequence[Expression], dimension: int) -> MdHom | None:
    """Return the sum whose points along a dimension are those of all terms in turn."""
    if hom.guard is not None and hom.iterators[dimension] in names_in(hom.guard):
        return None
    rows = [[hom.inputs[p] for p in _positions(term)] for term in terms]
    first = _first(rows, dimension)
    if first is None:
        return None
    own = [_slower(view, dimension, len(terms)) for view in rows[first]]
    places = iter(range(len(own)))
    term = with_reads(terms[first], lambda _: next(places))

    def moved(part: Expression | None) -> Expression | None:
        return part and with_reads(part, lambda p: p + len(own))

    extents = list(hom.extents)
    extents[dimension] = product_of([Number(len(terms)), hom.extents[dimension]])
    made = replace(
        hom,
        extents=tuple(extents),
        inputs=(*own, *hom.inputs),
        terms=(term,),
        initial=tuple(map(moved, hom.initial)),
        finish=tuple(map(moved, hom.finish)),
    )
    return without_unread_inputs(made)


def _first(rows: Sequence[Sequence[View]], dimension: int) -> int | None:
    """Return which of the terms reads what comes first, if all lie between two points of a dimension."""
    turns = [_turn(rows[0], row, dimension, len(rows)) for row in rows]
    known = [turn for turn in turns if turn is not None]
    if len(known) < len(rows) or sorted(known) != list(range(min(known), min(known) + len(rows))):
        return None
    return turns.index(min(known))


def _turn(first: Sequence[View], other: Sequence[View], dimension: int, count: int) -> int | None:
    """Return how many ``count``-ths of a point later a term reads all that another one reads.

    None where that is no whole number, or not the same of all reads.
    """
    found: int | None = None
    for a, b in zip(first, other, strict=True):
        if a.buffer != b.buffer:
            return None
        for i, j in zip(a.affine, b.affine, strict=True):
            apart = sum_of([(1, j.offset), (-1, i.offset)])
            if i.coefficients != j.coefficients or not isinstance(apart, Number):
                return None
            step, rest = divmod(i.coefficients[dimension], count)
            if rest or (apart.value % step if step else apart.value):
                return None
            turn = apart.value // step if step else found
            if found is not None and turn != found:
                return None
            found = turn
    return found


def _slower(view: View, dimension: int, count: int) -> View:
    """Return a view whose index moves by a ``count``-th at each point of a dimension."""

    def moved(index: Index) -> Index:
        steps = list(index.coefficients)
        steps[dimension] //= count
        return Index(tuple(steps), index.offset)

    return replace(view, indices=tuple(map(moved, view.affine)))


def _positions(term: Expression) -> list[int]:
    return [part.position for part in walk(term) if isinstance(part, Read)]


def _summands(term: Expression) -> list[Expression]:
    """Return what is added up, differences as sums of negated terms."""
    match term:
        case Binary(op=BinaryOp.ADD, left=a, right=b):
            return [*_summands(a), *_summands(b)]
        case Binary(op=BinaryOp.SUBTRACT, left=a, right=b):
            return [*_summands(a), *map(_negated, _summands(b))]
        case Unary(op=UnaryOp.NEGATE, operand=a):
            return list(map(_negated, _summands(a)))
        case _:
            return [term]


def _negated(term: Expression) -> Expression:
    match term:
        case Unary(op=UnaryOp.NEGATE, operand=a):
            return a
        case _:
            return Unary(UnaryOp.NEGATE, term)
