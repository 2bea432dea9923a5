"""Sets as zero-based rectangles: an affine bijection where there is one, else the smallest box around.

Source: c-frontend.md, Sec. 4 (rectangularisation). Not in the papers: md_poly's MDHs are over rectangles,
what to do with other domains is left open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import islpy as isl

_DIM = isl.dim_type


class NoBox(Exception):  # an unbounded set
    """The text is the set."""


@dataclass(frozen=True, eq=False)
class Box:
    """``coordinates``: ``{ [y] -> [z] }``; the given set is the image of ``points`` ``{ [y] }``.

    ``points`` lie in ``0 <= y < extents``; each extent is the least of some functions of the parameters.
    """

    coordinates: isl.MultiAff
    points: isl.Set
    extents: tuple[tuple[isl.Aff, ...], ...]

    def rectangle(self, free: Collection[int] = ()) -> isl.Set:
        """Return ``{ [y] : 0 <= y < extents }``, the dimensions ``free`` without bounds."""
        result = isl.Set.universe(self.points.get_space())
        local = isl.LocalSpace.from_space(result.get_space())
        for k, extent in enumerate(self.extents):
            if k in free:
                continue
            coordinate = isl.Aff.var_on_domain(local, _DIM.set, k)
            result = result.intersect(_at_least(coordinate, isl.Aff.zero_on_domain(local)))
            for end in extent:
                last = _over(end, result).add_constant_val(isl.Val(-1))
                result = result.intersect(_at_least(last, coordinate))
        return result


def straighten(points: isl.Set, context: isl.Set) -> Box:
    """Return ``{ [i, j] : 0 <= i < n and i <= j < i + m }`` as the box ``n x m`` with ``j = y1 + i``.

    The set has no equalities (see ``variable_compression``). A dimension is counted from its lower bound
    given the dimensions before it, if its width then depends on them no longer; else from its lower bound
    over all points. Raises ``NoBox`` where a dimension has no bound.
    """
    space = points.get_space()
    result = isl.MultiAff.identity(space.map_from_set())
    for k in range(points.dim(_DIM.set)):
        lower = _lower_bound(points, k, context)
        result = result.set_aff(k, result.get_at(k).add(lower))
        shift = isl.MultiAff.identity(space.map_from_set())
        shift = shift.set_aff(k, shift.get_at(k).add(lower))
        points = points.preimage_multi_aff(shift)
    extents = tuple(_extent(points, k, context) for k in range(points.dim(_DIM.set)))
    return Box(result, points.coalesce(), extents)


def _extent(points: isl.Set, k: int, context: isl.Set) -> tuple[isl.Aff, ...]:
    """Return the functions whose least is one more than the largest value of dimension k."""
    line = _onto(points, k)
    upper = [a.neg() for a in _bounds(_reversed(line), 0)]
    if not upper:
        raise NoBox(str(points))
    needed: list[isl.Aff] = []
    known = isl.Set.universe(upper[0].get_domain_space()).intersect_params(context)
    for bound in sorted(upper, key=lambda b: (b.dim(_DIM.div), len(str(b)))):
        if not any(known.is_subset(_at_least(bound, other)) for other in needed):
            needed = [n for n in needed if not known.is_subset(_at_least(n, bound))]
            needed.append(bound)
    return tuple(b.add_constant_val(isl.Val(1)).drop_dims(_DIM.in_, 0, 1) for b in needed)


def _reversed(line: isl.Set) -> isl.Set:
    """Return ``{ [-i] }``."""
    negated = isl.MultiAff.identity(line.get_space().map_from_set()).neg()
    return line.preimage_multi_aff(negated)


def _lower_bound(points: isl.Set, k: int, context: isl.Set) -> isl.Aff:
    """Return the affine lower bound of dimension k to count from, over the whole space."""
    after = points.dim(_DIM.set) - k - 1
    prefix = points.project_out(_DIM.set, k + 1, after).coalesce()
    line = _onto(points, k)
    lifted = _insert(line, k)
    for candidate in _bounds(prefix, k):
        if _involves_dims(candidate) and _constant_width(prefix, k, candidate):
            return _over(candidate, points)
    found = [c for c in _bounds(lifted, k) if not _involves_dims(c)]
    if not found:
        raise NoBox(str(points))
    return _over(_tightest(found, lifted, context), points)


def _insert(line: isl.Set, k: int) -> isl.Set:
    """Return the set of one dimension as one of k + 1, the earlier ones free."""
    return line.insert_dims(_DIM.set, 0, k)


def _onto(points: isl.Set, k: int) -> isl.Set:
    after = points.dim(_DIM.set) - k - 1
    line = points.project_out(_DIM.set, k + 1, after).project_out(_DIM.set, 0, k)
    return _without_divs(line).coalesce()


def _bounds(points: isl.Set, k: int) -> Iterator[isl.Aff]:
    """Yield the lower bounds of dimension k that the constraints show, not depending on it."""
    for constraint in _without_divs(points).simple_hull().get_constraints():
        coefficient = constraint.get_coefficient_val(_DIM.set, k)
        if constraint.is_equality():
            coefficient = coefficient.abs()
        if coefficient.is_pos():
            aff = constraint.get_aff()
            if aff.get_coefficient_val(_DIM.in_, k).is_neg():
                aff = aff.neg()
            rest = aff.set_coefficient_val(_DIM.in_, k, isl.Val(0))
            yield rest.neg().scale_down_val(coefficient).ceil()


def _without_divs(points: isl.Set) -> isl.Set:
    """Return a superset in which no dimension is divided; parameters may be."""
    return points.remove_divs_involving_dims(_DIM.set, 0, points.dim(_DIM.set)).remove_unknown_divs()


def _involves_dims(aff: isl.Aff) -> bool:
    return bool(aff.involves_dims(_DIM.in_, 0, aff.dim(_DIM.in_)))


def _constant_width(points: isl.Set, k: int, lower: isl.Aff) -> bool:
    """Whether dimension k, counted from ``lower``, fills the same range for all earlier dimensions."""
    if lower.dim(_DIM.div):
        return False
    shift = isl.MultiAff.identity(points.get_space().map_from_set())
    shift = shift.set_aff(k, shift.get_at(k).add(lower))
    moved = points.preimage_multi_aff(shift)
    earlier = moved.project_out(_DIM.set, k, 1)
    straight = earlier.insert_dims(_DIM.set, k, 1).intersect(_insert(_onto(moved, k), k))
    return bool(straight.is_equal(moved))


def _tightest(bounds: list[isl.Aff], points: isl.Set, context: isl.Set) -> isl.Aff:
    """Return the bound that is never below another one, if there is one, else the first."""
    plain = [b for b in bounds if not b.dim(_DIM.div)] or bounds
    for bound in plain:
        others = (o for o in plain if o is not bound)
        if all(points.intersect_params(context).is_subset(_at_least(bound, o)) for o in others):
            return bound
    return plain[0]


def _at_least(a: isl.Aff, b: isl.Aff) -> isl.Set:
    return isl.PwAff.from_aff(a.sub(b)).nonneg_set()


def _over(aff: isl.Aff, points: isl.Set) -> isl.Aff:
    """Return the expression over all dimensions of ``points``."""
    missing = points.dim(_DIM.set) - aff.dim(_DIM.in_)
    return aff.add_dims(_DIM.in_, missing) if missing else aff
