"""Elements that a pointer into a row of an array names: ``double *p = &A[0][0]; p[i]``.

Memory goes on behind a row with the next one. Where a pointer leaves its row, the element is that of a later
row: ``A[i / m][i % m]`` with a constant ``m``. Not in the papers; ISO C99, 6.5.6, leaves it undefined,
compilers do not.
"""

from __future__ import annotations

from itertools import accumulate

import islpy as isl

from polyloom.diagnostics import Span
from polyloom.frontends.c.integers.affine import constant_of
from polyloom.frontends.c.integers.from_isl import expression_of
from polyloom.frontends.c.scope.names import Index, Place
from polyloom.frontends.c.scope.sets import constant_affine
from polyloom.frontends.c.scope.state import Mode, State
from polyloom.frontends.c.scope.types import Extent
from polyloom.frontends.c.syntax.faults import refuse
from polyloom.ir.expressions import Read, walk
from polyloom.ir.types import ElementType
from polyloom.polyhedra.functions import isl_integer


def in_rows(place: Place, state: State, span: Span | None) -> tuple[Index, ...]:
    """Return the indices of a place, each inside its dimension where a pointer may have left it.

    An index that reads data is taken to stay in its row. Errors: ``c-row``.
    """
    indices = list(place.indices)
    if not place.by_pointer or state.mode is Mode.TEXT:
        return place.indices
    firsts = {0, *accumulate(place.levels)}
    for k in reversed(range(1, len(indices))):
        extent = place.extents[k]
        if k not in firsts and extent is not None:
            indices[k - 1 : k + 1] = _carried(indices[k - 1], indices[k], extent, place, state, span)
    return tuple(indices)


def _carried(
    row: Index, index: Index, extent: Extent, place: Place, state: State, span: Span | None
) -> tuple[Index, Index]:
    """Return the index of a row, and one inside of it."""
    if index.affine is None:
        if _is_origin(row) and not any(isinstance(part, Read) for part in walk(index.value)):
            _refuse(place, span)
        return row, index
    if extent.affine is None:
        return row, index
    zero = constant_affine(0)
    inside = index.affine.ge_set(zero).intersect(index.affine.lt_set(extent.affine))
    if state.always(inside):
        return row, index
    length = constant_of(extent.affine)
    if length and row.affine is not None:
        left = index.affine.mod_val(isl_integer(length))
        carry = index.affine.sub(left).scale_down_val(isl_integer(length))
        return _index(row.affine.add(carry), state), _index(left, state)
    if not state.assume(inside):
        _refuse(place, span)
    state.assumed[f"pointers into rows of `{place.variable.name}` stay in them"] = None
    return row, index


def _is_origin(index: Index) -> bool:
    return index.affine is not None and bool(index.affine.is_equal(constant_affine(0)))


def _index(found: isl.PwAff, state: State) -> Index:
    found = found.coalesce()
    return Index(found, expression_of(found, state.type_of, ElementType.INT64))


def _refuse(place: Place, span: Span | None) -> None:
    name = place.variable.name
    refuse(
        "c-row",
        f"a pointer into a row of `{name}` may leave it",
        span,
        notes=["the elements behind a row are those of the next one, which two indices name"],
        helps=[f"use the array itself, with all its indices, or declare `{name}` with one dimension"],
    )
