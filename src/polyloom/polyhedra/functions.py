"""Affine functions: composition, linearity, coefficients, and shifts by a parametric offset."""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

_DIM = isl.dim_type


def isl_integer(value: int) -> isl.Val:
    """Return an integer of any size; ``isl.Val`` itself takes those of 64 bits alone."""
    return isl.Val(str(value))


def as_function(relation: isl.Map) -> isl.MultiAff:
    """Return a relation that is one affine function on its whole domain, domain constraints dropped."""
    return function_of(relation).coalesce().as_multi_aff()


def function_of(point: isl.Set | isl.Map) -> isl.PwMultiAff:
    """Return a parametric point, or a relation, of one value for each argument as a function.

    isl's own conversion loses the values of some arguments where there are several pieces.
    """
    function = point.as_pw_multi_aff()
    if isinstance(point, isl.Set):
        kept = point.n_basic_set() < 2 or isl.Set.from_pw_multi_aff(function).is_equal(point)
    else:
        kept = point.n_basic_map() < 2 or isl.Map.from_pw_multi_aff(function).is_equal(point)
    return function if kept else point.lexmin_pw_multi_aff()


def compose(first: isl.MultiAff, second: isl.MultiAff) -> isl.MultiAff:
    """Return ``x -> second(first(x))``."""
    return second.pullback_multi_aff(first)


def linear(space: isl.Space, matrix: Sequence[Sequence[int]]) -> isl.MultiAff:
    """Return ``{ [y] -> [matrix y] }`` on the space of a set: as many values as rows."""
    onto = space.drop_dims(_DIM.set, 0, space.dim(_DIM.set)).add_dims(_DIM.set, len(matrix))
    result = isl.MultiAff.zero(space.map_from_domain_and_range(onto))
    for k, row in enumerate(matrix):
        aff = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
        for j, factor in enumerate(row):
            aff = aff.set_coefficient_val(_DIM.in_, j, isl_integer(factor))
        result = result.set_aff(k, aff)
    return result


def minus_offset(offset: isl.MultiAff, name: str, shift: Sequence[int]) -> isl.MultiAff:
    """Return ``{ y[i] -> name[i - offset + shift] }`` for an offset ``{ [] -> y[...] }``.

    Source: dtg_codegen, Sec. 4.3, eq. (9).
    """
    space = offset.get_space().range()
    result = isl.MultiAff.identity(space.map_from_set())
    for k, steps in enumerate(shift):
        lifted = offset.get_at(k).insert_dims(_DIM.in_, 0, len(shift))
        lifted = lifted.set_tuple_id(_DIM.in_, space.get_tuple_id(_DIM.set))
        result = result.set_aff(k, result.get_at(k).sub(lifted).add_constant_val(isl_integer(steps)))
    return result.set_tuple_name(_DIM.out, name)


def is_linear(function: isl.MultiAff) -> bool:
    """Whether no floor division involves the domain's variables (the constant term may hold some).

    Source: dtg_codegen, Sec. 5, condition 4.
    """
    return all(_is_linear(function.get_at(k)) for k in range(function.dim(_DIM.out)))


def coefficient(function: isl.Aff, variable: int) -> int:
    """Return the coefficient of a variable of the domain, 0 where it is a fraction.

    A function that is an integer at every point of a dense box has a fraction only at a variable that has one
    value there: how far apart two of its values are is never asked.
    """
    value = function.get_coefficient_val(_DIM.in_, variable)
    return int(value.to_python()) if value.is_int() else 0


def coefficients(function: isl.MultiAff) -> tuple[tuple[int, ...], ...]:
    """Return, for each result, the coefficient of each variable of the domain."""
    return tuple(
        tuple(coefficient(function.get_at(k), j) for j in range(function.dim(_DIM.in_)))
        for k in range(function.dim(_DIM.out))
    )


def point_of(function: isl.MultiAff) -> isl.Set:
    """Return a function of the parameters alone, ``{ [] -> S[...] }``, as a parametric point."""
    return isl.Map.from_multi_aff(function).range()


def _is_linear(aff: isl.Aff) -> bool:
    variables = aff.dim(_DIM.in_)
    used = (k for k in range(aff.dim(_DIM.div)) if not aff.get_coefficient_val(_DIM.div, k).is_zero())
    return not any(aff.get_div(k).involves_dims(_DIM.in_, 0, variables) for k in used)
