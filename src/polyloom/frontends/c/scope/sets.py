"""Sets and functions over parameters; iterators are parameters too as long as the walk lasts."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type

LARGEST = 2**62
"""Factors and divisors in subscripts are no larger: what is made of them has 64 bits, isl knows no bound."""


def constant_affine(value: int) -> isl.PwAff:
    """Return ``{ [] -> [value] }``."""
    space = isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, 0)
    return isl.PwAff.from_aff(isl.Aff.val_on_domain_space(space, isl_integer(value)))


def parameter_affine(name: str) -> isl.PwAff:
    """Return ``[name] -> { [] -> [name] }``."""
    return isl.PwAff(f"[{name}] -> {{ [] -> [({name})] }}")


def everywhere() -> isl.Set:
    """Return ``{ [] }``, no condition."""
    return isl.Set("{ [] }")


def without_set(points: isl.Set, iterators: Iterable[str]) -> isl.Set:
    """Return a set for any values of some iterators."""
    for iterator in iterators:
        at = points.find_dim_by_name(_DIM.param, iterator)
        if at >= 0:
            points = points.project_out(_DIM.param, at, 1)
    return points
