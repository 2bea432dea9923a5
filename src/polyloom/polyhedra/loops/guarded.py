"""Loops read off the constraints of sets: larger than needed, with a condition inside.

Where isl's generator takes too long or errs, these do. Nothing is asked of isl but what constraints it
keeps, so that there is little to go wrong:

    for (c0 = 0; c0 <= n - 1; c0++)
      for (c1 = min(0, c0); c1 <= max(c0, m); c1++)
        if (c1 >= c0 and c1 <= m) S1(c0, c1)
        if (c1 <= c0) S2(c0, c1)

Not in the papers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import islpy as isl

from polyloom.polyhedra.functions import isl_integer
from polyloom.polyhedra.loops.tree import (
    Branch,
    Instance,
    IntExpression,
    Loop,
    Name,
    Number,
    Operation,
    Part,
    Tree,
    sum_of,
)

_DIM = isl.dim_type
Times = Sequence[int | tuple[int, int]]
"""A schedule: constants, and iterators by their number with the sign in which they count."""


class NoBounds(Exception):
    """A set has no constraints from which a loop could be read; the text is its tuple."""


@dataclass(frozen=True, eq=False)
class Timed:
    """The instances of a statement, and when they run; instances of one time in any order."""

    domain: isl.Set
    times: Times


def guarded_loops(statements: Sequence[Timed], context: isl.Set) -> Tree:
    """Return loops that visit exactly the instances where ``context`` holds, in the order of their times.

    Errors: ``NoBounds`` where an iterator has no bound.
    """
    parameters = {context.get_dim_name(_DIM.param, k) or "" for k in range(context.dim(_DIM.param))}
    known = [Timed(s.domain.compute_divs(), s.times) for s in statements if not s.domain.plain_is_empty()]
    return tuple(_level([(s, {}) for s in known], 0, _names(parameters)))


def _names(taken: set[str]) -> Iterator[str]:
    return (name for k in range(1000) if (name := f"c{k}") not in taken)


_Here = tuple[Timed, dict[int, IntExpression]]
"""A statement, with the values of the iterators whose loops are around."""


def _level(here: Sequence[_Here], place: int, names: Iterator[str]) -> Iterator[Part]:
    """Yield what runs the statements from one dimension of the schedule on."""
    if not here:
        return
    if place == len(here[0][0].times):
        for timed, values in here:
            yield _guarded(timed.domain, values)
        return
    fixed = sorted({t for timed, _ in here if isinstance(t := timed.times[place], int)})
    for number in fixed:
        yield from _level([h for h in here if h[0].times[place] == number], place + 1, names)
    moving = [h for h in here if not isinstance(h[0].times[place], int)]
    if moving and fixed:
        raise NoBounds(moving[0][0].domain.get_tuple_name())
    if moving:
        yield _loop(moving, place, names)


def _loop(here: Sequence[_Here], place: int, names: Iterator[str]) -> Loop[Part]:
    name = next(names)
    lows: list[IntExpression] = []
    highs: list[IntExpression] = []
    inner: list[_Here] = []
    for timed, values in here:
        time = timed.times[place]
        assert not isinstance(time, int)
        dimension, sign = time
        for box in timed.domain.get_basic_sets():
            low, high = _range(box, dimension, values)
            lows.append(low if sign > 0 else sum_of([(-1, high)]))
            highs.append(high if sign > 0 else sum_of([(-1, low)]))
        inner.append((timed, {**values, dimension: sum_of([(sign, Name(name))])}))
    condition = Operation("<=", (Name(name), _extreme("max", highs)))
    return Loop(
        iterator=name,
        start=_extreme("min", lows),
        condition=condition,
        step=Number(1),
        body=tuple(_level(inner, place + 1, names)),
    )


def _extreme(operator: str, values: Iterable[IntExpression]) -> IntExpression:
    return reduce(lambda a, b: Operation(operator, (a, b)), dict.fromkeys(values))


def _range(
    box: isl.BasicSet, dimension: int, values: dict[int, IntExpression]
) -> tuple[IntExpression, IntExpression]:
    """Return bounds of an iterator by those around it."""
    outer = box.project_out(_DIM.set, dimension + 1, box.dim(_DIM.set) - dimension - 1).remove_divs()
    lows: list[IntExpression] = []
    highs: list[IntExpression] = []
    for constraint in outer.get_constraints():
        factor = _integer(constraint.get_coefficient_val(_DIM.set, dimension))
        if not factor:
            continue
        rest = _rest(constraint, values, dimension)
        for sign in (1, -1) if constraint.is_equality() else (1,):
            bound = _divided([(sign * c, e) for c, e in rest], abs(factor))
            if sign * factor > 0:
                lows.append(sum_of([(-1, bound)]))
            else:
                highs.append(bound)
    if not lows or not highs:
        raise NoBounds(box.get_tuple_name())
    return _extreme("max", lows), _extreme("min", highs)


def _rest(
    constraint: isl.Constraint, values: dict[int, IntExpression], but: int
) -> list[tuple[int, IntExpression]]:
    terms: list[tuple[int, IntExpression]] = [(_integer(constraint.get_constant_val()), Number(1))]
    for k in range(constraint.dim(_DIM.param)):
        factor = _integer(constraint.get_coefficient_val(_DIM.param, k))
        if factor:
            terms.append((factor, Name(constraint.get_dim_name(_DIM.param, k) or "")))
    for k, value in values.items():
        if k != but:
            terms.append((_integer(constraint.get_coefficient_val(_DIM.set, k)), value))
    return terms


def _divided(terms: Sequence[tuple[int, IntExpression]], by: int) -> IntExpression:
    """Return the largest integer that is no larger than a quotient."""
    total = sum_of(terms)
    return total if by == 1 else Operation("floor", (total, Number(by)))


def _guarded(domain: isl.Set, values: dict[int, IntExpression]) -> Part:
    """Return an instance under the condition that the domain has it."""
    count = domain.dim(_DIM.set)
    arguments = tuple(values[k] for k in range(count))
    instance = Instance(domain.get_tuple_name() or "", arguments)
    boxes = [_condition(box, values) for box in domain.get_basic_sets()]
    if any(box is None for box in boxes):
        return instance
    return Branch(_joined("or", [box for box in boxes if box is not None]), (instance,), ())


def _condition(box: isl.BasicSet, values: dict[int, IntExpression]) -> IntExpression | None:
    quotients: list[IntExpression] = []
    for k in range(box.dim(_DIM.div)):
        quotients.append(_quotient(box.get_div(k), values, quotients, box))
    found: list[IntExpression] = []
    for constraint in box.get_constraints():
        terms = _rest(constraint, values, -1)
        for k, quotient in enumerate(quotients):
            terms.append((_integer(constraint.get_coefficient_val(_DIM.div, k)), quotient))
        operator = "==" if constraint.is_equality() else ">="
        found.append(Operation(operator, (sum_of(terms), Number(0))))
    return _joined("and", found) if found else None


def _quotient(
    div: isl.Aff, values: dict[int, IntExpression], before: Sequence[IntExpression], box: isl.BasicSet
) -> IntExpression:
    """Return the value of a quotient of a basic set, which may speak of those before it."""
    if div.is_nan():
        raise NoBounds(box.get_tuple_name())
    by = _integer(div.get_denominator_val())

    def factor(value: isl.Val) -> int:
        return _integer(value.mul(isl_integer(by)))

    terms: list[tuple[int, IntExpression]] = [(factor(div.get_constant_val()), Number(1))]
    for k in range(div.dim(_DIM.param)):
        name = div.get_dim_name(_DIM.param, k) or ""
        terms.append((factor(div.get_coefficient_val(_DIM.param, k)), Name(name)))
    for k, value in values.items():
        terms.append((factor(div.get_coefficient_val(_DIM.in_, k)), value))
    for k, quotient in enumerate(before):
        terms.append((factor(div.get_coefficient_val(_DIM.div, k)), quotient))
    return _divided(terms, by)


def _joined(operator: str, conditions: Sequence[IntExpression]) -> IntExpression:
    return reduce(lambda a, b: Operation(operator, (a, b)), conditions)


def _integer(value: isl.Val) -> int:
    return int(value.to_python())
