"""Host loops of numbers of steps, each of which is md_homs one after another: what their points touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.ir.expressions import Iterator, walk
from polyloom.ir.host import HostNode, Index, MdHom, Order, View, expressions_of
from polyloom.polyhedra.loops.tree import IntExpression, Loop, Name, Number, Operation, names_in, sum_of
from polyloom.polyhedra.time_tiles import Steps, Sweep, Touch


@dataclass(frozen=True)
class Row:
    """In which row along an axis a point of an md_hom is: ``step * iterator[dimension] + constant``.

    ``dimension``: None where all points are in one row. ``step``: 1, or -1 where rows go backwards.
    """

    dimension: int | None
    constant: int
    step: int = 1


@dataclass(frozen=True, kw_only=True)
class TimeLoop:
    """A host loop over ``homs``; ``axes``: for each, the row of each md_hom's points.

    ``from_end``: which axis of the arrays that are stored each of them is, counted from the last one, 0.
    ``folded``: those, by number, of which a row is two rows of the arrays (``rings``).
    """

    loop: Loop[HostNode]
    steps: Steps
    homs: tuple[MdHom, ...]
    axes: tuple[tuple[Row, ...], ...]
    from_end: tuple[int, ...]
    folded: frozenset[int] = frozenset()

    def span(self, axis: int) -> tuple[int, int]:
        """Return the first row along an axis, and how many there are from it to the last."""
        ends = [_ends(hom, row) for hom, row in zip(self.homs, self.axes[axis], strict=True)]
        first = min(start for start, _ in ends)
        return first, max(end for _, end in ends) - first


def _ends(hom: MdHom, row: Row) -> tuple[int, int]:
    extent = Number(1) if row.dimension is None else hom.extents[row.dimension]
    assert isinstance(extent, Number)
    if row.step < 0:
        return row.constant - extent.value + 1, row.constant + 1
    return row.constant, row.constant + extent.value


def time_loop(loop: Loop[HostNode]) -> TimeLoop | None:
    """Return what the steps of a loop do; None where it is no loop over md_homs of known sizes."""
    homs = tuple(node for node in loop.body if isinstance(node, MdHom))
    bounds = _bounds(loop)
    if bounds is None or not homs or len(homs) < len(loop.body) or not all(_is_plain(h, loop) for h in homs):
        return None
    rank = min(len(hom.outputs[0].indices) for hom in homs)
    rows = [tuple(_row(hom, axis) for hom in homs) for axis in range(rank)]
    known = [k for k, along in enumerate(rows) if None not in along]
    axes = [tuple(row for row in rows[k] if row is not None) for k in known]
    moving = [k for k, along in enumerate(axes) if any(row.dimension is not None for row in along)]
    if not moving:
        return None
    chosen = tuple(axes[k] for k in moving)
    steps = Steps(time=loop.iterator, first=bounds[0], count=bounds[1], sweeps=sweeps_of(homs, chosen))
    return TimeLoop(loop=loop, steps=steps, homs=homs, axes=chosen, from_end=tuple(known[k] for k in moving))


def sweeps_of(homs: Sequence[MdHom], axes: Sequence[Sequence[Row]]) -> tuple[Sweep, ...]:
    """Return what the points of md_homs touch, and in which rows along axes they are."""
    return tuple(_sweep(hom, [along[p] for along in axes]) for p, hom in enumerate(homs))


def _bounds(loop: Loop[HostNode]) -> tuple[int, int] | None:
    """Return the first step and how many there are; None where they are no numbers."""
    match loop:
        case Loop(
            start=Number(value=first),
            condition=Operation(
                operator="<" | "<=" as operator, operands=(Name(name=name), Number(value=end))
            ),
            step=Number(value=1),
        ) if name == loop.iterator:
            count = end - first + (operator == "<=")
            return (first, count) if count > 1 else None
    return None


def _is_plain(hom: MdHom, loop: Loop[HostNode]) -> bool:
    """Whether an md_hom has known sizes and affine views, and names no integer but the step."""
    views = (*hom.inputs, *hom.outputs)
    if any(not isinstance(index, Index) for view in views for index in view.indices):
        return False
    integers = [i.offset for v in views for i in v.indices if isinstance(i, Index)]
    named = {name for e in integers for name in names_in(e)} - {loop.iterator}
    parts = (part for e in expressions_of(hom) for part in walk(e))
    return (
        not named
        and loop.iterator not in hom.iterators
        and all(isinstance(extent, Number) and extent.value > 0 for extent in hom.extents)
        and all(o.order in (Order.CONCATENATE, Order.POINTWISE) for o in hom.combine)
        and not any(isinstance(part, Iterator) for part in parts)
    )


def _row(hom: MdHom, axis: int) -> Row | None:
    """Return the rows along an axis of what is stored; None where a point's row is no iterator."""
    found = {_row_of(hom, view, axis) for view in hom.outputs}
    return found.pop() if len(found) == 1 else None


def _row_of(hom: MdHom, view: View, axis: int) -> Row | None:
    if axis >= len(view.indices):
        return None
    index = view.indices[len(view.indices) - 1 - axis]
    if not isinstance(index, Index) or not isinstance(index.offset, Number):
        return None
    moving = [d for d, c in enumerate(index.coefficients) if c]
    if not moving:
        return Row(None, index.offset.value)
    (d, *others) = moving
    kept = hom.combine[d].order is Order.CONCATENATE
    return Row(d, index.offset.value) if kept and not others and index.coefficients[d] == 1 else None


def _sweep(hom: MdHom, rows: Sequence[Row]) -> Sweep:
    touches = [(view, False) for view in hom.inputs] + [(view, True) for view in hom.outputs]
    return Sweep(
        iterators=hom.iterators,
        extents=tuple(extent.value for extent in hom.extents if isinstance(extent, Number)),
        touches=tuple(Touch(v.buffer, _subscripts(hom, v), is_store) for v, is_store in touches),
        rows=tuple(_place(hom, row) for row in rows),
    )


def _subscripts(hom: MdHom, view: View) -> tuple[IntExpression, ...]:
    return tuple(_value(hom, index) for index in view.affine)


def _value(hom: MdHom, index: Index) -> IntExpression:
    moving = zip(index.coefficients, map(Name, hom.iterators), strict=True)
    return sum_of([*moving, (1, index.offset)])


def _place(hom: MdHom, row: Row) -> IntExpression:
    if row.dimension is None:
        return Number(row.constant)
    return sum_of([(row.step, Name(hom.iterators[row.dimension])), (1, Number(row.constant))])
