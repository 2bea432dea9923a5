"""md_homs at some points of small dimensions, and reductions as maps of all their terms.

    c[i] = sum of a[i + k] over k < 3    ->    c[i] = ((0 + a[i]) + a[i + 1]) + a[i + 2]

Terms are combined in the order of the points, the last dimension first. Not in the papers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import product

from polyloom.ir.expressions import (
    Assign,
    Constant,
    Expression,
    Iterator,
    Local,
    Procedure,
    Read,
    Step,
    walk,
)
from polyloom.ir.host import Combiner, Index, MdHom, Order, View
from polyloom.ir.rebuild import rebuilt
from polyloom.ir.transform.fuse_maps import combined_dimensions
from polyloom.polyhedra.loops.tree import IntExpression, Number, sum_of


class Point:
    """A point of some dimensions: views and scalar functions there, without these.

    ``inputs``: the places of all views that are read, to which those that are read here are added.
    """

    def __init__(self, point: Mapping[int, int], views: Sequence[View], inputs: dict[View, int]) -> None:
        self.point, self.views, self.inputs = point, views, inputs

    def view(self, view: View) -> View:
        """Return which element a view names."""
        indices = (self._index(i) if isinstance(i, Index) else self.value(i) for i in view.indices)
        return View(view.buffer, tuple(indices), view.span)

    def value(self, value: Expression) -> Expression:
        """Return a scalar function, of reads of all views that are found."""
        return rebuilt(value, self._leaf)

    def _index(self, index: Index) -> Index:
        steps = index.coefficients
        moved = sum(steps[d] * at for d, at in self.point.items())
        offset: IntExpression = sum_of([(1, index.offset), (moved, Number(1))])
        return Index(tuple(step for d, step in enumerate(steps) if d not in self.point), offset)

    def _leaf(self, part: Expression) -> Expression | None:
        match part:
            case Read(position=position, type=kind):
                view = self.view(self.views[position])
                return Read(self.inputs.setdefault(view, len(self.inputs)), kind)
            case Iterator(dimension=dimension, type=kind):
                if dimension in self.point:
                    return Constant(self.point[dimension], kind)
                return Iterator(dimension - sum(d < dimension for d in self.point), kind)
            case _:
                return None


def map_without(
    gone: Collection[int],
    hom: MdHom,
    *,
    inputs: Iterable[View],
    outputs: Iterable[View],
    terms: Sequence[Expression],
) -> MdHom:
    """Return a map over the other dimensions, with these views and scalar functions of them."""
    stay = [k for k in range(len(hom.extents)) if k not in gone]
    return replace(
        hom,
        iterators=tuple(hom.iterators[k] for k in stay),
        extents=tuple(hom.extents[k] for k in stay),
        combine=tuple(hom.combine[k] for k in stay),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        terms=tuple(terms),
        initial=(None,) * len(terms),
        finish=(None,) * len(terms),
    )


def can_be_written_out(hom: MdHom) -> bool:
    """Whether an md_hom reduces one term over dimensions of known extents, and keeps others."""
    reduced = combined_dimensions(hom)
    if not 0 < len(reduced) < len(hom.extents) or len(hom.outputs) != 1 or hom.guard is not None:
        return False
    operators = {hom.combine[d] for d in reduced}
    (operator, *others) = operators
    is_reduction = operator.order is Order.POINTWISE and operator.combiner is not None and not others
    is_kept = all(isinstance(index, Index) for index in hom.outputs[0].indices)
    return is_reduction and is_kept and all(isinstance(hom.extents[d], Number) for d in reduced)


def written_out(hom: MdHom) -> MdHom:
    """Return a map of all terms of a reduction that ``can_be_written_out``."""
    reduced = combined_dimensions(hom)
    inputs: dict[View, int] = {}
    ranges = (range(n.value) for d in reduced if isinstance(n := hom.extents[d], Number))
    points = [Point(dict(zip(reduced, at, strict=True)), hom.inputs, inputs) for at in product(*ranges)]
    (term,), (initial,), (end,) = hom.terms, hom.initial, hom.finish
    combiner = hom.combine[reduced[0]].combiner
    assert combiner is not None
    (neutral,) = combiner.neutral
    parts = [point.value(term) for point in points]
    if initial is not None:
        parts.insert(0, points[0].value(initial))
    elif neutral is not None:
        parts.insert(0, Constant(neutral, term.type))
    total = _total(combiner, parts)
    if end is not None:
        total = _with_total(end, len(hom.inputs), total, points[0])
    outputs = map(points[0].view, hom.outputs)
    return map_without(reduced, hom, inputs=inputs, outputs=outputs, terms=[total])


def _total(combiner: Combiner, parts: Sequence[Expression]) -> Expression:
    """Return what an operator makes of values, in steps where its text would have one of them twice."""
    read = Counter(part.position for part in walk(combiner.results[0]) if isinstance(part, Read))
    if max(read.values(), default=0) <= 1:
        return reduce(partial(_combined, combiner), parts)
    total, other = Local("total", parts[0].type), Local("other", parts[0].type)
    steps: list[Step] = [Assign(total, parts[0])]
    for part in parts[1:]:
        steps += [Assign(other, part), Assign(total, _combined(combiner, total, other))]
    return Procedure(tuple(steps), total)


def _combined(combiner: Combiner, left: Expression, right: Expression) -> Expression:
    """Return what an operator of one result makes of two values."""
    both = left, right
    return rebuilt(combiner.results[0], lambda part: both[part.position] if isinstance(part, Read) else None)


def _with_total(end: Expression, position: int, total: Expression, at: Point) -> Expression:
    """Return what is made of a total, with that in place of its read."""

    def leaf(part: Expression) -> Expression | None:
        if isinstance(part, Read) and part.position == position:
            return total
        return at.value(part) if isinstance(part, Read | Iterator) else None

    return rebuilt(end, leaf)
