"""Maps of records, over the parts of one: all parts at one point, as many results.

    q[i][a] = r[a] * p[i][a]  over n x 3  ->  q[i][0] = r[0] * p[i][0]; ...; q[i][2] = r[2] * p[i][2]  over n

Records are what a row of two, three or four elements in memory is: colours of a pixel, coordinates, the two
parts of a complex number. Vectors run along the records then, and are stored as whole lines; vectors along
the parts would have two to four elements. A sum over the parts of a record becomes its terms, in their order,
as one over a small window does (``windows``).
Rows that are one with the next ones stay as they are: they are longer rows.

Not in the papers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from polyloom.ir.expressions import Expression
from polyloom.ir.host import HostNode, HostProgram, Index, MdHom, View
from polyloom.ir.transform.flatten_dimensions import Buffers, lie_in_rows
from polyloom.ir.transform.fuse_maps import combined_dimensions
from polyloom.ir.transform.records.windows import over_windows
from polyloom.ir.transform.records.written_out import (
    Point,
    can_be_written_out,
    map_without,
    written_out,
)
from polyloom.polyhedra.loops.tree import Number, names_in, with_leaves

LINES = (2, 3, 4)
"""How many elements a record may have."""

MANY = 16
"""Records along which vectors run: as many as a vector has elements, or more."""


def unrolled_records(program: HostProgram) -> HostProgram:
    """Return the program with maps of records over whole records.

    Every element gets the value that it had, by the same operations.
    """
    buffers = {b.name: b for b in program.buffers}

    def change(node: HostNode) -> tuple[HostNode, ...]:
        return (over_records(over_windows(node), buffers) if isinstance(node, MdHom) else node,)

    return replace(program, body=with_leaves(program.body, change))


def over_records(hom: MdHom, buffers: Buffers) -> MdHom:
    """Return a map of whole records; itself where its results are not parts of records."""
    summed = _unrolled_sum(hom, buffers)
    for d in reversed(range(len(summed.extents))):
        if _are_parts(summed, d, buffers):
            return _unrolled(summed, d)
    return hom


def _are_parts(hom: MdHom, d: int, buffers: Buffers) -> bool:
    """Whether a map's results, or what one of its inputs has, are parts of records along a dimension."""
    plain = all(part is None for part in (*hom.initial, *hom.finish))
    if len(hom.extents) < 2 or combined_dimensions(hom) or not plain or not _is_free(hom, d):
        return False
    few = len(hom.outputs) * _points(hom, d) <= max(LINES)
    is_stored = all(_record(hom, view, d, buffers) for view in hom.outputs)
    return few and (is_stored or _are_loaded(hom, d, buffers)) and not lie_in_rows(hom, d, buffers)


def _are_loaded(hom: MdHom, d: int, buffers: Buffers) -> bool:
    """Whether an input has records of all parts along a dimension, and results lie in rows along them."""
    wholes = [_record(hom, view, d, buffers) for view in hom.inputs]
    along = {k for found in wholes if found and found.length == _points(hom, d) for k in found.along}
    rows = [view.indices[-1] for view in hom.outputs if view.indices]
    return any(all(isinstance(i, Index) and abs(i.coefficients[k]) == 1 for i in rows) for k in along)


def _is_free(hom: MdHom, d: int) -> bool:
    """Whether an iterator of few points decides nothing but what is read and where."""
    conditions = [e for e in (hom.guard, hom.written) if e is not None]
    return 1 < _points(hom, d) <= max(LINES) and not any(hom.iterators[d] in names_in(e) for e in conditions)


def _points(hom: MdHom, d: int) -> int:
    """Return the extent of a dimension; 0 where it is no number."""
    extent = hom.extents[d]
    return extent.value if isinstance(extent, Number) else 0


@dataclass(frozen=True)
class _Records:
    """How many elements they have, and the dimensions that name them in turn."""

    length: int
    along: tuple[int, ...]


def _record(hom: MdHom, view: View, d: int, buffers: Buffers) -> _Records | None:
    """Return the records whose parts a dimension names, many of which others name; None: there are none."""
    if not view.indices or not all(isinstance(index, Index) for index in view.indices):
        return None
    *outer, last = view.affine
    if last.coefficients[d] != 1 or any(index.coefficients[d] for index in outer):
        return None
    steps = {k: abs(c) for k, c in last.used if k != d}
    if steps:
        length = min(steps.values())
        is_one = all(c % length == 0 for c in steps.values())
    else:
        extent = buffers[view.buffer].shape[-1]
        length, is_one = (extent.value, True) if isinstance(extent, Number) else (0, False)
        steps = {k: length * abs(c) for k, c in outer[-1].used} if outer else {}
    along = tuple(k for k, step in steps.items() if step == length and not 0 < _points(hom, k) < MANY)
    return _Records(length, along) if is_one and along and length in LINES else None


def _unrolled(hom: MdHom, d: int) -> MdHom:
    """Return a map of all that it gives along a dimension, as results of one point each."""
    inputs: dict[View, int] = {}
    terms, outputs = list[Expression](), list[View]()
    for point in range(_points(hom, d)):
        at = Point({d: point}, hom.inputs, inputs)
        terms += [at.value(term) for term in hom.terms]
        outputs += [at.view(view) for view in hom.outputs]
    return map_without((d,), hom, inputs=inputs, outputs=outputs, terms=terms)


# Sums over the parts of a record


def _unrolled_sum(hom: MdHom, buffers: Buffers) -> MdHom:
    """Return a map of all terms of a reduction over the parts of a record; itself where it is none."""
    d = _summed_dimension(hom, buffers)
    return hom if d is None else written_out(hom)


def _summed_dimension(hom: MdHom, buffers: Buffers) -> int | None:
    """Return the dimension of a reduction over all parts of some records of its inputs; None: it is none."""
    reduced = combined_dimensions(hom)
    if len(reduced) != 1 or not can_be_written_out(hom):
        return None
    (d,) = reduced
    found = [_record(hom, view, d, buffers) for view in hom.inputs]
    has_records = any(record is not None and record.length == _points(hom, d) for record in found)
    return d if has_records and _is_free(hom, d) else None
