"""Bounds of loops as lists: a loop starts at the greatest of some integers and ends before the least of some.

A condition ``j >= i`` is a bound of the inner one of two loops, and a loop that moves outwards has the least
start and the greatest end that it has anywhere in the loops that it leaves: ``spread``. And what divides an
integer: ``multiple``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import gcd, prod

from polyloom.mdh.tree.nodes import For
from polyloom.polyhedra.loops.tree import (
    IntExpression,
    Name,
    Number,
    Operation,
    linear_terms,
    names_in,
    sum_of,
)

Bounds = tuple[IntExpression, ...]


def plus(a: IntExpression, b: IntExpression | int, factor: int = 1) -> IntExpression:
    """Return ``a + factor * b``."""
    return sum_of([(1, a), (factor, Number(b) if isinstance(b, int) else b)])


def times(factor: int, a: IntExpression, b: IntExpression | int = 0) -> IntExpression:
    """Return ``factor * a + b``."""
    return plus(sum_of([(factor, a)]), b)


def starts(loop: For) -> Bounds:
    """Return the integers that a loop's iterator is at least."""
    return _operands("max", loop.start)


def ends(loop: For) -> Bounds:
    """Return the integers that a loop's iterator stays below."""
    return _operands("min", loop.end)


def _operands(operator: str, expression: IntExpression) -> Bounds:
    match expression:
        case Operation(operator=found, operands=operands) if found == operator:
            return tuple(inner for o in operands for inner in _operands(operator, o))
        case _:
            return (expression,)


def greatest(bounds: Iterable[IntExpression]) -> IntExpression:
    """Return the greatest of some integers, those left out that another one is known to be no less than."""
    return _extreme("max", bounds, 1)


def least(bounds: Iterable[IntExpression]) -> IntExpression:
    """Return the least of some integers, those left out that another one is known to be no greater than."""
    return _extreme("min", bounds, -1)


def _extreme(operator: str, bounds: Iterable[IntExpression], sign: int) -> IntExpression:
    found: list[IntExpression] = []
    for bound in (inner for b in bounds for inner in _operands(operator, b)):
        if not any(_is_at_least(other, bound, sign) for other in found):
            found = [other for other in found if not _is_at_least(bound, other, sign)] + [bound]
    result = found[0]
    for bound in found[1:]:
        result = Operation(operator, (result, bound))
    return result


def _is_at_least(a: IntExpression, b: IntExpression, sign: int) -> bool:
    """Whether ``sign * (a - b)`` is a number, and not negative."""
    difference = plus(a, b, -1)
    return isinstance(difference, Number) and sign * difference.value >= 0


def bounded(loop: For, start: Iterable[IntExpression], end: Iterable[IntExpression]) -> For:
    """Return a loop with other bounds."""
    below = Operation("<", (Name(loop.iterator), least(end)))
    return replace(loop, start=greatest(start), condition=below)


def linear_in(expression: IntExpression, name: str) -> tuple[int, IntExpression] | None:
    """Return ``c, rest`` where the expression is ``c * name + rest``; None where it is not linear."""
    terms, constant = linear_terms([(1, expression)])
    if any(name in names_in(term) for _, term in terms if term != Name(name)):
        return None
    coefficient = sum(c for c, term in terms if term == Name(name))
    rest = [(c, term) for c, term in terms if term != Name(name)]
    return coefficient, sum_of([*rest, (1, Number(constant))])


def spread(loop: For, crossed: Sequence[For]) -> tuple[Bounds, Bounds]:
    """Return bounds of a loop that hold wherever it is in the loops around it, ``crossed``, the inner last.

    A bound that is not linear in one of their iterators is left out.
    """
    lower, upper = starts(loop), ends(loop)
    for around in reversed(crossed):
        lower = tuple(b for bound in lower for b in _over(bound, around, up=False))
        upper = tuple(plus(b, 1) for bound in upper for b in _over(plus(bound, -1), around, up=True))
    return lower, upper


def _over(expression: IntExpression, loop: For, up: bool) -> Bounds:
    """Return what an expression is over a loop at most (``up``), or at least: the extreme of the result."""
    found = linear_in(expression, loop.iterator)
    if found is None:
        return ()
    coefficient, rest = found
    if not coefficient:
        return (expression,)
    last = (coefficient > 0) == up
    places = tuple(plus(e, -1) for e in ends(loop)) if last else starts(loop)
    return tuple(times(coefficient, place, rest) for place in places)


