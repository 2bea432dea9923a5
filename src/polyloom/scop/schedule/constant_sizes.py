"""Sizes that are numbers, as a parameter: isl's scheduler computes with long numbers for ``i < 2000``.

    { S[i] : 0 <= i <= 1999 }   becomes   [size] -> { S[i] : 0 <= i <= size }

Its simplex multiplies the numbers of all constraints: an LU of 40 rows took a minute and one of 2000 did not
end, where ``n`` rows take milliseconds. A schedule that is right for every size is right for the one at hand,
so what is found is never wrong; it may be none where only small sizes have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type
_SIZE = "its size"
"""No name of a program has a space."""

_LARGE = 8
"""From this on a number is a size; below, it is a distance or a border."""


def largest_size(relations: Sequence[isl.Map]) -> int:
    """Return the largest number that bounds what is in relations; 0 where all are small."""
    bounds = (c for r in relations for b in r.get_basic_maps() for c in b.get_constraints())
    return max((size for c in bounds if (size := _size(c))), default=0)


def with_size(relation: isl.Map, size: int) -> isl.Map:
    """Return a relation whose large numbers are the parameter's value plus what they differ from ``size`` by.

    It holds the given one where the parameter is ``size``. Constraints with divisions stay as they are.
    """
    return reduce(isl.Map.union, map(isl.Map.from_basic_map, _pieces(relation, size)))


def _pieces(relation: isl.Map, size: int) -> list[isl.BasicMap]:
    pieces = relation.get_basic_maps()
    return [piece if piece.dim(_DIM.div) else _piece(piece, size) for piece in pieces] or [
        isl.BasicMap.empty(relation.get_space())
    ]


def _piece(piece: isl.BasicMap, size: int) -> isl.BasicMap:
    place = piece.dim(_DIM.param)
    space = piece.get_space().add_dims(_DIM.param, 1).set_dim_name(_DIM.param, place, _SIZE)
    result = isl.BasicMap.universe(space)
    for constraint in piece.get_constraints():
        result = result.add_constraint(_constraint(constraint, isl.LocalSpace.from_space(space), place, size))
    return result


def _constraint(given: isl.Constraint, space: isl.LocalSpace, place: int, size: int) -> isl.Constraint:
    made = isl.Constraint.alloc_equality if given.is_equality() else isl.Constraint.alloc_inequality
    result = made(space)
    for kind in (_DIM.param, _DIM.in_, _DIM.out):
        for k in range(given.dim(kind)):
            result = result.set_coefficient_val(kind, k, given.get_coefficient_val(kind, k))
    constant = int(given.get_constant_val().to_python())
    if _size(given):
        sign = 1 if constant > 0 else -1
        result = result.set_coefficient_val(_DIM.param, place, isl_integer(sign))
        constant -= sign * size
    return result.set_constant_val(isl_integer(constant))


def _size(constraint: isl.Constraint) -> int:
    """Return how large the number of an inequality is; 0 where it is none of a size."""
    constant = abs(int(constraint.get_constant_val().to_python()))
    return 0 if constraint.is_equality() or constant < _LARGE else constant
