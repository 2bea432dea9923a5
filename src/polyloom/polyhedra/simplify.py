"""Sets and relations simplified, so that isl needs less time for them."""

from __future__ import annotations

from typing import TypeVar

import islpy as isl

from polyloom.polyhedra.bounds import greatest_coordinate, least_coordinate

_Points = TypeVar("_Points", isl.Set, isl.Map)


def plainly(points: isl.Set) -> isl.Set:
    """Return the same set by the constraints that all its parts share, where these suffice.

    Minima and maxima come with the conditions under which they exist, in variables of their own; each
    multiplies the work of whoever makes loops of the set.
    """
    hull = isl.Set.from_basic_set(points.simple_hull())
    return hull if hull.is_subset(points) else points


def with_explicit_divs(points: _Points) -> _Points:
    """Return the same points with each variable of its own ("there is an e such that ...") as a quotient.

    isl takes equal quotients for one, and such variables never: each intersection with a set that has them
    adds them once more, until a question about a handful of points takes hours. Where there are none, this is
    free.
    """
    return points.compute_divs().coalesce()


def as_box(points: isl.Set) -> isl.Set:
    """Return the same set by the least and the greatest value of each dimension, where these suffice.

    isl does not find out that parts with remainders of their own (``x mod 4 < 3``, ``x > 8``) are together
    all numbers between two: whatever is cut by such a set is asked about part by part from then on.
    """
    if points.n_basic_set() < 2:
        return points
    box = isl.Set.universe(points.get_space())
    for k in range(points.dim(isl.dim_type.set)):
        low, high = least_coordinate(points, k), greatest_coordinate(points, k)
        if not (low.is_int() and high.is_int()):
            return points
        box = box.lower_bound_val(isl.dim_type.set, k, low).upper_bound_val(isl.dim_type.set, k, high)
    return box if box.is_subset(points) else points
