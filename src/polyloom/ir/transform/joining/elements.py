"""Accesses that never touch one element, whatever the points: by their steps, or by their ranges."""

from __future__ import annotations

from math import gcd

from polyloom.ir.expressions import Expression
from polyloom.ir.host import Index, MdHom, View
from polyloom.polyhedra.loops.tree import Number


def are_apart(x: View, y: View, hom: MdHom) -> bool:
    """Return whether two accesses to one array never touch the same element; ``hom`` has their extents."""
    return any(_apart(p, q, hom) for p, q in zip(x.indices, y.indices, strict=True))


def _apart(p: Index | Expression, q: Index | Expression, hom: MdHom) -> bool:
    """Whether two indices never have one value."""
    if not isinstance(p, Index) or not isinstance(q, Index):
        return False
    if not isinstance(p.offset, Number) or not isinstance(q.offset, Number):
        return False
    step = gcd(*p.coefficients, *q.coefficients)
    between = p.offset.value - q.offset.value
    if between % step if step else between:
        return True
    if not all(isinstance(extent, Number) for extent in hom.extents):
        return False
    (low, high), (least, most) = (_range(index, hom) for index in (p, q))
    return high < least or most < low


def _range(index: Index, hom: MdHom) -> tuple[int, int]:
    ends = [
        c * (e.value - 1)
        for c, e in zip(index.coefficients, hom.extents, strict=True)
        if isinstance(e, Number)
    ]
    offset = index.constant
    return offset + sum(min(0, end) for end in ends), offset + sum(max(0, end) for end in ends)
