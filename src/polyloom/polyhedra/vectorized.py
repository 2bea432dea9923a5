"""isl functions and sets evaluated on NumPy arrays: many points at once, for the host's side of a program.

The compiler itself never enumerates points; feeding, loading and collecting data does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl
import numpy as np
import numpy.typing as npt

from polyloom.polyhedra.functions import isl_integer

_DIM = isl.dim_type
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]


def evaluate_aff(aff: isl.Aff, variables: Sequence[Integers], parameters: Mapping[str, Integers]) -> Integers:
    """Return the value at each point; ``variables[k]`` are the values of the domain's dimension k.

    All arrays broadcast together.
    """
    denominator = int(aff.get_denominator_val().to_python())
    return _scaled_value(aff, variables, parameters, denominator) // denominator


def contains(points: isl.Set, variables: Sequence[Integers], parameters: Mapping[str, Integers]) -> Truths:
    """Return which points a set contains."""
    shape = np.broadcast_shapes(*(v.shape for v in (*variables, *parameters.values())))
    result = np.zeros(shape, dtype=np.bool_)
    for part in points.compute_divs().get_basic_sets():
        result |= _in_basic_set(part, variables, parameters, shape)
    return result


def evaluate_function(
    function: isl.PwMultiAff, variables: Sequence[Integers], parameters: Mapping[str, Integers]
) -> tuple[list[Integers], Truths]:
    """Return the results at each point, one array for each dimension, and where the function is defined."""
    shape = np.broadcast_shapes(*(v.shape for v in (*variables, *parameters.values())))
    results = [np.zeros(shape, dtype=np.int64) for _ in range(function.dim(_DIM.out))]
    defined = np.zeros(shape, dtype=np.bool_)

    def piece(domain: isl.Set, values: isl.MultiAff) -> None:
        here = contains(domain, variables, parameters)
        defined[here] = True
        for k, result in enumerate(results):
            value = evaluate_aff(values.get_at(k), variables, parameters)
            result[here] = np.broadcast_to(value, shape)[here]

    function.foreach_piece(piece)
    return results, defined


def _scaled_value(
    aff: isl.Aff, variables: Sequence[Integers], parameters: Mapping[str, Integers], scale: int
) -> Integers:
    """Return ``scale`` times the value of the expression, which is then an integer."""
    total = np.asarray(_scaled(aff.get_constant_val(), scale), dtype=np.int64)
    for k, values in enumerate(variables):
        coefficient = _scaled(aff.get_coefficient_val(_DIM.in_, k), scale)
        if coefficient:
            total = total + coefficient * values
    for k in range(aff.dim(_DIM.param)):
        coefficient = _scaled(aff.get_coefficient_val(_DIM.param, k), scale)
        if coefficient:
            total = total + coefficient * parameters[aff.get_dim_name(_DIM.param, k) or ""]
    for k in range(aff.dim(_DIM.div)):
        coefficient = _scaled(aff.get_coefficient_val(_DIM.div, k), scale)
        if coefficient:
            total = total + coefficient * evaluate_aff(aff.get_div(k), variables, parameters)
    return total


def _scaled(value: isl.Val, scale: int) -> int:
    return int(value.mul(isl_integer(scale)).to_python())


def _in_basic_set(
    part: isl.BasicSet,
    variables: Sequence[Integers],
    parameters: Mapping[str, Integers],
    shape: tuple[int, ...],
) -> Truths:
    result = np.ones(shape, dtype=np.bool_)
    for constraint in part.get_constraints():
        if constraint.is_div_constraint():
            continue
        aff = constraint.get_aff()
        scale = int(aff.get_denominator_val().to_python())
        value = _scaled_value(aff, variables, parameters, scale)
        result &= (value == 0) if constraint.is_equality() else (value >= 0)
    return result
