"""In which order the instances of a statement must be carried out one after another.

Instances that write the same element are combined in lexicographic order. Instances that write
different elements may be carried out together, as one operation on arrays. So the dimensions of a
domain fall into *loops*, walked one value after another, and the rest, taken as a whole:

    y[k][w] += x[w + r] * W[k][r]     loop over r; k and w as a whole
    dx[w + r] += dy[w] * W[r]         loop over r backwards (w rises where r falls); w as a whole
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Vector = tuple[int, ...]
Rows = Sequence[Vector]


@dataclass(frozen=True)
class WalkedDimension:
    """A dimension that is walked value by value.

    ``before``: the loops are nested in the order of this number.
    """

    dimension: int
    backwards: bool
    before: int


def loops(extents: Sequence[int], rows: Rows) -> tuple[WalkedDimension, ...]:
    """Return the loops, the outermost first, such that walking them in this order keeps the order of terms.

    ``rows``: of each index of the write, the coefficients of the dimensions.

    Two instances write the same element iff their difference lies in the kernel of the write's linear
    part, which is a direct sum over groups of dimensions that share no index. Where a group's kernel is
    one line, any dimension on which it moves tells its points apart: the shortest is chosen, and walked
    backwards where it falls as the line's first dimension rises. Otherwise dimensions are taken as a
    whole from the last on, as long as their columns are independent; the others are loops.
    """
    moving = [k for k, n in enumerate(extents) if n > 1]
    found = [loop for group in _groups(rows, moving) for loop in _loops_of(extents, rows, group)]
    return tuple(sorted(found, key=lambda loop: loop.before))


def _groups(rows: Rows, dimensions: Sequence[int]) -> list[list[int]]:
    """Return the dimensions in groups; two that appear in one index are in the same group."""
    groups: list[list[int]] = [[k] for k in dimensions]
    for row in rows:
        sharing = [g for g in groups if any(row[k] for k in g)]
        if sharing:
            groups = [g for g in groups if g not in sharing] + [sorted(k for g in sharing for k in g)]
    return groups


def _loops_of(extents: Sequence[int], rows: Rows, group: Sequence[int]) -> list[WalkedDimension]:
    columns = [tuple(row[k] for row in rows) for k in group]
    lines = kernel(columns)
    if not lines:
        return []
    if len(lines) > 1:
        return [WalkedDimension(k, False, k) for k in dependent(group, columns)]
    return [_across_line(extents, group, lines[0])]


def _across_line(extents: Sequence[int], group: Sequence[int], line: Sequence[Fraction]) -> WalkedDimension:
    moving = [(k, step) for k, step in zip(group, line, strict=True) if step]
    first, first_step = moving[0]
    chosen, step = min(moving, key=lambda pair: extents[pair[0]])
    return WalkedDimension(chosen, (step > 0) != (first_step > 0), first)


def dependent(group: Sequence[int], columns: Sequence[Vector]) -> list[int]:
    """Return the dimensions whose column depends on later columns that are kept."""
    kept: list[Vector] = []
    dependent = []
    for k, column in zip(reversed(group), reversed(columns), strict=True):
        if kernel([*kept, column]):
            dependent.append(k)
        else:
            kept.append(column)
    return dependent


def kernel(columns: Sequence[Vector]) -> list[list[Fraction]]:
    """Return a basis of the vectors ``v`` with ``sum(v[k] * columns[k]) == 0``."""
    rows = [[Fraction(x) for x in row] for row in zip(*columns, strict=True)]
    pivots: dict[int, list[Fraction]] = {}
    for k in range(len(columns)):
        row = next((r for r in rows if r[k]), None)
        if row is not None:
            rows = [_without(r, row, k) for r in rows if r is not row]
            pivots = {p: _without(r, row, k) for p, r in pivots.items()} | {k: [x / row[k] for x in row]}
    free = [k for k in range(len(columns)) if k not in pivots]
    return [_basis_vector(f, len(columns), pivots) for f in free]


def _without(row: list[Fraction], pivot: list[Fraction], k: int) -> list[Fraction]:
    factor = row[k] / pivot[k]
    return [x - factor * y for x, y in zip(row, pivot, strict=True)]


def _basis_vector(free: int, count: int, pivots: dict[int, list[Fraction]]) -> list[Fraction]:
    return [Fraction(int(k == free)) if k not in pivots else -pivots[k][free] for k in range(count)]
