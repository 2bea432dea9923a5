"""Exact element-wise minima, maxima and sizes of parametric sets.

A parametric point, say the minimum of a set, is itself a set with one point for each value of the
parameters: ``{ ff[8 PE_Y, index] : K }``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from math import inf

import islpy as isl

from polyloom.polyhedra.binding import project_out_parameters
from polyloom.polyhedra.effort import charge, remembered

_DIM = isl.dim_type


@remembered
def elementwise_minimum(points: isl.Set) -> isl.Set:
    """Return the point of the smallest value of each dimension (by parametric integer programming).

    Source: dtg_codegen, Sec. 5.1, eqs. (13) (20).
    """
    return _pointwise(points, points.dim_min)


@remembered
def elementwise_maximum(points: isl.Set) -> isl.Set:
    """Return the point of the largest value of each dimension.

    Source: dtg_codegen, Sec. 5.1, eqs. (14) (20).
    """
    return _pointwise(points, points.dim_max)


def box_between(minimum: isl.Set, maximum: isl.Set) -> isl.Set:
    """Return ``{ x : minimum <= x <= maximum }``, in every dimension, at the parameters of ``minimum``.

    All dimensions at once: points in pieces, compared in one dimension after the other, would be multiplied
    by each other.
    """
    not_below = isl.Map.universe(minimum.get_space().map_from_set())
    for k in range(minimum.dim(_DIM.set)):
        not_below = not_below.order_le(_DIM.in_, k, _DIM.out, k)
    return minimum.apply(not_below).intersect(maximum.apply(not_below.reverse()))


@remembered
def extent_between(minimum: isl.Set, maximum: isl.Set) -> isl.Set:
    """Return the point ``maximum - minimum + 1``.

    As a relation between sets: a difference of functions keeps the remainders of both, though it has none.

    Source: dtg_codegen, Sec. 5.1, eqs. (16) (21) (24).
    """
    charge(_PAIR * max(0, minimum.n_basic_set() * maximum.n_basic_set() - 1))
    difference = isl.Map.from_domain_and_range(minimum, maximum).deltas()
    for form in (difference.remove_redundancies(), difference):
        function = form.as_pw_multi_aff()
        if isl.Set.from_pw_multi_aff(function).is_equal(difference):  # isl loses values of some parameters
            return isl.Set.from_pw_multi_aff(function.add_constant_val(isl.Val(1)))
    one = isl.MultiAff.identity(difference.get_space().map_from_set()).add_constant_val(isl.Val(1))
    return difference.apply(isl.Map.from_multi_aff(one))


_PAIR = 1_000
"""Operations as which a pair of pieces counts, from the second on: isl counts few of what they take."""


@remembered
def is_dense_box(points: isl.Set, minimum: isl.Set, maximum: isl.Set) -> bool:
    """Whether the points are all those between the given minimum and maximum."""
    return box_between(minimum, maximum).is_subset(points)


def is_independent_of(point: isl.Set, parameters: Iterable[str]) -> bool:
    """Whether a parametric point is the same for all values of the named parameters."""
    return bool(project_out_parameters(point, parameters).is_singleton())


def constant_point(point: isl.Set) -> tuple[int, ...] | None:
    """Return the coordinates of a parametric point that is the same for all parameters, else None."""
    values = point.project_out(_DIM.param, 0, point.dim(_DIM.param))
    if values.is_empty() or not values.is_singleton():  # isl's lexmin fails on some points
        return None
    sample = values.sample_point()
    return tuple(int(sample.get_coordinate_val(_DIM.set, k).to_python()) for k in range(values.dim(_DIM.set)))


@remembered
def integer_bounds(points: isl.Set) -> tuple[tuple[int, int], ...]:
    """Return the smallest and largest value of each dimension, over all parameters.

    The set must not be empty and must be bounded.
    """
    values = points.project_out(_DIM.param, 0, points.dim(_DIM.param))
    return tuple(
        (_integer(least_coordinate(values, k)), _integer(greatest_coordinate(values, k)))
        for k in range(values.dim(_DIM.set))
    )


def least_coordinate(points: isl.Set, k: int) -> isl.Val:
    """Return the smallest value of dimension ``k``, over all parameters.

    It is -infinity where the set is unbounded, NaN where it is empty.
    """
    return _over_disjuncts(points, lambda part: part.dim_min_val(k), isl.Val.min)


def greatest_coordinate(points: isl.Set, k: int) -> isl.Val:
    """Return the largest value of dimension ``k``, over all parameters: infinity, or NaN, as above."""
    return _over_disjuncts(points, lambda part: part.dim_max_val(k), isl.Val.max)


def first_point(points: isl.Set) -> isl.Set:
    """Return the lexicographically first point of a set without parameters, which has lower bounds, or none.

    isl's own ``lexmin`` fails for some sets with remainders ("affine expression involves some of the domain
    dimensions", isl_domain_factor_templ.c).
    """
    for k in range(0 if points.is_empty() else points.dim(isl.dim_type.set)):
        points = points.fix_val(isl.dim_type.set, k, least_coordinate(points, k))
    return points


def width(points: isl.Set, k: int) -> float:
    """Return how many values dimension ``k`` has at most, over all parameters; infinite without bounds."""
    ends = greatest_coordinate(points, k), least_coordinate(points, k)
    return int(ends[0].sub(ends[1]).to_python()) + 1 if all(end.is_int() for end in ends) else inf


def least_value(points: isl.Set, value: isl.Aff) -> isl.Val:
    """Return the smallest value of an affine expression over all parameters."""
    return _over_disjuncts(points, lambda part: part.min_val(value), isl.Val.min)


def greatest_value(points: isl.Set, value: isl.Aff) -> isl.Val:
    """Return the largest value of an affine expression over all parameters."""
    return _over_disjuncts(points, lambda part: part.max_val(value), isl.Val.max)


def _over_disjuncts(
    points: isl.Set, asked: Callable[[isl.Set], isl.Val], better: Callable[[isl.Val, isl.Val], isl.Val]
) -> isl.Val:
    """Each disjunct is asked for itself.

    isl asks them all, but where the first is empty and it has not noticed, it compares the others with 0:
    the least value of 1 <= x <= 3 may come out as 0.
    """
    answers = [asked(part.to_set()) for part in points.get_basic_sets()]
    known = [answer for answer in answers if not answer.is_nan()]  # NaN: the disjunct is empty
    return reduce(better, known) if known else isl.Val.nan(points.get_ctx())


def _integer(value: isl.Val) -> int:
    return int(value.to_python())


def _pointwise(points: isl.Set, of_dimension: Callable[[int], isl.PwAff]) -> isl.Set:
    result = isl.MultiPwAff.zero(points.get_space()).intersect_params(points.params())
    for k in range(points.dim(_DIM.set)):
        result = result.set_pw_aff(k, of_dimension(k))
    return isl.Set.from_multi_pw_aff(result)
