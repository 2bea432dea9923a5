"""What a map has to read before it is overwritten: a copy of the array, or of the few elements that are read.

``a[i] = a[n / 2] + b[i]`` keeps one element, ``p[i][j] = p[i][j] + p[k][j]`` one row.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce

from polyloom.ir.expressions import Read
from polyloom.ir.host import CombineOperator, Index, MdHom, Order, View
from polyloom.ir.types import ElementType
from polyloom.polyhedra.loops.tree import Number, Operation, names_in


def few_elements(node: MdHom, array: str, parameters: Collection[str]) -> View | None:
    """Return the view of an array, beside what a map writes, that is the same along some dimension.

    None where there is no such view alone, or how many elements it has changes from step to step.
    """
    views = {v for v in node.inputs if v.buffer == array and v != node.outputs[0]}
    if (
        len(views) != 1
        or node.guard is not None
        or any(o.order is not Order.CONCATENATE for o in node.combine)
    ):
        return None
    (view,) = views
    if not all(isinstance(index, Index) for index in view.indices):
        return None
    along = _dimensions(view)
    if any(not names_in(node.extents[d]) <= set(parameters) for d in along):
        return None
    return view if len(along) < len(node.extents) else None


def _dimensions(view: View) -> list[int]:
    """Return the dimensions that a view depends on, in order."""
    moved = (k for i in view.indices if isinstance(i, Index) for k, c in enumerate(i.coefficients) if c)
    return sorted(set(moved))


def reading_kept(node: MdHom, few: View, kept: MdHom) -> MdHom:
    """Let an md_hom read the elements of a view where a map before it has kept them."""
    units = tuple(Index.unit(d, len(node.extents)) for d in _dimensions(few))
    view = View(kept.outputs[0].buffer, units, few.span)
    return replace(node, inputs=tuple(view if v == few else v for v in node.inputs))


def few_kept(node: MdHom, few: View, name: str, kind: ElementType) -> MdHom:
    """Return the map that stores the elements of a view, where the md_hom has a point that reads them."""
    along = _dimensions(few)
    others = [extent for d, extent in enumerate(node.extents) if d not in along]
    guard = reduce(
        lambda a, b: Operation("and", (a, b)), (Operation("<", (Number(0), extent)) for extent in others)
    )
    indices = tuple(
        Index(tuple(i.coefficients[d] for d in along), i.offset) for i in few.indices if isinstance(i, Index)
    )
    return MdHom(
        name=f"{node.name}_before",
        iterators=tuple(node.iterators[d] for d in along),
        extents=tuple(node.extents[d] for d in along),
        inputs=(View(few.buffer, indices),),
        outputs=(View(name, tuple(Index.unit(k, len(along)) for k in range(len(along)))),),
        terms=(Read(0, kind),),
        combine=(CombineOperator(Order.CONCATENATE),) * len(along),
        initial=(None,),
        finish=(None,),
        guard=guard,
        span=node.span,
    )


def reading_copy(node: MdHom, array: str, copy: str) -> MdHom:
    """Let an md_hom read from the copy, but what it starts from and what it keeps from the array."""
    own = node.outputs[0]
    inputs = tuple(
        View(copy, v.indices, v.span) if v.buffer == array and v != own else v for v in node.inputs
    )
    return replace(node, inputs=inputs)
