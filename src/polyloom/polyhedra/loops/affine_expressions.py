"""Affine expressions of isl as integer expressions, written term by term, without isl's AST generator."""

from __future__ import annotations

from collections.abc import Sequence
from math import lcm

import islpy as isl

from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

_DIM = isl.dim_type


def affine_value(aff: isl.Aff, arguments: Sequence[IntExpression] = ()) -> IntExpression:
    """Return the value of an affine expression at ``arguments``, one for each dimension of its domain.

    Floor divisions are written ``floor(a, b)``; parameters stand under their own names.
    """
    numerator, denominator = _fraction(aff, arguments)
    return numerator if denominator == 1 else Operation("floor", (numerator, Number(denominator)))


def _fraction(aff: isl.Aff, arguments: Sequence[IntExpression]) -> tuple[IntExpression, int]:
    """Return numerator and denominator of a rational affine expression."""
    terms = [(_rational(aff.get_constant_val()), _ONE)]
    for k, argument in enumerate(arguments):
        terms.append((_rational(aff.get_coefficient_val(_DIM.in_, k)), argument))
    for k in range(aff.dim(_DIM.param)):
        name = Name(aff.get_dim_name(_DIM.param, k) or "")
        terms.append((_rational(aff.get_coefficient_val(_DIM.param, k)), name))
    for k in range(aff.dim(_DIM.div)):
        coefficient = _rational(aff.get_coefficient_val(_DIM.div, k))
        if coefficient[0]:
            terms.append((coefficient, affine_value(aff.get_div(k), arguments)))
    denominator = lcm(*(bottom for (_, bottom), _ in terms))
    scaled = [(top * denominator // bottom, term) for (top, bottom), term in terms if top]
    return sum_of(scaled), denominator


_ONE: IntExpression = Number(1)


def _rational(value: isl.Val) -> tuple[int, int]:
    """Return numerator and denominator of a value."""
    top, _, bottom = value.to_str().partition("/")
    return int(top), int(bottom or 1)


def least_of(values: Sequence[isl.Aff]) -> IntExpression:
    """Return the least of some functions of the parameters."""
    result = affine_value(values[0])
    for value in values[1:]:
        result = Operation("min", (result, affine_value(value)))
    return result
