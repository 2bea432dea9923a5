"""Md_homs whose subscripts wrap around or stop at an end, in pieces: all but the ends is affine.

    B[i] = A[(i + 1) % n]  for i in 0 .. n - 1   ->   B[i] = A[i + 1]  for i in 0 .. n - 2;   B[n - 1] = A[0]

An affine subscript is a load of whole vectors; others are loads element by element, and a remainder for each.
Pieces are cut along one dimension after another, so that there are two more for each: the ends of an outer
dimension are not cut along inner ones, and keep what is not affine there.

Sizes are numbers here; where they are left open, programs stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from polyloom.ir.expressions import Expression, Iterator, walk
from polyloom.ir.host import HostLeaf, HostNode, HostProgram, Index, MdHom, View
from polyloom.ir.node_names import with_unique_names
from polyloom.mdh.lowering.pieces.lines import Line, lines_of
from polyloom.mdh.lowering.sweeps.members import Member
from polyloom.mdh.schedule.addresses import kept_dimensions, known
from polyloom.polyhedra.loops.tree import Number, with_leaves

LEAST_SHARE = 0.5
"""Of the points along a dimension that lie between the ends: with fewer it is not cut."""


def affine_pieces(program: HostProgram) -> HostProgram:
    """Return the program with md_homs in pieces in which more of their subscripts are affine."""
    body = with_leaves(program.body, _pieces)
    return program if body == program.body else with_unique_names(replace(program, body=body))


def _pieces(node: HostLeaf) -> tuple[HostNode, ...]:
    if not isinstance(node, MdHom) or not _can_be_cut(node):
        return (node,)
    return tuple(_cut(_plainer(node), kept_dimensions(node)))


def _can_be_cut(node: MdHom) -> bool:
    computed = any(not isinstance(index, Index) for view in node.inputs for index in view.indices)
    stores_affine = all(isinstance(index, Index) for view in node.outputs for index in view.indices)
    return computed and stores_affine


def _cut(node: MdHom, dimensions: tuple[int, ...]) -> list[MdHom]:
    """Return a node in pieces along dimensions; each element is stored by one of them, as the node does."""
    if not dimensions:
        return [node]
    d, *others = dimensions
    middle = _middle(node, d)
    if middle is None:
        return _cut(node, tuple(others))
    start, end = middle
    ends = [_part(node, d, 0, start), _part(node, d, end, known(node.extents[d]) or 0)]
    inner = _part(node, d, start, end)
    assert inner is not None
    return [*_cut(inner, tuple(others)), *(piece for piece in ends if piece is not None)]


def _part(node: MdHom, d: int, start: int, end: int) -> MdHom | None:
    """Return a node from a point of a dimension to before another; None where there are none."""
    if start >= end:
        return None
    return _plainer(Member(node=node, dimension=d).strip(Number(start), end - start))


def _middle(node: MdHom, d: int) -> tuple[int, int] | None:
    """Return where most points of a dimension are in which all its subscripts are affine; None: no cut."""
    extent = known(node.extents[d])
    found = [lines for view in node.inputs for index in view.indices if (lines := _lines(node, index, d))]
    if extent is None or not found:
        return None
    starts = sorted({line.start for lines in found for line in lines} | {extent})
    start, end = max(pairwise(starts), key=lambda ends: ends[1] - ends[0])
    return (start, end) if LEAST_SHARE * extent <= end - start < extent else None


def _lines(node: MdHom, index: Index | Expression, d: int) -> list[Line] | None:
    """Return the lines of a computed subscript, if it is a function of this dimension alone."""
    if isinstance(index, Index) or _dimensions(index) != {d}:
        return None
    extent = known(node.extents[d])
    return None if extent is None else lines_of(index, d, extent)


def _dimensions(index: Expression) -> set[int]:
    return {part.dimension for part in walk(index) if isinstance(part, Iterator)}


def _plainer(node: MdHom) -> MdHom:
    """Return a node whose subscripts of one line are affine."""

    def index(of: Index | Expression) -> Index | Expression:
        along = set() if isinstance(of, Index) else _dimensions(of)
        if len(along) != 1:
            return of
        (d,) = along
        lines = _lines(node, of, d)
        if lines is None or len(lines) > 1:
            return of
        slopes = tuple(lines[0].slope if k == d else 0 for k in range(len(node.extents)))
        return Index.of(slopes, lines[0].constant)

    def view(of: View) -> View:
        return replace(of, indices=tuple(map(index, of.indices)))

    return replace(node, inputs=tuple(map(view, node.inputs)))
