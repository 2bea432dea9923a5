"""Which dimensions of a sum become those of its target, where several move an element together.

``y[i + k] += x[i] * w[k]`` is a sum over ``k`` for each ``u = i + k``, in a box ``u, k``, or one over ``i``,
in a box ``u, i``. An element has as many terms as the narrower of ``i`` and ``k`` has values; if the wider
one is summed over, the box is nearly empty. So the widest dimension is kept. Of dimensions about as wide, one
is kept along which reads are contiguous: ``d[i + j] += a[i][j]`` reads ``a[i][u - i]``.

Not in the papers, whose targets have one iterator in each subscript.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from math import inf

import islpy as isl

from polyloom.polyhedra.bounds import (
    elementwise_maximum,
    elementwise_minimum,
    extent_between,
    greatest_coordinate,
)
from polyloom.polyhedra.functions import linear
from polyloom.polyhedra.lattice import Matrix, column_echelon

_DIM = isl.dim_type
CONTIGUOUS_GAIN = 8.0
"""So many times wider a dimension has to be than one along which reads are contiguous, to be kept for it."""


def basis_of(
    rows: Matrix, points: isl.Set, dense: Collection[int]
) -> tuple[isl.MultiAff, frozenset[int]] | None:
    """Return a basis ``{ [y] -> [z] }`` in which ``rows`` do not depend on the dimensions returned.

    ``points``: ``{ [z] }``, bounded; ``dense``: dimensions along which reads are contiguous, which never run
    backwards. None where no two dimensions move an element together.
    """
    size = points.dim(_DIM.set)
    rank = len(column_echelon(rows, size).pivots)
    if rank == len(_moving(rows)):
        return None
    order = _first_kept(points, dense)
    echelon = column_echelon(tuple(tuple(row[k] for k in order) for row in rows), size)
    transform = [echelon.transform[order.index(k)] for k in range(size)]
    backwards = {j for j in range(rank) if any(transform[k][j] < 0 for k in dense)}
    forwards = [[-c if j in backwards else c for j, c in enumerate(row)] for row in transform]
    return linear(points.get_space(), forwards), frozenset(range(rank, size))


def undecided(rows: Matrix, points: isl.Set, dense: Collection[int]) -> isl.Set | None:
    """Return for which parameters another dimension has to be kept than for others; None where for none.

    The set is one of parameters; some of those of ``points`` are in it, and some are not.
    """
    if len(column_echelon(rows, points.dim(_DIM.set)).pivots) == len(_moving(rows)):
        return None
    sides, known = _sides(points), points.params()
    for row in rows:
        for k, other in combinations([k for k, c in enumerate(row) if c], 2):
            open_ = _greatest(sides, k) == _greatest(sides, other) == inf
            wider = _wider(sides, k, other).intersect(known)
            same = open_ and (k in dense) == (other in dense)
            if same and not wider.is_empty() and not known.is_subset(wider):
                return wider.gist(known)
    return None


def _first_kept(points: isl.Set, dense: Collection[int]) -> list[int]:
    """Return the dimensions, first those that are kept rather than others."""
    sides, known = _sides(points), points.params()
    size = points.dim(_DIM.set)

    def rank(k: int) -> tuple[float, bool, int, int]:
        gain = CONTIGUOUS_GAIN if k in dense else 1.0
        never_wider = sum(known.is_subset(_wider(sides, k, other)) for other in range(size))
        return (-gain * _greatest(sides, k), k not in dense, -never_wider, k)

    return sorted(range(size), key=rank)


def _sides(points: isl.Set) -> isl.Set:
    """Return the point of the box's sides, which parameters give: ``{ [n, 5] : n > 0 }``."""
    return extent_between(elementwise_minimum(points), elementwise_maximum(points))


def _greatest(sides: isl.Set, k: int) -> float:
    """Return the greatest side, whatever the parameters are; infinite where there is none."""
    value = greatest_coordinate(sides, k)
    return int(value.to_python()) if value.is_int() else inf


def _wider(sides: isl.Set, k: int, other: int) -> isl.Set:
    """Return the parameters for which dimension ``k`` is at least as wide as the other."""
    local = isl.LocalSpace.from_space(sides.get_space())
    first, second = (isl.Aff.var_on_domain(local, _DIM.set, j) for j in (k, other))
    return sides.intersect(first.ge_set(second)).params()


def _moving(rows: Matrix) -> list[int]:
    return [k for k, column in enumerate(zip(*rows, strict=True)) if any(column)]
