"""Diagonals of matrices: made, taken, set."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    Context,
    From,
    Refused,
    Table,
    Value,
    X,
    check_constant,
    diagonal_of,
    only,
    op,
    placed_on_diagonal,
    refuse_if,
    value,
    view,
    with_diagonal,
)


def _number(c: Context, position: int) -> int:
    """Return which diagonal is meant: above the main one if positive. Raises ``Refused`` for several."""
    found = c.integers(position, "its diagonals") if c.optional(position) is not None else [0]
    refuse_if(len({*found}) != 1, f"the diagonals {found}")
    return found[0]


def _made(c: Context) -> Sequence[Value]:
    """MatrixDiagV3(diagonal, number, rows, columns, padding): ``y[i - low][i + high] += d[i]``."""
    b, d, number = c.b, c.input(0), _number(c, 1)
    refuse_if(d.rank == 0, "a diagonal without an axis")
    down, right = max(0, -number), max(0, number)
    stated = [c.whole(k, "its size", -1) for k in (2, 3)]
    sizes = [n if n > 0 else d.shape[-1] + by for n, by in zip(stated, (down, right), strict=True)]
    if c.optional(4) is not None and c.one(4, "its padding") != 0:
        raise Refused("a matrix that is not 0 beside its diagonal")
    shape = [*d.shape[:-1], *sizes]
    check_constant(shape, d.type.size)
    return only(placed_on_diagonal(b, d, shape, number))


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
    # MatrixDiagPartV3(matrix, number, padding), a view.
    **dict.fromkeys(
        ("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3"),
        view(diagonal_of, X, From(lambda c: _number(c, 1))),
    ),
    **dict.fromkeys(
        ("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3"),
        op(with_diagonal, X, value(1), From(lambda c: _number(c, 2))),
    ),
    "Diag": _whole,
    "DiagPart": _trace,
}
