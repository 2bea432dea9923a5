"""Subscripts as digits: what an element that is written tells of the iterators, beyond its subscripts.

``y[32 * i + j]`` with ``0 <= j < 32`` tells ``i`` and ``j``, as two digits tell a number's tens and ones:
both loops write elements of their own. ``y[4 * i + k] += x[i][k]`` with more than four ``k`` tells neither;
with ``k = 4 * k' + r`` it tells ``i + k'`` and ``r``, and the terms of an element are those of ``k'``. Over
``(4 * i + k, i)`` nearly all points of the box would be left out: its second side grows with ``i``, though an
element has few terms.

Not in the papers. Source: transposed convolution as one convolution for each remainder of the stride (Shi et
al. 2016, "Is the deconvolution layer the same as a convolutional layer?").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from math import lcm, prod

import islpy as isl

from polyloom.polyhedra.bounds import greatest_value, least_value
from polyloom.polyhedra.elimination import Reduced
from polyloom.polyhedra.functions import compose, isl_integer, linear
from polyloom.polyhedra.lattice import Matrix, Vector

_DIM = isl.dim_type
MOST_PIECES = 16
"""So many md_homs at most are made of one statement, by the remainders of its iterators."""


def digits(rows: Matrix, points: isl.Set) -> Matrix:
    """Return the functions of the dimensions that the values of ``rows`` tell: ``rows``, or simpler ones.

    ``points``: ``{ [z] }``; ``rows``: coefficients of the dimensions. The values tell those of the result,
    and the other way round.
    """
    return tuple(digit for row in rows for digit in _digits(row, points))


def _digits(row: Vector, points: isl.Set) -> Iterator[Vector]:
    for base in sorted({abs(c) for c in row if c}, reverse=True):
        high = tuple(c // base if c % base == 0 else 0 for c in row)
        low = tuple(c if c % base else 0 for c in row)
        if any(low) and any(high) and _width(low, points) < base:
            yield from _digits(high, points)
            yield from _digits(low, points)
            return
    yield row


def _width(row: Vector, points: isl.Set) -> float:
    """Return the greatest value of a function less its least, infinite where they have no bounds."""
    value = linear(points.get_space(), [row]).get_at(0)
    ends = greatest_value(points, value), least_value(points, value)
    return int(ends[0].sub(ends[1]).to_python()) if all(end.is_int() for end in ends) else float("inf")


def with_remainders(free: Reduced, rows: Matrix) -> Reduced | None:
    """Return the instances by quotients and remainders of dimensions, for which ``rows`` have plain digits.

    A plain digit has one coefficient, or its negative, alone. None where they are plain already, or not so.
    """
    moduli = _moduli(digits(rows, free.points), free.points.dim(_DIM.set))
    if all(m == 1 for m in moduli):
        return None
    split = _split(free, moduli)
    return split if _is_plain(digits(_through(rows, moduli), split.points)) else None


def pieces(free: Reduced, rows: Matrix, dense: Collection[int]) -> tuple[isl.Set, ...]:
    """Return the instances in parts, one for each remainder of dimensions, where these are few.

    In each part the quotients alone are left, and the box is full. Where a dimension is ``dense``, because
    reads are contiguous along it, its remainders stay together.

    Source: index-set splitting (Griebl, Feautrier and Lengauer 2000).
    """
    moduli = _moduli(digits(rows, free.points), free.points.dim(_DIM.set))
    apart = all(moduli[k] == 1 for k in dense) or with_remainders(free, rows) is None
    if not 1 < prod(moduli) <= MOST_PIECES or not apart:
        return (free.points.apply(isl.Map.from_multi_aff(free.map)),)
    found = []
    for remainders in product(*(range(m) for m in moduli)):
        part = free.points
        for k, (remainder, m) in enumerate(zip(remainders, moduli, strict=True)):
            part = part.intersect(_congruent(part.get_space(), k, remainder, m))
        if not part.is_empty():
            found.append(part.apply(isl.Map.from_multi_aff(free.map)).coalesce())
    return tuple(found)


def _congruent(space: isl.Space, k: int, remainder: int, modulus: int) -> isl.Set:
    """Return ``{ [z] : z[k] mod modulus = remainder }``."""
    value = isl.Aff.var_on_domain(isl.LocalSpace.from_space(space), _DIM.set, k)
    rest = value.mod_val(isl_integer(modulus)).add_constant_val(isl_integer(-remainder))
    return isl.Set.from_basic_set(rest.zero_basic_set())


def _moduli(rows: Matrix, size: int) -> Vector:
    """Return what to divide each dimension by, so that it moves each digit by the same step as the others."""
    result = [1] * size
    for row in rows:
        step = lcm(*(abs(c) for c in row if c))
        result = [lcm(m, step // abs(c)) if c else m for m, c in zip(result, row, strict=True)]
    return tuple(result)


def _is_plain(rows: Matrix) -> bool:
    return all(len({abs(c) for c in row if c}) == 1 for row in rows)


def _split(free: Reduced, moduli: Sequence[int]) -> Reduced:
    """Return the instances with a quotient and a remainder for each dimension whose modulus is not 1."""
    identity = [tuple(int(i == k) for i in range(len(moduli))) for k in range(len(moduli))]
    size = sum(1 + (m > 1) for m in moduli)
    space = free.points.get_space().add_dims(_DIM.set, size - len(moduli))
    functions = linear(space, _through(tuple(identity), moduli))
    points = free.points.preimage_multi_aff(functions)
    for k, m in _remainders(moduli):
        points = points.lower_bound_val(_DIM.set, k, isl.Val(0)).upper_bound_val(
            _DIM.set, k, isl_integer(m - 1)
        )
    return Reduced(compose(functions, free.map), points.coalesce())


def _remainders(moduli: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the positions of the remainders among all dimensions, each with its modulus."""
    position = 0
    for m in moduli:
        position += 1
        if m > 1:
            yield position, m
            position += 1


def _through(rows: Matrix, moduli: Sequence[int]) -> Matrix:
    """Return rows over quotients and remainders."""
    return tuple(
        tuple(entry for c, m in zip(row, moduli, strict=True) for entry in ((m * c, c) if m > 1 else (c,)))
        for row in rows
    )
