"""Sets and relations simplified, so that isl needs less time for them."""

from __future__ import annotations

from typing import TypeVar

import islpy as isl

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
