"""A set that is not a box as a union of a few boxes.

Not in the papers: dtg_codegen, Sec. 5, condition 2, wants one box.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import islpy as isl

from polyloom.polyhedra.bounds import elementwise_maximum, elementwise_minimum, is_dense_box
from polyloom.polyhedra.box_hull import fixed_interval
from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type


def few_boxes(points: isl.Set, most: int) -> Iterator[tuple[isl.Set, ...]]:
    """Yield ways to write a set as at most ``most`` disjoint sets, each a dense box at all parameters.

    ``{ [i, j] : (0 <= i < 2 or 5 <= i < 9) and 0 <= j < 8 }`` as 2 x 8 and 4 x 8, its disjuncts;
    ``{ [i, j] : 0 <= i < 3 and i <= j < n }`` as its slices at i = 0, 1 and 2.
    """
    disjuncts = _basic_sets(points.make_disjoint().coalesce())
    if 1 < len(disjuncts) <= most and _are_boxes(disjuncts):
        yield disjuncts
    for k in range(points.dim(_DIM.set)):
        slices = _slices(points, k, most)
        if len(slices) > 1 and _are_boxes(slices):
            yield slices


def _basic_sets(points: isl.Set) -> tuple[isl.Set, ...]:
    return tuple(isl.Set.from_basic_set(part) for part in points.get_basic_sets())


def _are_boxes(parts: Sequence[isl.Set]) -> bool:
    if any(not a.is_disjoint(b) for n, a in enumerate(parts) for b in parts[:n]):
        return False
    return all(is_dense_box(part, elementwise_minimum(part), elementwise_maximum(part)) for part in parts)


def _slices(points: isl.Set, k: int, most: int) -> tuple[isl.Set, ...]:
    """Return the points at each value of dimension k, where there are few, counted from the first one."""
    interval = fixed_interval(points, k)
    if interval is None or interval[1] > most:
        return ()
    space = points.get_space()
    found = []
    for step in range(interval[1]):
        value = interval[0].add_constant_val(isl_integer(step)).insert_dims(_DIM.in_, 0, space.dim(_DIM.set))
        coordinate = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), _DIM.set, k)
        here = points.intersect(coordinate.eq_set(value)).coalesce()
        if not here.is_empty():
            found.append(here)
    return tuple(found)
