"""Conditions on iterators whose ranges are numbers: what always holds, and what never does, is left out.

Where ``i`` goes from 0 to 15999, ``2 * i + 2 <= 32000 or i == 0`` always holds: a guard for each element
less, and vectors in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from polyloom.ir.integers import FALSE, TRUE, fold
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, linear_terms

Range = tuple[int, int]
"""The least and the greatest value."""


def ranges_of(iterators: Sequence[str], extents: Sequence[IntExpression]) -> dict[str, Range]:
    """Return the values of iterators that go from 0 to below a number, at least once."""
    pairs = zip(iterators, extents, strict=True)
    return {name: (0, e.value - 1) for name, e in pairs if isinstance(e, Number) and e.value > 0}


def decided(condition: IntExpression, ranges: Mapping[str, Range]) -> IntExpression:
    """Return a condition without what the ranges decide; the number 1 or 0 where they decide all of it."""
    match condition:
        case Operation(operator="and" | "or" | "not" as operator, operands=operands):
            return fold(Operation(operator, tuple(decided(o, ranges) for o in operands)), {})
        case Operation(operator=operator, operands=(left, right)) if operator in _COMPARED:
            between = _range(linear_terms(((1, left), (-1, right))), ranges)
            holds = None if between is None else _COMPARED[operator](*between)
            return condition if holds is None else TRUE if holds else FALSE
        case _:
            return condition


def range_of(expression: IntExpression, ranges: Mapping[str, Range]) -> Range | None:
    """Return between which values a sum lies; None where one of its terms is not known."""
    return _range(linear_terms(((1, expression),)), ranges)


def _range(terms: tuple[list[tuple[int, IntExpression]], int], ranges: Mapping[str, Range]) -> Range | None:
    """Return between which values a sum lies; None where one of its terms is not known."""
    parts, low = terms
    high = low
    for factor, term in parts:
        if not isinstance(term, Name) or term.name not in ranges:
            return None
        ends = [factor * end for end in ranges[term.name]]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _below(low: int, high: int) -> bool | None:
    return True if high < 0 else False if low >= 0 else None


def _not_above(low: int, high: int) -> bool | None:
    return True if high <= 0 else False if low > 0 else None


def _equal(low: int, high: int) -> bool | None:
    return True if low == high == 0 else False if low > 0 or high < 0 else None


def _inverse(decide: Callable[[int, int], bool | None]) -> Callable[[int, int], bool | None]:
    def inverse(low: int, high: int) -> bool | None:
        holds = decide(low, high)
        return None if holds is None else not holds

    return inverse


_COMPARED: dict[str, Callable[[int, int], bool | None]] = {
    "<": _below,
    "<=": _not_above,
    ">": _inverse(_not_above),
    ">=": _inverse(_below),
    "==": _equal,
    "!=": _inverse(_equal),
}
"""Whether a difference between two values compares so with 0; None where its range leaves that open."""
