"""Rows of a ring, folded: a row and its mirror image are one, so that neighbours are neighbours again.

    rows of a ring of eight   0 1 2 3 4 5 6 7      7 is beside 0: no side of a trapezoid is that flat
    folded                    0 1 2 3 3 2 1 0      rows that meet are in one row, or in two beside each other

What is computed at rows of both halves is cut in the middle; of the second half rows go backwards. What may
run at once is computed and proved from sets as for other loops, which know nothing of rings.

Source: Bondhugula et al., Tiling and optimizing time-iterated computations over periodic domains, 2014
(idea).
"""

from __future__ import annotations

from dataclasses import replace

from polyloom.ir.host import HostNode, Index, MdHom
from polyloom.mdh.lowering.sweeps.members import Member
from polyloom.mdh.lowering.time_tiles.sweeps import Row, TimeLoop, sweeps_of, time_loop
from polyloom.polyhedra.loops.tree import Number


def folded_rings(loop: TimeLoop) -> TimeLoop | None:
    """Return a loop with its outermost ring folded; None where there is none.

    Names of md_homs that are cut stay as they are: trapezoids get names of their own.
    """
    rings = [axis for axis in range(len(loop.axes)) if _is_ring(loop, axis)]
    if not rings:
        return None
    axis = max(rings, key=lambda k: loop.from_end[k])
    first, count = loop.span(axis)
    middle = first + (count + 1) // 2
    pairs = zip(loop.homs, loop.axes[axis], strict=True)
    body: tuple[HostNode, ...] = tuple(half for hom, row in pairs for half in _halves(hom, row, middle))
    found = time_loop(replace(loop.loop, body=body))
    if found is None or found.from_end != loop.from_end:
        return None
    along = tuple(_folded(row, first, first + count - 1, middle) for row in found.axes[axis])
    axes = (*found.axes[:axis], along, *found.axes[axis + 1 :])
    steps = replace(found.steps, sweeps=sweeps_of(found.homs, axes))
    return replace(found, axes=axes, steps=steps, folded=frozenset({axis}))


def _is_ring(loop: TimeLoop, axis: int) -> bool:
    """Whether a point reads what is stored more than half of all rows away."""
    _, count = loop.span(axis)
    stored = {view.buffer for hom in loop.homs for view in hom.outputs}
    place = loop.from_end[axis]
    return any(
        2 * abs(_apart(hom, row, view.indices[-1 - place])) > count
        for hom, row in zip(loop.homs, loop.axes[axis], strict=True)
        for view in hom.inputs
        if view.buffer in stored and place < len(view.indices)
    )


def _apart(hom: MdHom, row: Row, index: object) -> int:
    """Return how many rows behind its own a point reads; 0 where that differs from point to point."""
    if not isinstance(index, Index) or not isinstance(index.offset, Number):
        return 0
    moving = [(d, c) for d, c in enumerate(index.coefficients) if c and hom.extents[d] != Number(1)]
    own = row.dimension if row.dimension is not None and hom.extents[row.dimension] != Number(1) else None
    is_beside = moving == ([] if own is None else [(own, 1)])
    return index.offset.value - row.constant if is_beside else 0


def _halves(hom: MdHom, row: Row, middle: int) -> tuple[MdHom, ...]:
    """Return an md_hom in one or two parts: at rows before the middle, and from it on."""
    if row.dimension is None:
        return (hom,)
    extent = hom.extents[row.dimension]
    assert isinstance(extent, Number)
    before = middle - row.constant
    if not 0 < before < extent.value:
        return (hom,)
    member = Member(node=hom, dimension=row.dimension)
    return member.strip(Number(0), before), member.strip(Number(before), extent.value - before)


def _folded(row: Row, first: int, last: int, middle: int) -> Row:
    """Return where the rows of one half are: counted from the first row, or backwards from the last."""
    if row.constant < middle:
        return Row(row.dimension, row.constant - first)
    return Row(row.dimension, last - row.constant, -1)
