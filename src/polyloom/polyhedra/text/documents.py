"""isl objects as the strings of the JSON documents: simplified once, at the boundary."""

from __future__ import annotations

import islpy as isl

from polyloom.polyhedra.functions import function_of


def relation_text(points: isl.Set | isl.Map) -> str:
    """Return a set or relation, coalesced, with the constraints on its parameters."""
    return str(points.coalesce())


def placement_text(relation: isl.Map) -> str:
    """Return a relation as a function where it is one: ``{ ff[i, j] -> PE[(floor((j)/4)), ...] : ... }``.

    isl reads the string as a relation too.
    """
    if relation.is_empty() or not relation.is_single_valued():
        return relation_text(relation)
    return str(function_of(relation).coalesce())


def point_text(point: isl.Set) -> str:
    """Return a parametric point as a function of the parameters: ``{ [(8PE_Y)] : 0 <= PE_Y <= 3 }``.

    isl reads the string as a set too.
    """
    return str(point) if point.is_empty() else str(function_of(point).coalesce())


def offset_text(offset: isl.MultiAff) -> str:
    """Return a function of the parameters alone, ``{ [] -> S[...] }``, as ``{ S[...] }``."""
    return str(offset.project_domain_on_params())


def function_text(function: isl.MultiAff) -> str:
    """Return an affine function, without constraints on its domain."""
    return str(function)


def functions_text(functions: list[isl.MultiAff]) -> str:
    """Return one function as such, several with the same name as the relation that holds them all."""
    if len(functions) == 1:
        return function_text(functions[0])
    together = isl.Map.from_multi_aff(functions[0])
    for function in functions[1:]:
        together = together.union(isl.Map.from_multi_aff(function))
    return relation_text(together)
