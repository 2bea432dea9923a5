"""How far apart two points are, at least, where they touch one element: what the fusion of loops asks.

    a[i + 1][j] and a[i'][j']    the least i' - i, over all pairs that meet: 1

Not in the papers; the question is that of every legality test of affine schedules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from polyloom.polyhedra.bounds import least_value
from polyloom.polyhedra.effort import at_most
from polyloom.polyhedra.loops.tree import IntExpression, linear_terms

_OPERATIONS = 20_000
"""What isl may spend on a pair; those of programs take some hundreds."""

Subscript = tuple[tuple[int, ...], IntExpression]
"""Coefficients of the iterators, and the rest, which names numbers that all points share."""


@dataclass(frozen=True, kw_only=True)
class Touch:
    """What the points of a zero-based box touch of an array; a subscript that is None: any element.

    ``conditions``: functions that are at least 0 at the points that count: coefficients and a constant.
    """

    extents: tuple[int, ...]
    subscripts: tuple[Subscript | None, ...]
    conditions: tuple[tuple[tuple[int, ...], int], ...] = ()


def least_distance(first: Touch, second: Touch, d: int, e: int) -> int | None:
    """Return the least ``y[e] - x[d]``, x of ``first``, y of ``second``, at one element; None: none meet.

    Numbers that have names are the same for both. Errors: ``TooHardError``.
    """
    constraints = " and ".join((*_box("x", first), *_box("y", second), *_equations(first, second)))
    names = [f"x{k}" for k in range(len(first.extents))] + [f"y{k}" for k in range(len(second.extents))]
    with at_most(_OPERATIONS, "the distance of two sweeps"):
        pairs = isl.Set(f"{{ [{', '.join(names)}] : {constraints or 'true'} }}")
        if pairs.is_empty():
            return None
        return int(least_value(pairs, isl.Aff(f"{{ [{', '.join(names)}] -> [y{e} - x{d}] }}")).to_python())


def _box(letter: str, touch: Touch) -> Iterator[str]:
    yield from (f"0 <= {letter}{k} < {n}" for k, n in enumerate(touch.extents))
    yield from (f"{_sum(letter, row)} + {constant} >= 0" for row, constant in touch.conditions)


def _equations(first: Touch, second: Touch) -> Iterator[str]:
    """Yield the equations of subscripts that differ by a known number; any element fits the others."""
    for one, other in zip(first.subscripts, second.subscripts, strict=True):
        if one is None or other is None:
            continue
        rest, constant = linear_terms([(1, one[1]), (-1, other[1])])
        if not rest:
            yield f"{_sum('x', one[0])} + {constant} = {_sum('y', other[0])}"


def _sum(letter: str, row: Sequence[int]) -> str:
    return " + ".join(f"{c}*{letter}{k}" for k, c in enumerate(row) if c) or "0"
