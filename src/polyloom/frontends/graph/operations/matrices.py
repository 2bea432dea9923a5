"""Matrices, the last two axes: diagonals taken, placed, set; determinants and inverses of small ones.

Diagonals above the main one count as positive. Small matrices go by the signs of permutations: no pivot, so
no choice by data.

det[z] += s[i, j, k] * x[z][0][i] * x[z][1][j] * x[z][2][k]     s: 1, -1 or 0, a constant
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph.basis import (
    BinaryOp,
    Builder,
    Combine,
    Formula,
    Term,
    Value,
    expanded,
    iterators,
    refuse_if,
    scalar,
    selected,
    sliced,
    transposed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.indexing import triangle
from polyloom.frontends.graph.operations.movement import diagonal, reshaped, stacked
from polyloom.frontends.graph.operations.reductions import reduced


def matrix_turned(x: Value) -> Value:
    """Return matrices with rows as columns, a view."""
    return transposed(x, [*range(x.rank - 2), x.rank - 1, x.rank - 2])


def diagonal_of(x: Value, number: int) -> Value:
    """Return a diagonal as the last axis, a view. Raises ``Refused``."""
    refuse_if(x.rank < 2, f"a matrix of rank {x.rank}")
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
    refuse_if(
        diagonal_of(x, number).shape != d.shape or d.type is not x.type,
        f"a diagonal of shape {list(d.shape)} of a matrix of shape {list(x.shape)}",
    )
    rows, columns = x.shape[-2:]
    above, below = (triangle(b, rows, columns, number, upper=upper) for upper in (True, False))
    on = mapped(b, lambda p, q: scalar.logical(BinaryOp.AND, p, q), above, below, hint="diagonal")
    placed = placed_on_diagonal(b, d, x.shape, number, "placed")
    return mapped(b, scalar.select, expanded(on, x.shape), placed, x)


LARGEST = 4
"""Rows of a matrix at most: the work grows as n^n."""


def determinant(b: Builder, x: Value) -> Value:
    """Return the determinants of the matrices in the last two axes. Raises ``Refused``."""
    flat = _flat(b, x)
    count = flat.shape[1]
    labels = "ijkl"[:count]
    rows = [selected(flat, 1, k) for k in range(count)]
    signs = b.constant(_signs(count).astype(x.type.dtype))
    found = einsum(b, [*(f"z{label}" for label in labels), labels], "z", [*rows, signs])
    return reshaped(b, found, x.shape[:-2])


def inverse(b: Builder, x: Value) -> Value:
    """Return the inverses of the matrices in the last two axes: cofactors, divided. Raises ``Refused``."""
    flat = _flat(b, x)
    count = flat.shape[1]
    if count == 1:
        return mapped(b, lambda v: scalar.divide(1, v), x)
    cofactors = stacked(b, [_cofactors(b, flat, row) for row in range(count)], 1)
    first = [selected(flat, 1, 0), selected(cofactors, 1, 0)]
    whole = unsqueezed(reduced(b, Combine.ADD, first, [1], scalar.multiply, hint="determinant"), [2])
    found = mapped(b, scalar.divide, transposed(cofactors, (0, 2, 1)), whole)
    return reshaped(b, found, x.shape)


def _cofactors(b: Builder, flat: Value, row: int) -> Value:
    """Return ``y[z][i]``, the factor of the element ``[row][i]`` in the determinant."""
    count = flat.shape[1]
    labels = "ijkl"[:count]
    others = [k for k in range(count) if k != row]
    rows = [selected(flat, 1, k) for k in others]
    signs = b.constant(_signs(count).astype(flat.type.dtype))
    named = [f"z{labels[k]}" for k in others]
    return einsum(b, [*named, labels], f"z{labels[row]}", [*rows, signs], hint=f"cofactors{row}")


def _flat(b: Builder, x: Value) -> Value:
    """Return the matrices in one axis. Raises ``Refused`` for others than small square ones of floats."""
    refuse_if(
        x.rank < 2 or x.shape[-1] != x.shape[-2] or not x.type.is_float,
        f"matrices of {x.type.value} {list(x.shape)}",
    )
    refuse_if(
        not 1 <= x.shape[-1] <= LARGEST,
        f"a matrix of {x.shape[-1]} rows: more than {LARGEST} need pivots, which data choose",
    )
    return reshaped(b, x, (x.size // x.shape[-1] ** 2, *x.shape[-2:]))


def _signs(count: int) -> npt.NDArray[np.int64]:
    """Return 1 at even permutations, -1 at odd ones, else 0."""
    found = np.zeros((count,) * count, np.int64)
    for order in permutations(range(count)):
        swaps = sum(order[i] > order[j] for i in range(count) for j in range(i + 1, count))
        found[order] = (-1) ** swaps
    return found
