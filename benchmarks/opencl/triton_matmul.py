"""A product of matrices in Triton: blocks of the result, sums over blocks of the third extent, tuned."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCKS = ((16, 16, 32, 2), (32, 32, 32, 4), (64, 64, 32, 4), (128, 64, 32, 4), (128, 128, 32, 8))


@triton.autotune(
    configs=[
        triton.Config({"rows": m, "columns": n, "depth": k}, num_stages=s, num_warps=w)
        for m, n, k, w in _BLOCKS
        for s in (2, 3)
    ],
    key=["m", "n", "k"],
)
@triton.jit
def _kernel(a, b, c, m, n, k, rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr):
    row = (tl.program_id(0) * rows + tl.arange(0, rows))[:, None]
    column = (tl.program_id(1) * columns + tl.arange(0, columns))[None, :]
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for first in range(0, k, depth):
        at = first + tl.arange(0, depth)
        x = tl.load(a + row * k + at[None, :], mask=(row < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + at[:, None] * n + column, mask=(at[:, None] < k) & (column < n), other=0.0)
        total += tl.dot(x, y, input_precision="ieee")
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


def product(a: Any, b: Any) -> Any:
    """Return ``a @ b``, both contiguous."""
    (m, k), (_, n) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    _kernel[lambda given: (triton.cdiv(m, given["rows"]), triton.cdiv(n, given["columns"]))](a, b, c, m, n, k)
    return c
