"""Affine functions as expressions, for values that no text of the source says."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from polyloom.frontends.c.integers.extents import written
from polyloom.frontends.c.scope.conversions import converted
from polyloom.ir.expressions import Expression, ParameterValue
from polyloom.ir.types import ElementType
from polyloom.scop.rewrite import named_integers

Types = Callable[[str], ElementType]
_WIDE = ElementType.INT64


def expression_of(function: isl.PwAff, types: Types, element: ElementType) -> Expression:
    """Return the value of an affine function in a type; it is computed in 64 bits.

    ``types``: those of the parameters.
    """

    def named(name: str) -> Expression:
        return converted(ParameterValue(name, types(name)), _WIDE)

    return converted(named_integers(written(function), named, _WIDE), element)
