"""Local arrays along which windows slide, with another axis last, which is gone through point by point.

    x[c][h][w] over 64 x 58 x 58      y[k][h][w] = sum over c, r, s of W[k][c][r][s] * x[c][h + r][w + s]
    ->
    x[h][w][c] over 58 x 58 x 64      y[h][w][k] = sum over c, r, s of W[k][c][r][s] * x[h + r][w + s][c]

Rows of images get short (14, 7), begin anywhere and are gone through in steps of two; the channels of a point
are a row of whole vectors. All arrays that md_homs touch together change together, or none does. Elements are
computed as before, from the same ones, and arrays of the caller stay as they are. Not in the papers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from polyloom.ir.expressions import Expression
from polyloom.ir.expressions import Iterator as Position
from polyloom.ir.host import Buffer, HostProgram, Index, MdHom, Order, Role, View, uses
from polyloom.ir.rebuild import Leaf, with_leaves
from polyloom.polyhedra.loops.tree import Number

LEAST_CHANNELS = 8
"""How many points an axis must have in the mean of the arrays that windows slide along."""

T = TypeVar("T")

Axes = Mapping[str, int]
"""Which axis of a buffer is to be the last one."""


def with_channels_last(program: HostProgram) -> HostProgram:
    """Return the program with other layouts of its local arrays where windows slide along them."""
    axes = {name: axis for group in _groups(program) for name, axis in _axes(program, group).items()}
    if not axes:
        return program

    def buffer(b: Buffer) -> Buffer:
        return replace(b, shape=_moved(b.shape, axes[b.name])) if b.name in axes else b

    body = (_along(_placed(node, axes), axes) if isinstance(node, MdHom) else node for node in program.body)
    return replace(program, buffers=tuple(map(buffer, program.buffers)), body=tuple(body))


def _groups(program: HostProgram) -> Iterator[list[Buffer]]:
    """Yield the local arrays of several axes, those together that md_homs connect."""
    local = {b.name for b in program.buffers if b.role is Role.LOCAL and len(b.shape) > 2}
    groups: list[set[str]] = []
    for node in program.body:
        touched = set(uses((node,)).all & local)
        for other in [g for g in groups if g & touched]:
            groups.remove(other)
            touched |= other
        groups += [touched] if touched else []
    for group in groups:
        yield [b for b in program.buffers if b.name in group]


def _axes(program: HostProgram, group: Sequence[Buffer]) -> Axes:
    """Return which axis becomes the last one of each array of a group; none where there is no gain."""
    nodes = [node for node in program.body if uses((node,)).all & {b.name for b in group}]
    homs = [node for node in nodes if isinstance(node, MdHom)]
    if len(homs) < len(nodes):
        return {}
    views = _views(homs)
    slid = [b for b in group if any(_slides(hom, v) for hom, v in views[b.name])]
    ranks = {len(b.shape) for b in slid}
    if len(ranks) != 1:
        return {}
    alike = [b for b in group if len(b.shape) in ranks]
    stepped = [k for k in range(max(ranks) - 1) if all(_is_stepped(views[b.name], k) for b in alike)]
    channels = max(stepped, key=lambda k: sum(b.extents[k] for b in slid), default=None)
    if channels is None or sum(b.extents[channels] for b in slid) < LEAST_CHANNELS * len(slid):
        return {}
    return {b.name: channels for b in alike}


def _views(homs: Sequence[MdHom]) -> Mapping[str, list[tuple[MdHom, View]]]:
    """Return the views of each buffer with their md_homs."""
    found = defaultdict[str, list[tuple[MdHom, View]]](list)
    for hom in homs:
        for view in (*hom.inputs, *hom.outputs):
            found[view.buffer].append((hom, view))
    return found


def _slides(hom: MdHom, view: View) -> bool:
    """Whether a row is gone through by a window, or in steps of more than one element.

    ``64 * i + j`` with 64 points j is neither: a row that is cut into pieces, one after another.
    """
    index, whole = view.indices[-1], 1
    if not isinstance(index, Index):
        return False
    for step, d in sorted((abs(c), d) for d, c in enumerate(index.coefficients) if c):
        extent = hom.extents[d]
        if step != whole or not isinstance(extent, Number):
            return True
        whole *= extent.value
    return False


def _is_stepped(views: Sequence[tuple[MdHom, View]], axis: int) -> bool:
    """Whether one dimension alone moves each view along an axis, from element to element, or none."""
    indices = [view.indices[axis] for _, view in views]
    return all(isinstance(i, Index) and sum(map(abs, i.coefficients)) <= 1 for i in indices)


def _moved(items: Sequence[T], axis: int) -> tuple[T, ...]:
    """Return items with one of them last."""
    return (*items[:axis], *items[axis + 1 :], items[axis])


def _placed(hom: MdHom, axes: Axes) -> MdHom:
    """Return an md_hom over arrays with other axes last."""

    def view(found: View) -> View:
        axis = axes.get(found.buffer)
        return found if axis is None else replace(found, indices=_moved(found.indices, axis))

    return replace(hom, inputs=tuple(map(view, hom.inputs)), outputs=tuple(map(view, hom.outputs)))


def _along(hom: MdHom, axes: Collection[str]) -> MdHom:
    """Return an md_hom whose last kept dimension is the one along which its results lie, if axes changed."""
    view = hom.outputs[0]
    index = view.indices[-1] if view.buffer in axes else None
    along = [d for d, c in enumerate(index.coefficients) if c] if isinstance(index, Index) else []
    kept = [d for d, operator in enumerate(hom.combine) if operator.order is Order.CONCATENATE]
    if len(along) != 1 or along[0] not in kept:
        return hom
    (last,) = along
    order = [d for d in range(len(hom.extents)) if d != last]
    order.insert(sum(d != last and d <= kept[-1] for d in order), last)
    return _in_order(hom, order)


def _in_order(hom: MdHom, order: Sequence[int]) -> MdHom:
    """Return an md_hom with its dimensions in another order."""

    def leaf(part: Leaf) -> Expression:
        return Position(order.index(part.dimension), part.type) if isinstance(part, Position) else part

    def value(e: Expression) -> Expression:
        return with_leaves(e, leaf)

    def index(i: Index | Expression) -> Index | Expression:
        return Index(tuple(i.coefficients[d] for d in order), i.offset) if isinstance(i, Index) else value(i)

    def views(found: Sequence[View]) -> tuple[View, ...]:
        return tuple(replace(view, indices=tuple(map(index, view.indices))) for view in found)

    return replace(
        hom,
        iterators=tuple(hom.iterators[d] for d in order),
        extents=tuple(hom.extents[d] for d in order),
        combine=tuple(hom.combine[d] for d in order),
        inputs=views(hom.inputs),
        outputs=views(hom.outputs),
        terms=tuple(map(value, hom.terms)),
        initial=tuple(None if e is None else value(e) for e in hom.initial),
        finish=tuple(None if e is None else value(e) for e in hom.finish),
    )
