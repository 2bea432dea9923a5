"""Size enumeration: one SIMD configuration for each size that occurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.binding import project_out_parameters
from polyloom.polyhedra.box_hull import BoxHull, box_hull

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class SizeEnumeration:
    """The sizes on each PE (42), the offset of their box hull, and what numbers them (43)."""

    sizes: isl.Set
    hull: BoxHull
    identifiers: isl.Set

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the box that the identifiers lie in, from 0."""
        return self.hull.size


def enumerate_sizes(size: isl.Set, index: Sequence[str], pe: Sequence[str]) -> SizeEnumeration | None:
    """Enumerate the values of a parametric size; None where they have no box hull.

    Source: dtg_codegen, Sec. 5.4, eqs. (42) (43).
    """
    sizes = project_out_parameters(size, index)  # eq. (42)
    hull = box_hull(sizes)
    if hull is None:
        return None
    shifted = translate(sizes, hull.offset.neg())
    return SizeEnumeration(sizes, hull, project_out_parameters(shifted, pe))  # eq. (43)


def translate(points: isl.Set, offset: isl.MultiAff) -> isl.Set:
    """Return ``{ x + offset : x in points }``; the offset is a function of the parameters."""
    shift = isl.MultiAff.identity(points.get_space().map_from_set())
    for k in range(points.dim(_DIM.set)):
        lifted = offset.get_at(k).insert_dims(_DIM.in_, 0, points.dim(_DIM.set))
        if points.has_tuple_name():
            lifted = lifted.set_tuple_id(_DIM.in_, points.get_tuple_id())
        shift = shift.set_aff(k, shift.get_at(k).add(lifted))
    return points.apply(isl.Map.from_multi_aff(shift))
