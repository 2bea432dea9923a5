"""Coordinates that are numbers of several digits, as isl finds the digits without a search.

    { f[k, h] -> PE[k//4 + 32h] : 0 <= k < 128 }    is    { f[k, h] -> PE[x] : k//4 = x mod 32 and h = x//32 }

Both are the same relation. What one PE has of ``k`` is a bound of the second one, and an integer program in
the first: with three digits isl took 16 s for it, in place of 7 ms, and within its operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import islpy as isl

from polyloom.polyhedra.bounds import integer_bounds
from polyloom.polyhedra.effort import remembered
from polyloom.polyhedra.functions import function_of

_DIM = isl.dim_type


@dataclass(frozen=True, eq=False)
class _Digit:
    """``weight`` times ``value``, which is ``low`` to ``high`` on the domain."""

    weight: int
    value: isl.Aff
    low: int
    high: int


@remembered
def with_digits(relation: isl.Map) -> isl.Map:
    """Return a relation, each digit of whose coordinates is a function of the coordinate.

    The relation itself where it has no parameters, is one function, and some coordinate is such a number; as
    it came where not. Numbers are counted from 0 on: their weights divide each other, the least one is 1.
    """
    if relation.dim(_DIM.param) or not relation.is_single_valued():
        return relation
    domain = relation.domain()
    pieces = function_of(relation).gist(domain)
    if not pieces.isa_multi_aff():
        return relation
    function = pieces.as_multi_aff()
    numbers = [_digits(function.get_at(k), domain) for k in range(function.dim(_DIM.out))]
    if all(len(digits) < 2 for digits in numbers):
        return relation
    rows = (_row(function, k, digits) for k, digits in enumerate(numbers))
    found = reduce(isl.Map.intersect, rows, isl.Map.universe(relation.get_space())).intersect_domain(domain)
    return found if found.is_equal(relation) else relation


def _digits(coordinate: isl.Aff, domain: isl.Set) -> tuple[_Digit, ...]:
    """Return the digits of a coordinate, the least one first; none where it is no such number.

    ``i//2`` may be ``i - (i + 1)//2``: all that comes from one iterator is one digit.
    """
    terms = [*_weighted(coordinate)]
    if not all(weight.is_int() and len(iterators) == 1 for weight, _, iterators in terms):
        return ()
    used = sorted({j for *_, iterators in terms for j in iterators})
    if len(used) < 2:
        return ()
    alike = ([(weight, value) for weight, value, its in terms if its == {j}] for j in used)
    found = sorted((_digit(each, domain) for each in alike), key=lambda digit: digit.weight)
    weights = [digit.weight for digit in found]
    small = all(
        b % a == 0 and d.high - d.low < b // a for d, (a, b) in zip(found, pairwise(weights), strict=False)
    )
    simple = len(found) == 2 and _is_iterator(found[0].value)
    return tuple(found) if weights[:1] == [1] and small and not simple else ()


def _is_iterator(value: isl.Aff) -> bool:
    """Whether a digit is an iterator and no quotient: of two digits isl finds both where one is left over."""
    return all(value.get_coefficient_val(_DIM.div, j).is_zero() for j in range(value.dim(_DIM.div)))


def _weighted(coordinate: isl.Aff) -> Iterator[tuple[isl.Val, isl.Aff, set[int]]]:
    """Yield iterators and quotients with their weights, and of which iterators they are."""
    space = coordinate.get_domain_local_space()
    for kind, of in ((_DIM.in_, _DIM.set), (_DIM.div, _DIM.div)):
        for j in range(coordinate.dim(kind)):
            weight = coordinate.get_coefficient_val(kind, j)
            if not weight.is_zero():
                value, iterators = isl.Aff.var_on_domain(space, of, j), range(space.dim(_DIM.set))
                yield weight, value, {i for i in iterators if value.involves_dims(_DIM.in_, i, 1)}


def _digit(terms: Sequence[tuple[isl.Val, isl.Aff]], domain: isl.Set) -> _Digit:
    weight = reduce(isl.Val.gcd, (weight.abs() for weight, _ in terms))
    value = reduce(isl.Aff.add, (value.scale_val(each.div(weight)) for each, value in terms))
    ((low, high),) = integer_bounds(domain.apply(isl.Map.from_aff(value)))
    return _Digit(int(weight.to_python()), value, low, high)


def _row(function: isl.MultiAff, k: int, digits: Sequence[_Digit]) -> isl.Map:
    """Return ``{ f[k, h] -> PE[x] : k//4 = x mod 32 and h = x//32 }`` for coordinate ``k``."""
    target = isl.LocalSpace.from_space(function.get_space().range())
    coordinate = isl.Aff.var_on_domain(target, _DIM.set, k)
    if len(digits) < 2:
        return _equal(function.get_at(k), coordinate)
    least = sum(digit.weight * digit.low for digit in digits)
    rest = function.get_at(k).get_constant_val().add(isl.Val(least))
    number = coordinate.add_constant_val(rest.neg())
    quotients = [number.scale_down_val(isl.Val(digit.weight)).floor() for digit in digits]
    above = [*(isl.Val(b.weight // a.weight) for a, b in pairwise(digits)), None]
    sides = zip(digits, quotients, [*quotients[1:], None], above, strict=True)
    equal = (
        _equal(digit.value.add_constant_val(isl.Val(-digit.low)), _remainder(quotient, upper, times))
        for digit, quotient, upper, times in sides
    )
    return reduce(isl.Map.intersect, equal)


def _remainder(quotient: isl.Aff, above: isl.Aff | None, times: isl.Val | None) -> isl.Aff:
    """Return ``x // 4 - 8 * (x // 32)``; all of ``x // 4`` for the last digit."""
    return quotient if above is None or times is None else quotient.sub(above.scale_val(times))


def _equal(left: isl.Aff, right: isl.Aff) -> isl.Map:
    """Return the pairs of which a function of the first is equal to one of the second."""
    return isl.Map.from_aff(left).apply_range(isl.Map.from_aff(right).reverse())
