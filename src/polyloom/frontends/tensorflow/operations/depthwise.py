"""Depthwise convolutions and their gradients: filters ``w[r][s][c][m]`` make channel ``c * M + m``.

y[n][M*c + m][o] += x[n][c][s*o + d*r] * w[r][c][m]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from polyloom.frontends.graph.core import (
    Builder,
    Combine,
    Linear,
    Term,
    Value,
    Window,
    iterators,
    padded,
    scalar,
    sliced,
)


@dataclass(frozen=True)
class _Accesses:
    """The domain (n, c, m, o..., r...) and the places of the three tensors in it."""

    domain: tuple[int, ...]
    x: tuple[Linear, ...]
    w: tuple[Linear, ...]
    y: tuple[Linear, ...]


def _accesses(
    window: Window, batch: int, channels: int, multiplier: int, positions: Sequence[int]
) -> _Accesses:
    rank = window.rank
    domain = (batch, channels, multiplier, *positions, *window.sizes)
    axes = iterators(len(domain))
    n, c, m = axes[:3]
    o, r = axes[3 : 3 + rank], axes[3 + rank :]
    along = [s * p + d * q for s, d, p, q in zip(window.strides, window.dilations, o, r, strict=True)]
    return _Accesses(domain, (n, c, *along), (*r, c, m), (n, multiplier * c + m, *o))


def forward(b: Builder, x: Value, w: Value, window: Window) -> Value:
    """Return the convolution of zero-padded data ``x[n][c][h][w]``."""
    window.check()
    positions = window.positions(x.shape[2:])
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    channels, multiplier = w.shape[2:]
    a = _accesses(window, x.shape[0], channels, multiplier, positions)
    shape = (x.shape[0], channels * multiplier, *positions)
    return b.statement(a.domain, [Term(inside, a.x), Term(w, a.w)], shape, a.y, scalar.multiply, Combine.ADD)


def input_gradient(b: Builder, dy: Value, w: Value, window: Window, space: Sequence[int]) -> Value:
    """Return the gradient by the data, whose spatial shape is ``space``, in scatter form."""
    window.check()
    channels, multiplier = w.shape[2:]
    a = _accesses(window, dy.shape[0], channels, multiplier, dy.shape[2:])
    full = [n + lo + hi for n, lo, hi in zip(space, window.before, window.after, strict=True)]
    terms = [Term(dy, a.y), Term(w, a.w)]
    shape = (dy.shape[0], channels, *full)
    result = b.statement(a.domain, terms, shape, a.x, scalar.multiply, Combine.ADD, "scattered")
    for k, size in enumerate(space):
        result = sliced(result, 2 + k, window.before[k], 1, size)
    return result


def filter_gradient(b: Builder, inside: Value, dy: Value, window: Window, sizes: Sequence[int]) -> Value:
    """Return the gradient by the filters, of shape ``sizes``; ``inside``: the data with their padding."""
    window.check()
    a = _accesses(window, dy.shape[0], sizes[2], sizes[3], dy.shape[2:])
    terms = [Term(inside, a.x), Term(dy, a.y)]
    return b.statement(a.domain, terms, sizes, a.w, scalar.multiply, Combine.ADD)
