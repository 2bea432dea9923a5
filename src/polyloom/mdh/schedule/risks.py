"""Reads that may lie outside of their buffer where a condition does not select them."""

from __future__ import annotations

from polyloom.ir.expressions import Expression, Read, Select, children
from polyloom.ir.host import Index, MdHom
from polyloom.ir.rebuild import read_positions
from polyloom.mdh.schedule.addresses import Buffers, known


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
    return all(_index_exists(hom, index, known(extent)) for index, extent in pairs)


def _index_exists(hom: MdHom, index: Index | Expression, extent: int | None) -> bool:
    if not isinstance(index, Index) or extent is None:
        return False
    offset, low, high = known(index.offset), 0, 0
    for coefficient, n in zip(index.coefficients, map(known, hom.extents), strict=True):
        if coefficient and n is None:
            return False
        reach = coefficient * (max(n or 1, 1) - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return offset is not None and offset + low >= 0 and offset + high < extent


def _certain(expression: Expression) -> set[int]:
    """Return the inputs that an expression reads at every point."""
    match expression:
        case Read(position=k):
            return {k}
        case Select(condition=c, then=a, otherwise=b):
            return _certain(c) | (_certain(a) & _certain(b))
        case _:
            return {k for child in children(expression) for k in _certain(child)}
