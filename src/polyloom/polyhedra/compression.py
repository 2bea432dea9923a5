"""Variable compression: a lower-dimensional set with the same number of points.

The equality constraints of a set, shared by all its disjuncts, confine it to an affine lattice. The
compression is an affine bijection from a full-dimensional space onto that lattice.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.lattice import Matrix, Vector, column_echelon, reverse_echelon_basis

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class Compression:
    """``map``: ``{ [i0, ...] -> S[...] }``, affine in i0, ...; ``compressed``: the preimage of the set.

    The constant terms of ``map`` may hold floor divisions of parameters where a stride divides a
    parameter (``w = index // 2`` for ``2 w = index``).
    """

    map: isl.MultiAff
    compressed: isl.Set


def variable_compression(instances: isl.Set) -> Compression:
    """Compress ``{ C[PE_Y, w, index - w] }`` to ``{ [i0] -> C[PE_Y, index - i0, i0] }``.

    Existentially quantified variables that equality constraints involve are treated as further set
    variables, as in isl. The set's last dimensions stay as variables wherever the lattice allows it,
    so that the free variables are the paper's. The map is injective and its image holds the set.

    Source: dtg_codegen, Sec. 2 and 5.2, eqs. (18) (22) (28) (33); Meister 2004.
    """
    system = _equalities(instances)
    echelon = column_echelon(system.variables, system.n_div + system.n_set)
    basis = reverse_echelon_basis(_directions(echelon.transform, len(echelon.pivots), system), system.n_set)
    space = _target_space(instances, len(basis))
    origin = _reduced(_particular(system, echelon.form, echelon.transform, echelon.pivots, space), basis)
    affs = [_add_directions(origin[row], basis, row) for row in range(system.n_set)]
    result = isl.MultiAff.zero(space)
    for row, aff in enumerate(affs):
        result = result.set_aff(row, aff)
    compressed = instances.preimage_multi_aff(result)
    return Compression(result, compressed)


@dataclass(frozen=True)
class _System:
    """``variables * (divs, set dimensions) + parameters * p + constant = 0``, a row an equality."""

    variables: Matrix
    parameters: Matrix
    constants: Vector
    n_div: int
    n_set: int


def _equalities(instances: isl.Set) -> _System:
    hull = instances.affine_hull()
    matrix = hull.equalities_matrix(_DIM.div, _DIM.set, _DIM.param, _DIM.cst)
    n_div, n_set, n_param = (hull.dim(t) for t in (_DIM.div, _DIM.set, _DIM.param))
    rows = [
        [int(matrix.get_element_val(i, j).to_python()) for j in range(matrix.cols())]
        for i in range(matrix.rows())
    ]
    rows = [row for row in rows if any(row[: n_div + n_set])]
    first = n_div + n_set
    return _System(
        tuple(tuple(row[:first]) for row in rows),
        tuple(tuple(row[first : first + n_param]) for row in rows),
        tuple(row[-1] for row in rows),
        n_div,
        n_set,
    )


def _directions(transform: Matrix, rank: int, system: _System) -> list[Vector]:
    """Return the homogeneous solutions, restricted to the set dimensions."""
    rows = transform[system.n_div :]
    return [tuple(row[k] for row in rows) for k in range(rank, system.n_div + system.n_set)]


def _target_space(instances: isl.Set, dimensions: int) -> isl.Space:
    space = instances.get_space()
    return space.from_range().add_dims(_DIM.in_, dimensions)


def _particular(
    system: _System, form: Matrix, transform: Matrix, pivots: tuple[int, ...], space: isl.Space
) -> list[isl.Aff]:
    """Solve the system for one point, an affine expression of the parameters per set dimension."""
    zero = isl.Aff.zero_on_domain_space(space.domain())
    solved: list[isl.Aff] = []
    for column, row in enumerate(pivots):
        rest = _scaled(zero, system.parameters[row], system.constants[row]).neg()
        for k in range(column):
            rest = rest.sub(solved[k].scale_val(isl_integer(form[row][k])))
        solved.append(_divide(rest, form[row][column]))
    return [_combine(zero, solved, row) for row in transform[system.n_div :]]


def _scaled(zero: isl.Aff, parameters: Vector, constant: int) -> isl.Aff:
    result = zero.set_constant_val(isl_integer(constant))
    for k, coefficient in enumerate(parameters):
        if coefficient:
            result = result.set_coefficient_val(_DIM.param, k, isl_integer(coefficient))
    return result


def _divide(aff: isl.Aff, divisor: int) -> isl.Aff:
    return aff if divisor == 1 else aff.scale_down_val(isl_integer(divisor)).floor()


def _combine(zero: isl.Aff, solved: list[isl.Aff], row: Vector) -> isl.Aff:
    result = zero
    for aff, coefficient in zip(solved, row, strict=False):
        if coefficient:
            result = result.add(aff.scale_val(isl_integer(coefficient)))
    return result


def _reduced(origin: list[isl.Aff], basis: tuple[tuple[Vector, int], ...]) -> list[isl.Aff]:
    """Move the origin along the basis so that it is zero, or small, at the pivots."""
    for vector, pivot in reversed(basis):
        steps = _whole_steps(origin[pivot], vector[pivot])
        origin = [aff.sub(steps.scale_val(isl_integer(v))) for aff, v in zip(origin, vector, strict=True)]
    return origin


def _whole_steps(aff: isl.Aff, pivot: int) -> isl.Aff:
    """Return the affine expression whose coefficients are those of ``aff``, floor-divided by the pivot."""
    if pivot == 1:
        return aff
    result = isl.Aff.zero_on_domain_space(aff.get_domain_space())
    result = result.set_constant_val(_floor_quotient(aff.get_constant_val(), pivot))
    for k in range(aff.dim(_DIM.param)):
        quotient = _floor_quotient(aff.get_coefficient_val(_DIM.param, k), pivot)
        result = result.set_coefficient_val(_DIM.param, k, quotient)
    return result


def _floor_quotient(value: isl.Val, divisor: int) -> isl.Val:
    return value.div(isl_integer(divisor)).floor()


def _add_directions(aff: isl.Aff, basis: tuple[tuple[Vector, int], ...], row: int) -> isl.Aff:
    for k, (vector, _) in enumerate(basis):
        aff = aff.set_coefficient_val(_DIM.in_, k, isl_integer(vector[row]))
    return aff
