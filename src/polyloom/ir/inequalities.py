"""Conditions as conjunctions of affine inequalities: functions that are at least 0 where they hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from polyloom.ir.host import Index
from polyloom.ir.integers import integer
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, names_in, sum_of


def condition_of(inequalities: Sequence[Index], iterators: Sequence[str]) -> IntExpression | None:
    """Return the condition that all of these are at least 0; None where there are none."""
    return conjunction([_at_least_zero(affine, iterators) for affine in inequalities])


def _at_least_zero(affine: Index, iterators: Sequence[str]) -> IntExpression:
    pairs = zip(affine.coefficients, iterators, strict=True)
    terms: list[tuple[int, IntExpression]] = [(c, Name(name)) for c, name in pairs if c]
    return Operation(">=", (sum_of([*terms, (1, Number(affine.constant))]), Number(0)))


def inequalities_of(condition: IntExpression | None, iterators: Sequence[str]) -> tuple[Index, ...] | None:
    """Return affine functions that are at least 0 where a condition holds; None where it is of another form.

    An equation becomes two. No condition: none.
    """
    differences = (d for part in conjuncts(condition) for d in _differences(part))
    found = [_affine(difference, iterators) for difference in differences]
    known = tuple(affine for affine in found if affine is not None)
    return known if len(known) == len(found) else None


def conjuncts(condition: IntExpression | None) -> Iterator[IntExpression]:
    """Yield the conditions that hold together; None: there is none."""
    match condition:
        case None:
            return
        case Operation(operator="and", operands=operands):
            for operand in operands:
                yield from conjuncts(operand)
        case _:
            yield condition


def conjunction(conditions: Sequence[IntExpression]) -> IntExpression | None:
    """Return the condition that all of these hold; None where there are none."""
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else Operation("and", tuple(conditions))


def determined(condition: IntExpression | None, known: Mapping[str, int]) -> dict[str, int]:
    """Return what a condition says of names: that of ``n`` in ``n == h * w`` where h and w are known."""
    found = dict(known)
    for part in conjuncts(condition):
        match part:
            case Operation(operator="==", operands=(Name(name=name), value)) if names_in(value) <= set(found):
                found.setdefault(name, integer(value, found))
            case _:
                pass
    return {name: value for name, value in found.items() if name not in known}


def without_products(condition: IntExpression | None) -> IntExpression | None:
    """Return what of a condition multiplies no two names: it holds where the condition does."""
    return conjunction([part for part in conjuncts(condition) if not _multiplies_names(part)])


def _multiplies_names(expression: IntExpression) -> bool:
    match expression:
        case Operation(operator=operator, operands=operands):
            named = sum(bool(names_in(operand)) for operand in operands)
            return (operator == "*" and named > 1) or any(map(_multiplies_names, operands))
        case _:
            return False


_DIFFERENCES = {
    "<=": [(-1, 1, 0)],
    "<": [(-1, 1, -1)],
    ">=": [(1, -1, 0)],
    ">": [(1, -1, -1)],
    "==": [(1, -1, 0), (-1, 1, 0)],
}


def _differences(comparison: IntExpression) -> Iterator[IntExpression | None]:
    """Yield what is at least 0 where a comparison holds; None where it is no such comparison."""
    match comparison:
        case Operation(operator=sign, operands=(a, b)) if sign in _DIFFERENCES:
            for first, second, constant in _DIFFERENCES[sign]:
                yield sum_of([(first, a), (second, b), (1, Number(constant))])
        case _:
            yield None


def _affine(expression: IntExpression | None, iterators: Sequence[str]) -> Index | None:
    """Return a sum as an affine function of the iterators; None where it is none."""
    coefficients = [0] * len(iterators)
    constant = 0
    for factor, term in () if expression is None else _summands(1, expression):
        match term:
            case Number(value=value):
                constant += factor * value
            case Name(name=name) if name in iterators:
                coefficients[iterators.index(name)] += factor
            case _:
                return None
    return None if expression is None else Index.of(tuple(coefficients), constant)


def _summands(factor: int, expression: IntExpression) -> Iterator[tuple[int, IntExpression]]:
    match expression:
        case Operation(operator="+", operands=operands):
            for operand in operands:
                yield from _summands(factor, operand)
        case Operation(operator="-", operands=(first, *rest)):
            yield from _summands(factor if rest else -factor, first)
            for operand in rest:
                yield from _summands(-factor, operand)
        case Operation(operator="*", operands=(Number(value=value), operand)):
            yield from _summands(factor * value, operand)
        case _:
            yield factor, expression
