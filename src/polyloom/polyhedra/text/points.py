"""Points of sets as text, for messages."""

from __future__ import annotations

import re

import islpy as isl

_DIM = isl.dim_type


def sample_of(points: isl.Set) -> str:
    """Return the first point of a set that is not empty, as ``ff[3, 0]``; of an unbounded set any one.

    Any one, too, where isl fails: of some sets with several quotients its ``lexmin`` is an error. It is that
    of the first parameters for which there is one. To find these alone is little work; to find the first
    point as a function of all of them may take minutes.
    """
    count = points.dim(_DIM.param)
    parameters_first = points.move_dims(_DIM.set, 0, _DIM.param, 0, count)
    if not parameters_first.is_bounded():
        return describe_point(points)
    try:
        first = parameters_first.lexmin().sample_point()
        for k in range(count):
            points = points.fix_val(_DIM.param, k, first.get_coordinate_val(_DIM.set, k))
        return describe_point(points.lexmin())
    except isl.Error:
        return describe_point(points)


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
