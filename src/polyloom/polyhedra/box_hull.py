"""The fixed-size box hull: an overapproximation by a box whose offset may vary and whose size may not.

Lower bounds of each dimension are read off the constraints of the set; the best is the one with the
smallest constant distance to the largest value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import greatest_value, least_coordinate, least_value
from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class BoxHull:
    """``{ offset <= x < offset + size }``; ``offset``: ``{ [] -> S[...] }``, affine in the parameters."""

    offset: isl.MultiAff
    size: tuple[int, ...]

    @property
    def has_floor(self) -> bool:
        """Whether the offset holds a floor division (the paper's offsets are purely affine)."""
        return any(self.offset.get_at(k).dim(_DIM.div) > 0 for k in range(len(self.size)))

    def as_set(self) -> isl.Set:
        """Return the box as a parametric set, for all values of the parameters."""
        space = self.offset.get_space().range()
        box = isl.Set.universe(space)
        for k, size in enumerate(self.size):
            box = box.intersect(_interval(space, k, self.offset.get_at(k), size))
        return box


def box_hull(points: isl.Set, *, purely_affine: bool = False, implied: bool = False) -> BoxHull | None:
    """Return the fixed-size box hull of a parametric set; None where there is none.

    None: some dimension has no fixed size over a bound that its constraints show, or, with
    ``purely_affine``, none without a floor division. isl looks at lower bounds only; this function also
    looks at upper bounds, and takes a lower bound where both are equally good. ``implied``: also at affine
    functions that no constraint shows, as of digits: ``i // 4 = x and i % 4 = y`` is ``i = 4 * x + y``. They
    are taken where they halve the size: their offsets cost more operations.

    Source: dtg_codegen, Sec. 2 and 5.3, eq. (35); Verdoolaege et al. 2013, Sec. 7.3; isl's isl_box.c.
    """
    if points.is_empty():
        return None
    space = points.get_space()
    offset = isl.MultiAff.zero(space.from_range())
    sizes: list[int] = []
    for k in range(points.dim(_DIM.set)):
        best = fixed_interval(points, k, purely_affine=purely_affine)
        if implied and (best is None or best[1] > 1):
            other = _implied_interval(points, k)
            if other is not None and (best is None or 2 * other[1] <= best[1]):
                best = other
        if best is None:
            return None
        offset = offset.set_aff(k, best[0])
        sizes.append(best[1])
    return BoxHull(offset, tuple(sizes))


def fixed_interval(points: isl.Set, k: int, *, purely_affine: bool = False) -> tuple[isl.Aff, int] | None:
    """Return the offset and size of the smallest interval for dimension k that a bound gives.

    None where there is none; the offset is a function of the parameters alone.
    """
    line = _project_onto(points, k)
    best: tuple[isl.Aff, int] | None = None
    for offset, size in _candidates(line, line.simple_hull().remove_unknown_divs()):
        acceptable = not (purely_affine and offset.dim(_DIM.div))
        if acceptable and (best is None or size < best[1]):
            best = offset, size
    return best


def _implied_interval(points: isl.Set, k: int) -> tuple[isl.Aff, int] | None:
    """Return the interval over the affine function through the smallest values at a few parameters.

    The function is taken from one more values of the parameters than there are; that all points lie in the
    interval is proved by isl, for all parameters. None where no such function has a fixed distance.
    """
    line = _project_onto(points, k)
    if not any(b.dim(_DIM.div) for b in line.get_basic_sets()):
        return None  # without divisions the constraints show all there is
    offset = _through_smallest(line)
    if offset is None:
        return None
    nearest, largest = least_value(line, _from_bound(offset)), _largest(line, _from_bound(offset))
    if largest is None or not nearest.is_int():
        return None
    low = int(nearest.to_python())
    return offset.add_constant_val(isl_integer(low)), largest - low + 1


def _through_smallest(line: isl.Set) -> isl.Aff | None:
    """Return the affine function through the smallest values at a point, and at one along each parameter."""
    given = line.params()
    first = given.sample_point()
    at = [first.get_coordinate_val(_DIM.param, p) for p in range(line.dim(_DIM.param))]
    offset = _over_parameters(isl.Aff.zero_on_domain(isl.LocalSpace.from_space(line.get_space())))
    smallest = start = _smallest_at(line, first)
    for p, here in enumerate(at):
        along = given
        for j, value in enumerate(at):
            along = along if j == p else along.fix_val(_DIM.param, j, value)
        others = along.subtract(along.fix_val(_DIM.param, p, here))
        if others.is_empty():
            continue
        second = others.sample_point()
        run = int(second.get_coordinate_val(_DIM.param, p).to_python()) - int(here.to_python())
        slope, rest = divmod(_smallest_at(line, second) - smallest, run)
        if rest:
            return None
        offset = offset.set_coefficient_val(_DIM.param, p, isl_integer(slope))
        start -= slope * int(here.to_python())
    return offset.set_constant_val(isl_integer(start))


def _smallest_at(line: isl.Set, parameters: isl.Point) -> int:
    here = line
    for p in range(line.dim(_DIM.param)):
        here = here.fix_val(_DIM.param, p, parameters.get_coordinate_val(_DIM.param, p))
    return int(least_coordinate(here, 0).to_python())


def _project_onto(points: isl.Set, k: int) -> isl.Set:
    after = points.dim(_DIM.set) - k - 1
    line = points.project_out(_DIM.set, k + 1, after).project_out(_DIM.set, 0, k)
    return line.coalesce()


def _candidates(line: isl.Set, hull: isl.BasicSet) -> Iterator[tuple[isl.Aff, int]]:
    """Yield offset and size for every bound that the hull shows: lower bounds, then upper ones.

    Distances are measured on the points themselves, which may be fewer than the hull's: of those below an
    upper bound none may be at it.
    """
    for lower in _bounds(hull, lower=True):
        distance = _largest(line, _from_bound(lower))
        if distance is not None:
            yield lower, distance + 1
    for upper in _bounds(hull, lower=False):
        distance = _largest(line, _from_bound(upper).neg())
        if distance is not None:
            offset = upper.add_constant_val(isl_integer(-distance))
            yield offset, distance + 1 - _nearest(line, _from_bound(upper).neg())


def _bounds(line: isl.BasicSet, *, lower: bool) -> Iterator[isl.Aff]:
    for constraint in line.get_constraints():
        if not constraint.is_div_constraint():
            yield from _bound_of(constraint, lower)


def _bound_of(constraint: isl.Constraint, lower: bool) -> Iterator[isl.Aff]:
    """Yield the bound on the dimension that the constraint gives, as a function of the parameters."""
    coefficient = constraint.get_coefficient_val(_DIM.set, 0)
    if coefficient.is_zero() or _involves_set_dim_in_div(constraint):
        return
    below = coefficient.is_pos()
    if not constraint.is_equality() and below != lower:
        return
    rest = constraint.get_aff().set_coefficient_val(_DIM.in_, 0, isl.Val(0))
    bound = rest.neg().scale_down_val(coefficient) if below else rest.scale_down_val(coefficient.neg())
    yield _over_parameters(bound.ceil() if lower else bound.floor())


def _involves_set_dim_in_div(constraint: isl.Constraint) -> bool:
    aff = constraint.get_aff()
    used = (k for k in range(aff.dim(_DIM.div)) if not aff.get_coefficient_val(_DIM.div, k).is_zero())
    return any(constraint.get_div(k).involves_dims(_DIM.in_, 0, 1) for k in used)


def _over_parameters(aff: isl.Aff) -> isl.Aff:
    """Drop the domain dimension, which the expression does not involve."""
    return aff.drop_dims(_DIM.in_, 0, 1)


def _from_bound(bound: isl.Aff) -> isl.Aff:
    """Return ``x - bound`` over the parameters and the single dimension x."""
    lifted = bound.insert_dims(_DIM.in_, 0, 1)
    return lifted.neg().add_coefficient_val(_DIM.in_, 0, isl.Val(1))


def _largest(line: isl.Set, distance: isl.Aff) -> int | None:
    value = greatest_value(line, distance)
    return int(value.to_python()) if value.is_int() else None


def _nearest(line: isl.Set, distance: isl.Aff) -> int:
    """Return the smallest distance, where there is a largest one of points that are below a bound."""
    return int(least_value(line, distance).to_python())


def _interval(space: isl.Space, k: int, offset: isl.Aff, size: int) -> isl.Set:
    """Return ``{ x : offset <= x[k] < offset + size }``."""
    local = isl.LocalSpace.from_space(space)
    coordinate = isl.Aff.var_on_domain(local, _DIM.set, k)
    start = offset.insert_dims(_DIM.in_, 0, space.dim(_DIM.set))
    start = _with_domain(start, space)
    end = start.add_constant_val(isl_integer(size - 1))
    return coordinate.ge_set(start).intersect(coordinate.le_set(end))


def _with_domain(aff: isl.Aff, space: isl.Space) -> isl.Aff:
    name = space.get_tuple_name(_DIM.set)
    return aff if name is None else aff.set_tuple_id(_DIM.in_, space.get_tuple_id(_DIM.set))
