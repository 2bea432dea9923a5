"""Equalities solved for one variable each: the other variables stay as they are.

``variable_compression`` solves any system of equalities but chooses new variables where it must. Where an
equality has a variable with the coefficient 1 or -1, that variable can simply go.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.functions import compose

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Reduced:
    """``map``: ``{ [z] -> S[x] }``, injective; ``points``: ``{ [z] }``, whose image is the given set."""

    map: isl.MultiAff
    points: isl.Set


def eliminate(points: isl.Set) -> Reduced:
    """Return ``{ S[t, i, j] : j = w - 2 t - i }`` as ``{ [t, i] -> S[t, i, w - 2 t - i] }``."""
    here = points.reset_tuple_id() if points.has_tuple_id() else points
    total = isl.MultiAff.identity(here.get_space().map_from_set())
    while (step := _step(here)) is not None:
        total, here = compose(step, total), here.preimage_multi_aff(step)
    rest = variable_compression(here)
    total = compose(rest.map, total)
    if points.has_tuple_name():
        total = total.set_tuple_name(_DIM.out, points.get_tuple_name() or "")
    return Reduced(total, rest.compressed)


def _step(points: isl.Set) -> isl.MultiAff | None:
    """Return the substitution that one equality allows, with one variable less; None where none does."""
    for constraint in points.affine_hull().get_constraints():
        if not constraint.is_equality() or constraint.is_div_constraint():
            continue
        aff = constraint.get_aff()
        for k in reversed(range(points.dim(_DIM.set))):
            coefficient = aff.get_coefficient_val(_DIM.in_, k)
            if coefficient.abs().is_one() and not aff.dim(_DIM.div):
                return _without(points, k, aff if coefficient.is_neg() else aff.neg())
    return None


def _without(points: isl.Set, k: int, aff: isl.Aff) -> isl.MultiAff:
    """Return ``{ [z] -> [x] }`` with ``x[k]`` solved from ``aff = 0``, in which it has the coefficient -1."""
    solved = aff.set_coefficient_val(_DIM.in_, k, isl.Val(0)).drop_dims(_DIM.in_, k, 1)
    size = points.dim(_DIM.set)
    identity = isl.MultiAff.identity(points.get_space().map_from_set())
    rows = [identity.get_at(j).drop_dims(_DIM.in_, k, 1) if j != k else solved for j in range(size)]
    space = rows[0].get_domain_space().map_from_domain_and_range(points.get_space())
    result = isl.MultiAff.zero(space)
    for j, row in enumerate(rows):
        result = result.set_aff(j, row)
    return result
