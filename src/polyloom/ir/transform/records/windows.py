"""Reductions over small windows in arrays of open sizes, as maps of all their terms.

    d[y][x] = sum of k[i][j] * s[y + i][x + j] over 3 x 3    ->    d[y][x] = k[0][0] * s[y][x] + ...

Of such a map the C compiler makes vectors along rows, and loads each weight once. With gcc 12 a 3 x 3 filter
of floats takes half the time of register tiles of totals, which have rests in both dimensions. Where sizes
are known these tiles are chosen for them. Not in the papers.
"""

from __future__ import annotations

from math import prod

from polyloom.ir.host import Index, MdHom, View
from polyloom.ir.transform.fuse_maps import combined_dimensions
from polyloom.ir.transform.records.written_out import can_be_written_out, written_out
from polyloom.polyhedra.loops.tree import Number

LARGEST = 25
"""Points of a window: gcc itself writes out no more than about so many."""


def over_windows(hom: MdHom) -> MdHom:
    """Return a reduction over windows as a map; itself where it is none, or some other size is known."""
    if not can_be_written_out(hom):
        return hom
    reduced = combined_dimensions(hom)
    extents = [n.value for d in reduced if isinstance(n := hom.extents[d], Number)]
    is_open = not any(isinstance(n, Number) for d, n in enumerate(hom.extents) if d not in reduced)
    is_small = 0 < prod(extents) <= LARGEST
    return written_out(hom) if is_open and is_small and _have_windows(hom, set(reduced)) else hom


def _have_windows(hom: MdHom, reduced: set[int]) -> bool:
    """Whether an input is read in windows: each reduced dimension goes along with a kept one in an index."""
    return any(_moved(view, reduced) == reduced for view in hom.inputs)


def _moved(view: View, reduced: set[int]) -> set[int]:
    """Return the reduced dimensions that move a view along a kept one."""
    found = set[int]()
    for index in view.indices:
        if isinstance(index, Index):
            used = {d for d, _ in index.used}
            found |= used & reduced if used - reduced else set()
    return found