def inner_range(loop: For, point: For) -> tuple[IntExpression, IntExpression] | None:
    """Return the part of a loop's range that it has at all points of a loop around it, from number to number.

    None where a bound is not linear in the point.
    """
    lower = [_tight(bound, point, up=True) for bound in starts(loop)]
    upper = [_tight(bound, point, up=False) for bound in ends(loop)]
    if any(bound is None for bound in (*lower, *upper)):
        return None
    return greatest(b for b in lower if b is not None), least(b for b in upper if b is not None)


def _tight(expression: IntExpression, loop: For, up: bool) -> IntExpression | None:
    """Return an expression's extreme over a loop from a number to a number; None where it is not linear."""
    found = linear_in(expression, loop.iterator)
    if found is None:
        return None
    coefficient, rest = found
    last = (coefficient > 0) == up
    return times(coefficient, plus(loop.end, -1) if last else loop.start, rest)


def not_negative(condition: IntExpression) -> Bounds | None:
    """Return the integers that are not negative where a comparison holds; None for another condition."""
    match condition:
        case Operation(operator=">=", operands=(a, b)) | Operation(operator="<=", operands=(b, a)):
            return (plus(a, b, -1),)
        case Operation(operator=">", operands=(a, b)) | Operation(operator="<", operands=(b, a)):
            return (plus(plus(a, b, -1), -1),)
        case Operation(operator="==", operands=(a, b)):
            return plus(a, b, -1), plus(b, a, -1)
        case _:
            return None


def end_of(condition: IntExpression, name: str) -> IntExpression | None:
    """Return where numbers for which a condition holds end: it is ``name < end``; None where it is not so."""
    found = not_negative(condition)
    linear = linear_in(found[0], name) if found is not None and len(found) == 1 else None
    return plus(linear[1], 1) if linear is not None and linear[0] == -1 else None


def bound_of(condition: IntExpression, order: Sequence[str]) -> tuple[str, Bounds] | None:
    """Return the innermost iterator of a condition, and what is not negative; None where it is no bound.

    ``order``: the iterators, the outermost loop's first. One of which there is more than once bounds its loop
    by a quotient, where no other loop's iterator is in it.
    """
    found, names = not_negative(condition), names_in(condition)
    spoken = [name for name in order if name in names]
    if found is None or not spoken:
        return None
    for expression in found:
        linear = [linear_in(expression, name) for name in spoken]
        if None in linear or linear[-1] is None or linear[-1][0] == 0:
            return None
        if abs(linear[-1][0]) != 1 and len(spoken) > 1:
            return None
    return spoken[-1], found


def limited(loop: For, expression: IntExpression) -> For:
    """Return the part of a loop where an expression that is linear in its iterator is not negative.

    ``2 * i + 3 - n``: from ``-floor((3 - n) / 2)`` on.
    """
    found = linear_in(expression, loop.iterator)
    assert found is not None and found[0]
    coefficient, rest = found
    if coefficient > 0:
        return bounded(loop, (*starts(loop), times(-1, _quotient(rest, coefficient))), ends(loop))
    return bounded(loop, starts(loop), (*ends(loop), plus(_quotient(rest, -coefficient), 1)))


def _quotient(rest: IntExpression, divisor: int) -> IntExpression:
    if isinstance(rest, Number):
        return Number(rest.value // divisor)
    return rest if divisor == 1 else Operation("floor", (rest, Number(divisor)))


def multiple(expression: IntExpression, known: Mapping[str, int]) -> int:
    """Return a number that always divides an integer; 0 where that is always 0. ``known``: of names."""
    match expression:
        case Number(value=value):
            return abs(value)
        case Name(name=name):
            return known.get(name, 1)
        case Operation(operator="*", operands=operands):
            return prod(multiple(operand, known) for operand in operands)
        case Operation(operator="+" | "-" | "min" | "max" | "%", operands=operands):
            return gcd(*(multiple(operand, known) for operand in operands))
        case Operation(operator="?", operands=(_, then, otherwise)):
            return gcd(multiple(then, known), multiple(otherwise, known))
        case _:
            return 1
