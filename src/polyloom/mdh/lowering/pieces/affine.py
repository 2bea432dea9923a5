"""Md_homs whose subscripts wrap around or stop at an end, in pieces: all but the ends is affine.

    B[i] = A[(i + 1) % n]  for i in 0 .. n - 1   ->   B[i] = A[i + 1]  for i in 0 .. n - 2;   B[n - 1] = A[0]

An affine subscript is a load of whole vectors; others are loads element by element, and a remainder for each.
Pieces are cut along one dimension after another. The ends are cut until all of them is affine, so that loops
over time may have tiles, where not too many pieces come of it: nine of a plane whose points need the next
ones on each side. Where there would be more, the ends stay as they are: 27 of three dimensions.

Sizes are numbers here; where they are left open, programs stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

from polyloom.ir.expressions import Expression, Iterator, walk
from polyloom.ir.host import HostLeaf, HostNode, HostProgram, Index, MdHom, View
from polyloom.ir.node_names import with_unique_names
from polyloom.mdh.lowering.pieces.lines import Line, lines_of
from polyloom.mdh.lowering.sweeps.members import Member
from polyloom.mdh.schedule.addresses import kept_dimensions, known
from polyloom.polyhedra.loops.tree import Number, with_leaves

MOST_PIECES = 16
"""Of an md_hom: where all is affine in more of them only, the middle alone is cut out. Each is compiled."""

LEAST_SHARE = 0.5
"""Of the points along a dimension that lie between the ends: with fewer it is not cut."""


def affine_pieces(program: HostProgram) -> HostProgram:
    """Return the program with md_homs in pieces in which more of their subscripts are affine."""
    body = with_leaves(program.body, _pieces)
    return program if body == program.body else with_unique_names(replace(program, body=body))


def _pieces(node: HostLeaf) -> tuple[HostNode, ...]:
    if not isinstance(node, MdHom) or not _can_be_cut(node):
        return (node,)
    plain, along = _plainer(node), kept_dimensions(node)
    if all(_middle(plain, d) is None for d in along):
        return (plain,)
    count = prod(max(1, len(_starts(plain, d)) - 1) for d in along)
    return tuple(_whole(plain, along) if count <= MOST_PIECES else _middle_cut_out(plain, along))


def _can_be_cut(node: MdHom) -> bool:
    computed = any(not isinstance(index, Index) for view in node.inputs for index in view.indices)
    stores_affine = all(isinstance(index, Index) for view in node.outputs for index in view.indices)
    return computed and stores_affine


def _whole(node: MdHom, dimensions: tuple[int, ...]) -> list[MdHom]:
    """Return a node in pieces that are affine along dimensions; each element is stored by one of them."""
    if not dimensions:
        return [node]
    d, *others = dimensions
    parts = [part for s, t in pairwise(_starts(node, d)) if (part := _part(node, d, s, t)) is not None]
    return [piece for part in parts or [node] for piece in _whole(part, tuple(others))]


def _middle_cut_out(node: MdHom, dimensions: tuple[int, ...]) -> list[MdHom]:
    """Return a node in its middle, which is affine, and its ends; each element is stored by one of them."""
    if not dimensions:
        return [node]
    d, *others = dimensions
    middle = _middle(node, d)
    if middle is None:
        return _middle_cut_out(node, tuple(others))
    start, end = middle
    places = (start, end), (0, start), (end, known(node.extents[d]) or 0)
    inner, *ends = [part for s, t in places if (part := _part(node, d, s, t)) is not None]
    return [*_middle_cut_out(inner, tuple(others)), *ends]


def _part(node: MdHom, d: int, start: int, end: int) -> MdHom | None:
    """Return a node from a point of a dimension to before another; None where there are none."""
    if start >= end:
        return None
    return _plainer(Member(node=node, dimension=d).strip(Number(start), end - start))


def _starts(node: MdHom, d: int) -> list[int]:
    """Return where all subscripts of a dimension alone go on as other lines, and its end; none: no lines."""
    extent = known(node.extents[d])
    found = [lines for view in node.inputs for index in view.indices if (lines := _lines(node, index, d))]
    if extent is None or not found:
        return []
    return sorted({line.start for lines in found for line in lines} | {extent})


def _middle(node: MdHom, d: int) -> tuple[int, int] | None:
    """Return where most points of a dimension are in which all its subscripts are affine; None: no cut."""
    starts = _starts(node, d)
    if len(starts) < 3:
        return None
    start, end = max(pairwise(starts), key=lambda ends: ends[1] - ends[0])
    return (start, end) if LEAST_SHARE * starts[-1] <= end - start else None


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
