"""Other ways to write a floor division in a sum, of which some take fewer operations.

``i - (i + 1) / 2`` is ``i / 2``, and ``1 - (i + 1) % 2`` is ``i % 2``: a quotient of integers is that of the
remainders of its coefficients and a sum, and the negative one of what is left to the next multiple.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type


@dataclass(frozen=True)
class Written:
    """``rest + factor * term``; ``term`` is a floor division or the remainder of one."""

    rest: isl.Aff
    factor: int
    term: isl.Aff


def other_forms(function: isl.Aff) -> Iterator[Written]:
    """Yield a function of parameters with one of its floor divisions in other forms.

    Keeps true: ``rest`` has fewer floor divisions than the function.
    """
    if not function.get_denominator_val().is_one():
        return
    for k in range(function.dim(_DIM.div)):
        factor = int(function.get_coefficient_val(_DIM.div, k).to_python())
        quotient = function.get_div(k)
        divisor = quotient.get_denominator_val()
        dividend = quotient.scale_val(divisor)
        nested = any(not dividend.get_coefficient_val(_DIM.div, j).is_zero() for j in range(k))
        if factor and not nested:
            rest = function.sub(quotient.floor().scale_val(isl_integer(factor)))
            if _divisions(rest) < _divisions(function):
                yield from _forms(rest, factor, dividend, int(divisor.to_python()))


def _divisions(function: isl.Aff) -> int:
    """Return how many floor divisions a function has; isl does not cancel all that are equal."""
    counts = (function.get_coefficient_val(_DIM.div, k) for k in range(function.dim(_DIM.div)))
    return sum(not count.is_zero() for count in counts)


def _forms(rest: isl.Aff, factor: int, dividend: isl.Aff, divisor: int) -> Iterator[Written]:
    by = isl_integer(divisor)
    for sign, numerator in ((1, dividend), (-1, dividend.neg().add_constant_val(isl_integer(divisor - 1)))):
        reduced = _remainders(numerator, divisor)
        if _largest(reduced) > _largest(dividend):
            continue
        whole = numerator.sub(reduced).scale_down_val(by)
        around = rest.add(whole.scale_val(isl_integer(sign * factor)))
        floor = reduced.scale_down_val(by).floor()
        yield Written(around, sign * factor, floor)
        if factor % divisor == 0:
            times = sign * factor // divisor
            remainder = reduced.sub(floor.scale_val(by))
            yield Written(around.add(reduced.scale_val(isl_integer(times))), -times, remainder)


def _largest(numerator: isl.Aff) -> int:
    """Return the largest absolute value of a coefficient, on which it depends how large numbers get."""
    values = (numerator.get_coefficient_val(_DIM.param, k) for k in range(numerator.dim(_DIM.param)))
    return max((abs(int(value.to_python())) for value in values), default=0)


def _remainders(numerator: isl.Aff, divisor: int) -> isl.Aff:
    """Return an integer function with its coefficients and its constant modulo a number."""
    by = isl_integer(divisor)
    result = numerator.set_constant_val(numerator.get_constant_val().mod(by))
    for k in range(numerator.dim(_DIM.param)):
        coefficient = numerator.get_coefficient_val(_DIM.param, k)
        result = result.set_coefficient_val(_DIM.param, k, coefficient.mod(by))
    return result
