"""What a window sees as axes of its own, and back: patches of images, and images from patches."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    Formula,
    Linear,
    Term,
    Value,
    iterators,
    refuse_if,
    reindexed,
    sliced,
)
from polyloom.frontends.graph.operations.convolution import Window
from polyloom.frontends.graph.operations.movement import padded, reshaped


def patches(b: Builder, x: Value, window: Window) -> Value:
    """Return ``y[n][c][r...][o...] = x[n][c][s*o + d*r]``, a view of the data with zeros around it."""
    window.check()
    refuse_if(x.rank != window.rank + 2, f"a window of {window.rank} dimensions on data of rank {x.rank}")
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    shape = (*x.shape[:2], *window.sizes, *window.positions(x.shape[2:]))
    return reindexed(inside, shape, _seen(window))


def columns_added(b: Builder, columns: Value, shape: Sequence[int], window: Window) -> Value:
    """Return an image of a spatial ``shape``: what columns ``[n][c, r...][o...]`` hold of an element, added.

    ``x[n][c][s*o + d*r] += y[n][c][r...][o...]``, what ``patches`` took apart. Raises ``Refused``.
    """
    window.check()
    count, positions = prod(window.sizes), window.positions(shape)
    refuse_if(
        columns.rank != 3 or columns.shape[1] % count or columns.shape[2] != prod(positions),
        f"columns of shape {list(columns.shape)} of an image of shape {list(shape)}",
    )
    images, channels = columns.shape[0], columns.shape[1] // count
    parts = reshaped(b, columns, (images, channels, *window.sizes, *positions))
    full = [n + lo + hi for n, lo, hi in zip(shape, window.before, window.after, strict=True)]
    terms, whole = [Term(parts, iterators(parts.rank))], (images, channels, *full)
    added = b.statement(parts.shape, terms, whole, _seen(window), lambda v: v, Combine.ADD, "added")
    for k, size in enumerate(shape):
        added = sliced(added, 2 + k, window.before[k], 1, size)
    return added


def _seen(window: Window) -> Sequence[Formula]:
    """Return the places of (n, c, r..., o...) in padded data."""
    axes = iterators(2 + 2 * window.rank)
    r, o = axes[2 : 2 + window.rank], axes[2 + window.rank :]
    along: list[Linear] = [
        s * p + d * q for s, d, p, q in zip(window.strides, window.dilations, o, r, strict=True)
    ]
    return (*axes[:2], *along)
