"""Determinants and inverses of small matrices, by the signs of permutations: no pivot, so no choice by data.

det[z] += s[i, j, k] * x[z][0][i] * x[z][1][j] * x[z][2][k]     s: 1, -1 or 0, a constant
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
import numpy.typing as npt

from polyloom.frontends.graph import scalar
from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.operations.contraction import einsum
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.movement import reshaped, stacked
from polyloom.frontends.graph.operations.reductions import reduced
from polyloom.frontends.graph.refusal import Refused
from polyloom.frontends.graph.values import Value, selected, transposed, unsqueezed
from polyloom.ir.program import Combine

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
    if x.rank < 2 or x.shape[-1] != x.shape[-2] or not x.type.is_float:
        raise Refused(f"matrices of {x.type.value} {list(x.shape)}")
    if not 1 <= x.shape[-1] <= LARGEST:
        raise Refused(f"a matrix of {x.shape[-1]} rows: more than {LARGEST} need pivots, which data choose")
    return reshaped(b, x, (x.size // x.shape[-1] ** 2, *x.shape[-2:]))


def _signs(count: int) -> npt.NDArray[np.int64]:
    """Return 1 at even permutations, -1 at odd ones, else 0."""
    found = np.zeros((count,) * count, np.int64)
    for order in permutations(range(count)):
        swaps = sum(order[i] > order[j] for i in range(count) for j in range(i + 1, count))
        found[order] = (-1) ** swaps
    return found
