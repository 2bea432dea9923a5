"""Diagonals of matrices, the last two axes: taken, placed, set. Above the main one they count as positive."""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder, Term
from polyloom.frontends.graph.linear import Formula, iterators
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.indexing import triangle
from polyloom.frontends.graph.operations.movement import diagonal
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, expanded, sliced
from polyloom.ir.expressions import BinaryOp
from polyloom.ir.program import Combine


def diagonal_of(x: Value, number: int) -> Value:
    """Return a diagonal as the last axis, a view. Raises ``Refused``."""
    if x.rank < 2:
        raise Refused(f"a matrix of rank {x.rank}")
    rows, columns = x.rank - 2, x.rank - 1
    down, right = max(0, -number), max(0, number)
    below = sliced(x, rows, down, 1, max(0, x.shape[rows] - down))
    return diagonal(sliced(below, columns, right, 1, max(0, x.shape[columns] - right)), rows, columns)


def placed_on_diagonal(b: Builder, d: Value, shape: Sequence[int], number: int, hint: str = "") -> Value:
    """Return matrices that are 0 beside a diagonal: ``y[i + down][i + right] += d[i]``."""
    axes = iterators(d.rank)
    write: list[Formula] = [*axes[:-1], axes[-1] + max(0, -number), axes[-1] + max(0, number)]
    return b.statement(d.shape, [Term(d, axes)], shape, write, lambda x: x, Combine.ADD, hint)


def with_diagonal(b: Builder, x: Value, d: Value, number: int) -> Value:
    """Return matrices with another diagonal. Raises ``Refused`` where it does not fit."""
    if diagonal_of(x, number).shape != d.shape or d.type is not x.type:
        raise Refused(f"a diagonal of shape {list(d.shape)} of a matrix of shape {list(x.shape)}")
    rows, columns = x.shape[-2:]
    above, below = (triangle(b, rows, columns, number, upper=upper) for upper in (True, False))
    on = mapped(b, lambda p, q: scalar.logical(BinaryOp.AND, p, q), above, below, hint="diagonal")
    placed = placed_on_diagonal(b, d, x.shape, number, "placed")
    return mapped(b, scalar.select, expanded(on, x.shape), placed, x)
