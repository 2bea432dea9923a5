"""Points of sets as text, for messages."""

from __future__ import annotations

import re

import islpy as isl

_DIM = isl.dim_type


def sample_of(points: isl.Set) -> str:
    """Return one point of a set that is not empty, as ``ff[3, 0]``; parameters are given as well."""
    return describe_point(points.lexmin() if points.is_bounded() else points)


def describe_point(points: isl.Set) -> str:
    """Return a point of the set as text."""
    text = isl.Set.from_point(points.sample_point()).to_str()
    body = text[text.index("{") + 1 : text.rindex("}")].strip()
    return re.sub(r"\w+'* = ", "", body.partition(" : ")[0])


def all_points(points: isl.Set) -> tuple[tuple[int, ...], ...]:
    """Return the points of a bounded set without parameters, in lexicographic order."""
    found: list[tuple[int, ...]] = []
    dims = range(points.dim(_DIM.set))

    def add(point: isl.Point) -> None:
        found.append(tuple(int(point.get_coordinate_val(_DIM.set, k).to_python()) for k in dims))

    points.foreach_point(add)
    return tuple(sorted(found))
