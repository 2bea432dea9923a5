"""Dimensions that follow from the others are left out; the others stay as they are.

``variable_compression`` solves any system of equalities but chooses new variables where it must. Where an
equality has a variable with the coefficient 1 or -1, that variable can simply go. The number of a block
follows from what is in it: ``{ [b, i] : 32 b <= i < 32 b + 32 }``, the loops of a program that somebody tiled
by hand, is ``{ [i] }`` with ``b = i // 32``. Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import box_between, elementwise_maximum, elementwise_minimum
from polyloom.polyhedra.compression import variable_compression
from polyloom.polyhedra.functions import compose, function_of, linear
from polyloom.polyhedra.lattice import Vector, column_echelon

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


def without_quotients(points: isl.Set, rows: Sequence[Vector]) -> Reduced | None:
    """Return the points by fewer dimensions, of which ``rows`` still are linear functions; None: by no fewer.

    ``points``: ``{ [z] }``; ``rows``: the coefficients of functions of z. The map ``{ [y] -> [z] }`` is
    injective and may divide.
    """
    size = points.dim(_DIM.set)
    unused = [k for k in range(size) if not any(row[k] for row in rows)]
    first = _shortened(points, unused)
    echelon = column_echelon(tuple(rows), size)
    rank = len(echelon.pivots)
    if rank + len(unused) == size:
        return first
    basis = linear(points.get_space(), echelon.transform)
    found = _shortened(points.preimage_multi_aff(basis), range(rank, size))
    if found is None or found.points.dim(_DIM.set) > rank + len(unused):
        return first
    return Reduced(compose(found.map, basis), found.points)


def _shortened(points: isl.Set, unused: Sequence[int]) -> Reduced | None:
    """Return the points without those of the unused dimensions that follow from the others."""
    total = isl.MultiAff.identity(points.get_space().map_from_set())
    here = points
    for k in reversed(unused):
        rest = here.project_out(_DIM.set, k, 1)
        if not rest.dim(_DIM.set):
            continue
        step = _solved(here, rest, k)
        if step is not None:
            total, here = compose(step, total), rest
    return Reduced(total, _as_box(here)) if here.dim(_DIM.set) < points.dim(_DIM.set) else None


def _as_box(points: isl.Set) -> isl.Set:
    """Return a box by the bounds of its dimensions: of ``i // 32 < n // 32`` isl sees none for i."""
    box = box_between(elementwise_minimum(points), elementwise_maximum(points))
    return box.coalesce() if box.is_equal(points) else points


def _solved(points: isl.Set, rest: isl.Set, k: int) -> isl.MultiAff | None:
    """Return ``{ rest -> points }`` where dimension k has one value for each point of the rest."""
    onto = isl.Map.identity(points.get_space().map_from_set()).intersect_domain(points)
    lifted = onto.project_out(_DIM.out, k, 1).reverse()
    if not lifted.is_single_valued():
        return None
    functions = function_of(lifted).coalesce().gist(rest)
    return functions.as_multi_aff() if functions.isa_multi_aff() else None
