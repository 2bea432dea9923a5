"""Diagonals of matrices: made, taken, set."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.builder import check_constant
from polyloom.frontends.graph.context import Context, Table, only
from polyloom.frontends.graph.operations.diagonals import diagonal_of, placed_on_diagonal, with_diagonal
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value


def _number(c: Context, position: int) -> int:
    """Return which diagonal is meant: above the main one if positive. Raises ``Refused`` for several."""
    found = c.integers(position, "its diagonals") if c.optional(position) is not None else [0]
    if len({*found}) != 1:
        raise Refused(f"the diagonals {found}")
    return found[0]


def _made(c: Context) -> Sequence[Value]:
    """MatrixDiagV3(diagonal, number, rows, columns, padding): ``y[i - low][i + high] += d[i]``."""
    b, d, number = c.builder, c.input(0), _number(c, 1)
    if d.rank == 0:
        raise Refused("a diagonal without an axis")
    down, right = max(0, -number), max(0, number)
    stated = [c.whole(k, "its size", -1) for k in (2, 3)]
    sizes = [n if n > 0 else d.shape[-1] + by for n, by in zip(stated, (down, right), strict=True)]
    if c.optional(4) is not None and c.one(4, "its padding") != 0:
        raise Refused("a matrix that is not 0 beside its diagonal")
    shape = [*d.shape[:-1], *sizes]
    check_constant(shape, d.type.size)
    return only(placed_on_diagonal(b, d, shape, number))


def _taken(c: Context) -> Sequence[Value]:
    """MatrixDiagPartV3(matrix, number, padding), a view."""
    return only(diagonal_of(c.input(), _number(c, 1)))


def _set(c: Context) -> Sequence[Value]:
    """MatrixSetDiagV3(matrix, diagonal, number)."""
    return only(with_diagonal(c.builder, c.input(0), c.input(1), _number(c, 2)))


def _whole(c: Context) -> Sequence[Value]:
    """Diag of a vector."""
    if c.input().rank != 1:
        raise Refused(f"the diagonal of rank {2 * c.input().rank}")
    return _made(c)


def _trace(c: Context) -> Sequence[Value]:
    """DiagPart of a matrix."""
    if c.input().rank != 2:
        raise Refused(f"the diagonal of rank {c.input().rank}")
    return only(diagonal_of(c.input(), 0))


OPERATIONS: Table = {
    **dict.fromkeys(("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3"), _made),
    **dict.fromkeys(("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"), _taken),
    **dict.fromkeys(("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"), _set),
    "Diag": _whole,
    "DiagPart": _trace,
}
