"""Maps whose results lie at even distances, all computed alike: a dimension more, and one result.

Before: ``y[2 i] = x[2 i] * c; y[2 i + 1] = x[2 i + 1] * c``, a map with two results. After: one over (i, j),
``y[2 i + j] = x[2 i + j] * c``, which is one over ``2 n`` points where rows follow each other in memory.

Source: loop rerolling, the inverse of unrolling. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from polyloom.ir.expressions import Expression, Read, walk
from polyloom.ir.host import Index, MdHom, View
from polyloom.ir.naming import fresh
from polyloom.ir.rebuild import with_reads
from polyloom.polyhedra.loops.tree import Number


def rerolled(hom: MdHom) -> MdHom:
    """Return a map with one result over one more dimension; the map itself where results are not alike."""
    count = len(hom.outputs)
    if count < 2 or hom.guard is not None or hom.written is not None:
        return hom
    order = sorted(range(count), key=lambda o: _offsets(hom.outputs[o]))
    terms = [hom.terms[o] for o in order]
    slots = [_slots(term) for term in terms]
    if any(_shape(term) != _shape(terms[0]) for term in terms):
        return hom
    output = _stepped([hom.outputs[o] for o in order])
    inputs = [_stepped([hom.inputs[slot[k]] for slot in slots]) for k in range(len(slots[0]))]
    if output is None or not output.indices or any(view is None for view in inputs):
        return hom
    places = iter(range(len(inputs)))
    return replace(
        hom,
        iterators=(*hom.iterators, fresh("part", hom.iterators)),
        extents=(*hom.extents, Number(count)),
        inputs=tuple(view for view in inputs if view is not None),
        outputs=(output,),
        terms=(with_reads(terms[0], lambda _: next(places)),),
        combine=(*hom.combine, hom.combine[0]),
        initial=(None,),
        finish=(None,),
    )


def _offsets(view: View) -> tuple[int, ...]:
    """Return where a view begins, as far as that is a number."""
    found = (i.offset for i in view.indices if isinstance(i, Index))
    return tuple(o.value for o in found if isinstance(o, Number))


def _slots(term: Expression) -> list[int]:
    return [part.position for part in walk(term) if isinstance(part, Read)]


def _shape(term: Expression) -> Expression:
    """Return a term without saying what it reads."""
    return with_reads(term, lambda _: 0)


def _stepped(views: Sequence[View]) -> View | None:
    """Return the view with one dimension more that is each of these in turn; None where there is none."""
    first, second = views[0], views[1]
    if any(v.buffer != first.buffer or len(v.indices) != len(first.indices) for v in views):
        return None
    found: list[Index] = []
    for k, index in enumerate(first.indices):
        after = second.indices[k]
        if not isinstance(index, Index) or not isinstance(after, Index):
            return None
        if not isinstance(index.offset, Number) or not isinstance(after.offset, Number):
            return None
        step = after.constant - index.constant
        if any(v.indices[k] != _moved(index, n * step) for n, v in enumerate(views)):
            return None
        found.append(Index((*index.coefficients, step), index.offset))
    return View(first.buffer, tuple(found), first.span)


def _moved(index: Index, by: int) -> Index:
    return Index.of(index.coefficients, index.constant + by)
