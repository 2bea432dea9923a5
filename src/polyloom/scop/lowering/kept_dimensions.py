"""Which dimensions of a sum become those of its target, where several move an element together.

``y[i + k] += x[i] * w[k]`` is a sum over ``k`` for each ``u = i + k``, in a box ``u, k``, or one over ``i``,
in a box ``u, i``. An element has as many terms as the narrower of ``i`` and ``k`` has values; if the wider
one is summed over, the box is nearly empty. So the widest dimension is kept. Of dimensions about as wide, one
is kept along which reads are contiguous: ``d[i + j] += a[i][j]`` reads ``a[i][u - i]``.

Not in the papers, whose targets have one iterator in each subscript.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from itertools import combinations
from math import inf

import islpy as isl

from polyloom.polyhedra.functions import linear
from polyloom.polyhedra.lattice import Matrix, column_echelon
from polyloom.polyhedra.rectangularise import NoBox, straighten

_DIM = isl.dim_type
Sides = tuple[tuple[isl.Aff, ...], ...]
"""For each dimension, functions of the parameters whose least is its side."""

CONTIGUOUS_GAIN = 8.0
"""So many times wider a dimension has to be than one along which reads are contiguous, to be kept for it."""


def basis_of(
    rows: Matrix, points: isl.Set, dense: Collection[int], context: isl.Set
) -> tuple[isl.MultiAff, frozenset[int]] | None:
    """Return a basis ``{ [y] -> [z] }`` in which ``rows`` do not depend on the dimensions returned.

    ``points``: ``{ [z] }``, bounded; ``dense``: dimensions along which reads are contiguous, which never run
    backwards. None where no two dimensions move an element together.
    """
    size = points.dim(_DIM.set)
    rank = len(column_echelon(rows, size).pivots)
    if rank == len(_moving(rows)):
        return None
    order = _first_kept(points, dense, context)
    echelon = column_echelon(tuple(tuple(row[k] for k in order) for row in rows), size)
    transform = [echelon.transform[order.index(k)] for k in range(size)]
    backwards = {j for j in range(rank) if any(transform[k][j] < 0 for k in dense)}
    forwards = [[-c if j in backwards else c for j, c in enumerate(row)] for row in transform]
    return linear(points.get_space(), forwards), frozenset(range(rank, size))


def undecided(rows: Matrix, points: isl.Set, dense: Collection[int], context: isl.Set) -> isl.Set | None:
    """Return for which parameters another dimension has to be kept than for others; None where for none.

    The set is one of parameters; some of those of ``points`` are in it, and some are not. Points in several
    pieces have one form.
    """
    is_plain = len(column_echelon(rows, points.dim(_DIM.set)).pivots) == len(_moving(rows))
    if is_plain or points.n_basic_set() > 1:
        return None
    sides, known = _sides(points, context), context.intersect(points.params())
    if sides is None:
        return None
    for row in rows:
        for k, other in combinations([k for k, c in enumerate(row) if c], 2):
            open_ = _greatest(sides, k) == _greatest(sides, other) == inf
            wider = _wider(sides, k, other).intersect(known)
            same = open_ and (k in dense) == (other in dense)
            if same and not wider.is_empty() and not known.is_subset(wider):
                return wider.gist(known)
    return None


def _first_kept(points: isl.Set, dense: Collection[int], context: isl.Set) -> list[int]:
    """Return the dimensions, first those that are kept rather than others."""
    sides, size = _sides(points, context), points.dim(_DIM.set)
    known = isl.Set.from_basic_set(context.simple_hull())
    if sides is None:
        return list(range(size))

    def rank(k: int) -> tuple[float, bool, int, int]:
        gain = CONTIGUOUS_GAIN if k in dense else 1.0
        never_wider = sum(known.is_subset(_wider(sides, k, other)) for other in range(size))
        return (-gain * _greatest(sides, k), k not in dense, -never_wider, k)

    return sorted(range(size), key=rank)


def _sides(points: isl.Set, context: isl.Set) -> Sides | None:
    """Return the sides of a box around points, from their constraints alone; None without bounds.

    isl may take minutes for the greatest points themselves.
    """
    try:
        return straighten(points, context).extents
    except NoBox:
        return None


def _greatest(sides: Sides, k: int) -> float:
    """Return the greatest side, whatever the parameters are; infinite where there is none."""
    return min((int(a.get_constant_val().to_python()) for a in sides[k] if a.is_cst()), default=inf)


def _wider(sides: Sides, k: int, other: int) -> isl.Set:
    """Return the parameters for which dimension ``k`` is at least as wide as the other."""
    each = (reduce(isl.Set.union, (a.ge_set(b) for b in sides[other])) for a in sides[k])
    return reduce(isl.Set.intersect, each).params()


def _moving(rows: Matrix) -> list[int]:
    return [k for k, column in enumerate(zip(*rows, strict=True)) if any(column)]
