"""Integer linear algebra on small matrices: Hermite normal forms with exact integers.

Matrices are tuples of rows of Python integers; they have a handful of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Vector = tuple[int, ...]
Matrix = tuple[Vector, ...]


@dataclass(frozen=True)
class ColumnEchelon:
    """``matrix * transform = form``: ``transform`` unimodular, ``form`` in column echelon form.

    ``pivots[k]`` is the row of the first nonzero entry of column k; columns from ``len(pivots)`` on
    are zero. Pivots are positive.
    """

    form: Matrix
    transform: Matrix
    pivots: tuple[int, ...]


def column_echelon(matrix: Matrix, columns: int) -> ColumnEchelon:
    """Bring a matrix with the given number of columns into column echelon form, first row first.

    A row's pivot is taken from the first column in which the row has a unit, so that variables which
    stand first are expressed by later ones.
    """
    cols = [[row[k] for row in matrix] for k in range(columns)]
    unit = [[int(i == k) for i in range(columns)] for k in range(columns)]
    pivots: list[int] = []
    for row in range(len(matrix)):
        if _reduce_row(cols, unit, row, len(pivots)):
            pivots.append(row)
    return ColumnEchelon(_transpose(cols, len(matrix)), _transpose(unit, columns), tuple(pivots))


def reverse_echelon_basis(vectors: list[Vector], size: int) -> tuple[tuple[Vector, int], ...]:
    """Return a basis of the lattice that the vectors span, each with the position of its last nonzero.

    The last nonzero entries (the pivots) are positive and at different positions, in increasing order;
    at the position of a later vector's pivot an earlier vector is zero, and a later vector's entry at an
    earlier pivot is reduced modulo that pivot.
    """
    rows = [list(v) for v in vectors]
    basis: list[tuple[list[int], int]] = []
    for position in reversed(range(size)):
        pivot = _gcd_combine(rows, position)
        if pivot is not None:
            basis.append((pivot, position))
    basis.reverse()
    for k, (vector, _) in enumerate(basis):
        for earlier, at in reversed(basis[:k]):
            _subtract(vector, earlier, vector[at] // earlier[at])
    return tuple((tuple(vector), position) for vector, position in basis)


def _reduce_row(cols: list[list[int]], unit: list[list[int]], row: int, first: int) -> bool:
    """Make the row zero in all columns after ``first`` by column operations; False if it was zero."""
    while True:
        nonzero = [k for k in range(first, len(cols)) if cols[k][row]]
        if not nonzero:
            return False
        best = min(nonzero, key=lambda k: (abs(cols[k][row]), k))
        for k in nonzero:
            if k != best:
                quotient = cols[k][row] // cols[best][row]
                _subtract(cols[k], cols[best], quotient)
                _subtract(unit[k], unit[best], quotient)
        if all(not cols[k][row] for k in nonzero if k != best):
            sign = 1 if cols[best][row] > 0 else -1
            cols.insert(first, [sign * v for v in cols.pop(best)])
            unit.insert(first, [sign * v for v in unit.pop(best)])
            return True


def _gcd_combine(rows: list[list[int]], position: int) -> list[int] | None:
    """Remove from ``rows`` one vector with a positive entry at ``position``; zero that entry elsewhere."""
    while True:
        nonzero = [r for r in rows if r[position]]
        if not nonzero:
            return None
        best = min(nonzero, key=lambda r: abs(r[position]))
        for other in nonzero:
            if other is not best:
                _subtract(other, best, other[position] // best[position])
        if all(not r[position] for r in nonzero if r is not best):
            rows[:] = [r for r in rows if r is not best]
            return best if best[position] > 0 else [-v for v in best]


def _subtract(target: list[int], source: list[int], factor: int) -> None:
    if factor:
        target[:] = [t - factor * s for t, s in zip(target, source, strict=True)]


def _transpose(columns: list[list[int]], rows: int) -> Matrix:
    return tuple(tuple(column[i] for column in columns) for i in range(rows))


def determinant(matrix: Matrix) -> int:
    """Return the determinant of a small square matrix."""
    if not matrix:
        return 1
    first, *rest = matrix
    minors = (_without_column(rest, k) for k in range(len(first)))
    terms = enumerate(zip(first, minors, strict=True))
    return sum((-1) ** k * entry * determinant(minor) for k, (entry, minor) in terms if entry)


def inverse(matrix: Matrix) -> Matrix:
    """Return the inverse of a unimodular matrix, by its adjugate."""
    size = range(len(matrix))
    sign = determinant(matrix)
    rows = [[row for i, row in enumerate(matrix) if i != j] for j in size]
    return tuple(
        tuple((-1) ** (i + j) * sign * determinant(_without_column(rows[j], i)) for j in size) for i in size
    )


def _without_column(rows: Sequence[Vector], k: int) -> Matrix:
    return tuple((*row[:k], *row[k + 1 :]) for row in rows)
