"""Binding tuples to symbolic constants: the paper's new operation.

Binding fixes the dimensions of a tuple to symbolic constants and removes the tuple. In isl the
constants are parameters, made from parsed spaces so that their identifiers are the ones that a parsed
set with the same names has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import islpy as isl

from polyloom.polyhedra.effort import remembered

_Points = TypeVar("_Points", isl.Set, isl.Map)

PE_PARAMETERS = ("PE_X", "PE_Y")


@remembered
def parsed_set(text: str) -> isl.Set:
    """Return a set as it is written."""
    return isl.Set(text)


@remembered
def parsed_map(text: str) -> isl.Map:
    """Return a relation as it is written."""
    return isl.Map(text)


def parametric_point(tuple_name: str, parameters: Sequence[str]) -> isl.Set:
    """Return ``[p, q] -> { name[p, q] }``."""
    return _parsed_point(tuple_name, ", ".join(parameters))


@lru_cache(maxsize=256)
def _parsed_point(tuple_name: str, names: str) -> isl.Set:
    return isl.Set(f"[{names}] -> {{ {tuple_name}[{names}] }}")


def bind(points: isl.Set, parameters: Sequence[str]) -> isl.Set:
    """Return the parameter set of those values at which ``points`` has the point (p, q, ...)."""
    return points.intersect(_point_like(points, parameters)).params()


def bind_range(relation: isl.Map, parameters: Sequence[str]) -> isl.Set:
    """Return the domain elements of ``relation`` whose image is (p, q, ...), the range tuple removed.

    ``{ [x] -> [y] : 0 <= y < x <= 10 }`` bound to (Y) is ``[Y] -> { [x] : 0 <= Y < x <= 10 }``.

    Source: dtg_codegen, Sec. 2, eq. (4).
    """
    return relation.intersect_range(_point_like(relation.range(), parameters)).domain()


def bind_domain(relation: isl.Map, parameters: Sequence[str]) -> isl.Set:
    """Return the range elements of ``relation`` that belong to (p, q, ...)."""
    return bind_range(relation.reverse(), parameters)


def unbind_range(points: isl.Set, tuple_name: str, parameters: Sequence[str]) -> isl.Map:
    """Undo ``bind_range``: ``[p] -> { S[i] : ... p ... }`` becomes ``{ S[i] -> name[p] : ... }``."""
    relation = isl.Map.from_domain_and_range(points, parametric_point(tuple_name, parameters))
    return project_out_parameters(relation, parameters)


def unbind_domain(points: isl.Set, tuple_name: str, parameters: Sequence[str]) -> isl.Map:
    """Undo ``bind_domain``: ``[p] -> { S[i] : ... p ... }`` becomes ``{ name[p] -> S[i] : ... }``."""
    return unbind_range(points, tuple_name, parameters).reverse()


def project_out_parameters(points: _Points, parameters: Iterable[str]) -> _Points:
    """Return the union over all values of the named parameters, which disappear."""
    for name in parameters:
        position = points.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            points = points.project_out(isl.dim_type.param, position, 1)
    return points


def parameter_names(points: isl.Set | isl.Map) -> tuple[str, ...]:
    """Return the names of the parameters, in isl's order."""
    return tuple(
        points.get_dim_name(isl.dim_type.param, k) or "" for k in range(points.dim(isl.dim_type.param))
    )


def _point_like(points: isl.Set, parameters: Sequence[str]) -> isl.Set:
    return parametric_point(points.get_tuple_name() or "", parameters)
