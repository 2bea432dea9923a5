"""Other coordinates for a set of points: without dimensions that hold one value, and in another basis.

Variable compression uses the equalities that isl states. What is left may have dimensions with a single
value that only inequalities show, and may be a box in another basis of the lattice: a parallelogram
``{ [i, j] : 0 <= i < 4, i <= j < i + 3 }`` is the box 4 x 3 in (i, j - i).

Not in the papers: dtg_codegen, Sec. 5.2 and Example 5.7, leaves both open; the directions are those that a
factorisation of polyhedra looks for (Verdoolaege et al. 2007, Sec. 7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import gcd

import islpy as isl

from polyloom.polyhedra.box_hull import fixed_interval
from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.lattice import Matrix, Vector, determinant, inverse

_DIM = isl.dim_type

_MOST_DIRECTIONS = 10
"""Of a set whose bases are looked at: with four dimensions these are 210 choices at most."""


def without_constants(points: isl.Set, *, purely_affine: bool = False) -> isl.MultiAff | None:
    """Return ``{ [j0, ...] -> [i0, ...] }`` that puts back the dimensions with a single value each.

    ``{ [i0, i1] : 0 <= i0 <= 3 and i1 = -floor(index/4) }`` gives ``{ [i0] -> [i0, -floor(index/4)] }``; None
    where every dimension has several values, or no expression gives the single one.
    """
    dims = range(points.dim(_DIM.set))
    found = {k: fixed_interval(points, k, purely_affine=purely_affine) for k in dims}
    values = {k: interval[0] for k, interval in found.items() if interval is not None and interval[1] == 1}
    if not values:
        return None
    kept = [k for k in dims if k not in values]
    space = points.get_space().from_range().add_dims(_DIM.in_, len(kept))
    result = isl.MultiAff.zero(space)
    for k, value in values.items():
        result = result.set_aff(k, value.insert_dims(_DIM.in_, 0, len(kept)))
    for position, k in enumerate(kept):
        variable = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space.domain()), _DIM.set, position)
        result = result.set_aff(k, variable)
    return result


def other_bases(points: isl.Set) -> Iterator[isl.MultiAff]:
    """Yield ``{ [y] -> [x] }``, ``x = A^-1 y``, for the unimodular A whose rows are directions of the set.

    A box in the coordinates y is bounded in the directions of the rows of A, so these are taken from the
    constraints. The basis that the set has already is left out.
    """
    size = points.dim(_DIM.set)
    directions = _directions(points)
    if size < 2 or len(directions) > _MOST_DIRECTIONS:
        return
    identity = {tuple(int(i == k) for i in range(size)) for k in range(size)}
    for rows in combinations(directions, size):
        if set(rows) != identity and abs(determinant(rows)) == 1:
            yield _linear(points, inverse(_in_order(rows)))


def _directions(points: isl.Set) -> list[Vector]:
    """Return the normals of the bounds, primitive, the last nonzero entry positive."""
    found: dict[Vector, None] = {}
    for part in points.get_basic_sets():
        for constraint in part.remove_divs().get_constraints():
            normal = _primitive([_integer(constraint, k) for k in range(points.dim(_DIM.set))])
            if normal is not None:
                found[normal] = None
    return list(found)


def _integer(constraint: isl.Constraint, k: int) -> int:
    return int(constraint.get_coefficient_val(_DIM.set, k).to_python())


def _primitive(vector: Sequence[int]) -> Vector | None:
    divisor = gcd(*vector)
    if divisor == 0:
        return None
    last = next(v for v in reversed(vector) if v)
    return tuple(v // divisor if last > 0 else -v // divisor for v in vector)


def _in_order(rows: Matrix) -> Matrix:
    """Return the rows by their last nonzero entry, so that the new order is close to the old one."""
    return tuple(sorted(rows, key=lambda row: max(k for k, entry in enumerate(row) if entry)))


def _linear(points: isl.Set, matrix: Matrix) -> isl.MultiAff:
    space = points.get_space().map_from_set().reset_tuple_id(_DIM.in_)
    result = isl.MultiAff.zero(space)
    for row, coefficients in enumerate(matrix):
        aff = result.get_at(row)
        for k, coefficient in enumerate(coefficients):
            aff = aff.set_coefficient_val(_DIM.in_, k, isl_integer(coefficient))
        result = result.set_aff(row, aff)
    return result
