"""Integers that a static control part does not change."""

from __future__ import annotations

import islpy as isl

from polyloom.frontends.c.scope.names import Known
from polyloom.frontends.c.scope.sets import parameter_affine
from polyloom.frontends.c.scope.state import State
from polyloom.frontends.c.scope.types import value_range
from polyloom.ir.expressions import ParameterValue
from polyloom.ir.types import ElementType

_LARGE = 2**62
"""What no parameter of 64 bits is taken to exceed."""


def new_parameter(name: str, element: ElementType, state: State) -> Known:
    """Make ``name`` a parameter, with the values that its type has."""
    state.parameters[name] = element
    least, greatest = value_range(element)
    low, high = max(-_LARGE, least), min(_LARGE, greatest)
    bounds = isl.Set(f"[{name}] -> {{ [] : {low} <= {name} <= {high} }}")
    state.limits = state.limits.intersect(bounds)
    return Known(parameter_affine(name), ParameterValue(name, element))
