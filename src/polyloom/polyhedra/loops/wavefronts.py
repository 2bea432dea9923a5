"""Rows of two loops in tiles that run as wavefronts: how far rows must be moved, and which there are.

A row is ``[t, i]``: the i of a step t. Rows that are moved by ``skew`` a step are in tiles of
``(t, i + skew * t)``; where no row needs, or must come after, one that is behind it along either, those of a
wave of tiles need nothing of each other.

Source: Wolf and Lam 1991 (skewing, wavefronts of tiles). Not in the papers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.bounds import greatest_value, least_value
from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.accesses import Elements, NotKnown
from polyloom.polyhedra.loops.scope import Scope
from polyloom.polyhedra.loops.tree import Name

_DIM = isl.dim_type

MOST_SKEW = 4
"""Rows that a step may be moved by."""


@dataclass(frozen=True, eq=False)
class Touched:
    """``{ [t, i, ...] -> array[element] }``: what the instances of a statement read, or store."""

    array: str
    elements: Elements
    is_store: bool


def skew_of(touched: Sequence[Touched]) -> int | None:
    """Return how far rows must be moved a step so that none needs one behind it; None: too far."""
    needs = _distances(touched)
    for skew in range(MOST_SKEW + 1):
        if needs.is_disjoint(isl.Set(f"{{ [d, e] : e + {skew} * d < 0 }}")):
            return skew
    return None


def _distances(touched: Sequence[Touched]) -> isl.Set:
    """Return ``{ [d, e] }``: a row d steps and e rows on touches an element, and one of both stores it."""
    later = isl.Map("{ [t, i] -> [u, j] : t < u or (t = u and i < j) }")
    found = isl.Set("{ [d, e] : false }")
    for array in dict.fromkeys(each.array for each in touched if each.is_store):
        own = [each for each in touched if each.array == array]
        stored = _of_rows([each for each in own if each.is_store])
        pairs = stored.apply_range(_of_rows(own).reverse())
        found = found.union(pairs.union(pairs.reverse()).intersect(later).deltas())
    return found


def _of_rows(touched: Sequence[Touched]) -> isl.Map:
    """Return ``{ [t, i] -> array[element] }``."""
    maps = (t.elements.project_out(_DIM.in_, 2, t.elements.dim(_DIM.in_) - 2) for t in touched)
    return reduce(isl.Map.union, maps).coalesce()


def extent(scope: Scope, of_steps: int, of_rows: int) -> tuple[int, int]:
    """Return the least and the largest ``of_steps * t + of_rows * i`` of the rows. Errors: NotKnown."""
    value = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(scope.points.get_space()))
    for k, factor in enumerate((of_steps, of_rows)):
        value = value.set_coefficient_val(_DIM.in_, k, isl_integer(factor))
    ends = least_value(scope.points, value), greatest_value(scope.points, value)
    if not all(end.is_int() for end in ends):
        raise NotKnown("where rows end")
    least, largest = (int(end.to_python()) for end in ends)
    return least, largest


def visits_each_once(loops: Scope, rows: Scope) -> bool:
    """Return whether loops, of more iterators, visit each row once and no others, by the names of rows."""
    row = tuple(map(Name, rows.iterators))
    visited, wanted = loops.tuples("", row), rows.tuples("", row)
    return bool(visited.is_injective() and visited.range().is_equal(wanted.range()))


def elements_of_step(touched: Sequence[Touched], step: int) -> dict[str, int]:
    """Return about how many elements of each array the rows of a step touch: those of a box around them."""
    found: dict[str, isl.Set] = {}
    for each in touched:
        here = each.elements.fix_val(_DIM.in_, 0, isl_integer(step)).range()
        found[each.array] = here.union(found[each.array]) if each.array in found else here
    return {array: _box(elements, 0) for array, elements in found.items()}


def most_points(scopes: Sequence[Scope]) -> int:
    """Return about how many points a row has inside its loops: the most in one of these scopes."""
    return max((_box(scope.points, 2) for scope in scopes), default=1)


def _box(points: isl.Set, first: int) -> int:
    """Return how many points the box around some has, from a dimension on; unbounded ones count as one."""
    count = 1
    for k in range(first, points.dim(_DIM.set)):
        at = isl.Aff.var_on_domain(isl.LocalSpace.from_space(points.get_space()), _DIM.set, k)
        ends = least_value(points, at), greatest_value(points, at)
        if all(end.is_int() for end in ends):
            least, largest = (int(end.to_python()) for end in ends)
            count *= largest - least + 1
    return count
