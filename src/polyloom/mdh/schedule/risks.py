"""Reads that may lie outside of their buffer where a condition does not select them."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.ir.expressions import Expression, Read, Select, children
from polyloom.ir.host import Index, MdHom
from polyloom.ir.rebuild import read_positions
from polyloom.mdh.schedule.addresses import ONE, Buffers
from polyloom.polyhedra.loops.tree import IntExpression, Number, Operation, linear_terms, sum_of


def risky_reads(hom: MdHom, buffers: Buffers, *, written: bool = False) -> frozenset[int]:
    """Return the inputs that may lie outside their buffer at points where a choice does not take them.

    ``written``: results are started and finished at points that are written only.
    """
    found: set[int] = set()
    for e in (*hom.terms, *hom.initial, *hom.finish):
        found |= set() if e is None else set(read_positions(e)) - _certain(e)
    if hom.written is not None and not written:
        found |= {k for e in (*hom.initial, *hom.finish) if e is not None for k in read_positions(e)}
    return frozenset(k for k in found if k < len(hom.inputs) and not exists(hom, k, buffers))


def exists(hom: MdHom, k: int, buffers: Buffers) -> bool:
    """Return whether all points of the rectangle are known to read elements of an input that exist."""
    view = hom.inputs[k]
    pairs = zip(view.indices, buffers[view.buffer].shape, strict=True)
    return all(_index_exists(hom, index, extent) for index, extent in pairs)


def _index_exists(hom: MdHom, index: Index | Expression, extent: IntExpression) -> bool:
    """Whether an index is at least 0, and less than an extent, at the first and the last points."""
    if not isinstance(index, Index):
        return False
    pairs = zip(index.coefficients, hom.extents, strict=True)
    steps = [(coefficient, _last(n)) for coefficient, n in pairs if coefficient]
    least = [(1, index.offset), *(step for step in steps if step[0] < 0)]
    most = [(1, extent), (-1, ONE), (-1, index.offset), *((-c, last) for c, last in steps if c > 0)]
    return _is_natural(least) and _is_natural(most)


def _last(extent: IntExpression) -> IntExpression:
    """Return the last point of a dimension, which has one where anything is read."""
    match extent:
        case Number(value=value):
            return Number(max(value, 1) - 1)
        case Operation(operator="max", operands=(Number(value=0), inner) | (inner, Number(value=0))):
            return _last(inner)
        case _:
            return sum_of([(1, extent), (-1, ONE)])


def _is_natural(terms: Sequence[tuple[int, IntExpression]]) -> bool:
    """Whether a sum is a number of at least 0."""
    rest, constant = linear_terms(terms)
    return not rest and constant >= 0


def _certain(expression: Expression) -> set[int]:
    """Return the inputs that an expression reads at every point."""
    match expression:
        case Read(position=k):
            return {k}
        case Select(condition=c, then=a, otherwise=b):
            return _certain(c) | (_certain(a) & _certain(b))
        case _:
            return {k for child in children(expression) for k in _certain(child)}
