"""Convolutions of any number of dimensions, and their gradients. Source: dtg_codegen, Sec. 2 and its slides.

Layouts: data ``x[n][c][w...]``, filters ``w[k][c][r...]`` (``c`` within the group); others come as views.
All three forms have one domain and the same three accesses, with another tensor in the output role:

    y[n][k][o] += x[n][c][s*o + d*r] * w[k][c][r]      forward (x padded before)
    x[n][c][s*o + d*r] += y[n][k][o] * w[k][c][r]      input gradient, transposed convolution (scatter)
    w[k][c][r] += x[n][c][s*o + d*r] * y[n][k][o]      filter gradient
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    Function,
    Linear,
    Refused,
    Term,
    Value,
    iterators,
    refuse_if,
    reindexed,
    scalar,
    sliced,
    unsqueezed,
)
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.movement import padded, reshaped, stacked


@dataclass(frozen=True)
class Window:
    """How a window moves over the spatial axes: one number for each."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.sizes)

    def reach(self, axis: int) -> int:
        """Return how many elements the window spans."""
        return self.dilations[axis] * (self.sizes[axis] - 1) + 1

    def positions(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return how many positions the window has on padded data of the spatial ``shape`` before padding."""
        found = []
        for k, size in enumerate(shape):
            room = size + self.before[k] + self.after[k] - self.reach(k)
            if room < 0:
                raise Refused(f"a window of {self.reach(k)} on {size} elements")
            found.append(room // self.strides[k] + 1)
        return tuple(found)

    def check(self) -> None:
        """Raise ``Refused`` for a window that moves nowhere."""
        rank = self.rank
        others = (self.strides, self.dilations, self.before, self.after)
        refuse_if(
            any(len(o) != rank for o in others),
            f"{rank} sizes of a window, and other numbers of strides, dilations or pads",
        )
        refuse_if(
            min((*self.sizes, *self.strides, *self.dilations), default=1) < 1,
            "a window, stride or dilation below 1",
        )


def same_padding(size: int, stride: int, reach: int, *, lower: bool = False) -> tuple[int, int]:
    """Return the zeros before and after with which ``ceil(size / stride)`` positions fit."""
    total = max(0, (-(-size // stride) - 1) * stride + reach - size)
    small, large = total // 2, total - total // 2
    return (large, small) if lower else (small, large)


@dataclass(frozen=True)
class _Accesses:
    """The domain (n, g, k, c, o..., r...) and the places of the three tensors in it."""

    domain: tuple[int, ...]
    x: tuple[Linear, ...]
    w: tuple[Linear, ...]
    y: tuple[Linear, ...]


def _accesses(
    window: Window, batch: int, groups: int, filters: int, channels: int, positions: Sequence[int]
) -> _Accesses:
    """``filters`` and ``channels``: of one group. Without groups the domain has no dimension for them."""
    rank = window.rank
    dims = [batch, *([groups] if groups > 1 else []), filters, *positions, channels, *window.sizes]
    axes = iterators(len(dims))
    n, rest = axes[0], list(axes[1:])
    g = rest.pop(0) if groups > 1 else Linear()
    k, o, c, r = rest[0], rest[1 : 1 + rank], rest[1 + rank], rest[2 + rank :]
    along = [s * p + d * q for s, d, p, q in zip(window.strides, window.dilations, o, r, strict=True)]
    x = (n, channels * g + c, *along)
    return _Accesses(tuple(dims), x, (filters * g + k, c, *r), (n, filters * g + k, *o))


def _check_channels(x: Value, w: Value, groups: int) -> None:
    refuse_if(x.rank != w.rank or x.rank < 2, f"data of rank {x.rank} and filters of rank {w.rank}")
    refuse_if(
        groups < 1 or x.shape[1] != groups * w.shape[1] or w.shape[0] % groups,
        f"{x.shape[1]} channels, filters {w.shape[0]} x {w.shape[1]}, {groups} groups",
    )


def convolution(
    b: Builder,
    x: Value,
    w: Value,
    window: Window,
    groups: int = 1,
    function: Function = scalar.multiply,
    hint: str = "",
) -> Value:
    """Return ``y[n][k][o] += function(x[n][c][s*o + d*r], w[k][c][r])`` of zero-padded data."""
    window.check()
    _check_channels(x, w, groups)
    positions = window.positions(x.shape[2:])
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    filters = w.shape[0] // groups
    a = _accesses(window, x.shape[0], groups, filters, w.shape[1], positions)
    shape = (x.shape[0], w.shape[0], *positions)
    return b.statement(a.domain, [Term(inside, a.x), Term(w, a.w)], shape, a.y, function, Combine.ADD, hint)


def transposed_convolution(
    b: Builder,
    y: Value,
    w: Value,
    window: Window,
    groups: int,
    shape: Sequence[int],
    *,
    gathers: bool = False,
) -> Value:
    """Return ``x[n][c][s*o + d*r] += y[n][k][o] * w[k][c][r]`` without its padding.

    The input gradient of ``convolution``; ``shape``: the spatial shape of the result. Places that no window
    reaches are 0. The padding is cut off by a view. ``gathers``: filters may meet zeros beside ``y``, which
    is faster, and gives NaN there where they are not finite.
    """
    window.check()
    refuse_if(
        y.rank != w.rank or y.shape[1] != w.shape[0] or groups < 1 or w.shape[0] % groups,
        f"{y.shape[1]} channels, filters {w.shape[0]} x {w.shape[1]}, {groups} groups",
    )
    positions = y.shape[2:]
    if gathers and _pays_gathered(window, w.shape[0] // groups):
        return _gathered(b, y, w, window, groups, shape)
    a = _accesses(window, y.shape[0], groups, w.shape[0] // groups, w.shape[1], positions)
    reach = [(p - 1) * window.strides[k] + window.reach(k) for k, p in enumerate(positions)]
    wide = [max(n, lo + m) for n, lo, m in zip(reach, window.before, shape, strict=True)]
    full = (y.shape[0], groups * w.shape[1], *wide)
    result = b.statement(
        a.domain, [Term(y, a.y), Term(w, a.w)], full, a.x, scalar.multiply, Combine.ADD, "scattered"
    )
    for k, (low, size) in enumerate(zip(window.before, shape, strict=True)):
        result = sliced(result, 2 + k, low, 1, size)
    return result


MOST_PHASES = 8
"""Statements that a transposed convolution may become."""


def _pays_gathered(window: Window, filters: int) -> bool:
    """Whether to write ``s*q + a`` by a statement for each ``a``; ``filters``: of one group.

    Windows overlap, each ``a`` meets some filters, and there are few of them. Putting them between one
    another takes as long as the few products of an element of one filter.
    """
    axes = list(zip(window.sizes, window.strides, window.dilations, strict=True))
    overlap = any(r > s for r, s, _ in axes) and all(r >= s for r, s, _ in axes)
    phases = prod(window.strides)
    return overlap and phases <= (MOST_PHASES if filters > 1 else 1) and all(1 in (s, d) for _, s, d in axes)


@dataclass(frozen=True)
class _Phase:
    """The elements ``s*q + a`` of an axis: ``x[s*q + a] += y[q + first + d*t] * w[filters[t]]``."""

    filters: tuple[int, ...]
    first: int


def _phases(window: Window, axis: int) -> list[_Phase]:
    size, s, d = window.sizes[axis], window.strides[axis], window.dilations[axis]
    found = []
    for a in range(s):
        o, r = divmod(a + window.before[axis], s)
        filters = tuple(range(r, size, s))[::-1]
        found.append(_Phase(filters, o - d * (len(filters) - 1)))
    return found


def _gathered(b: Builder, y: Value, w: Value, window: Window, groups: int, shape: Sequence[int]) -> Value:
    """Return a transposed convolution as one convolution for each phase of the steps, of turned filters.

    Where windows move by one step: ``x[n][c][i] += y[n][k][i - before + d*t] * w[k][c][R - 1 - t]``, with
    zeros around ``y``.
    """
    counts = [-(-n // s) for n, s in zip(shape, window.strides, strict=True)]
    axes = [_phases(window, k) for k in range(window.rank)]
    low = [max(0, *(-p.first for p in phases)) for phases in axes]
    reach = [
        max(p.first + d * (len(p.filters) - 1) for p in phases)
        for phases, d in zip(axes, window.dilations, strict=True)
    ]
    high = [max(0, n + m - p) for n, m, p in zip(counts, reach, y.shape[2:], strict=True)]
    inside = padded(b, y, (0, 0, *low), (0, 0, *high))
    parts = [_phase(b, inside, w, window, groups, counts, low, chosen) for chosen in product(*axes)]
    return parts[0] if len(parts) == 1 else _interleaved(b, parts, window.strides, shape)


def _phase(
    b: Builder,
    inside: Value,
    w: Value,
    window: Window,
    groups: int,
    counts: Sequence[int],
    low: Sequence[int],
    phases: Sequence[_Phase],
) -> Value:
    """Return the elements of one phase along each axis."""
    channels, filters, rank = w.shape[1], w.shape[0] // groups, window.rank
    ones = (1,) * rank
    plain = Window(tuple(len(p.filters) for p in phases), ones, window.dilations, ones, ones)
    a = _accesses(plain, inside.shape[0], groups, channels, filters, counts)
    c = iterators(len(a.domain))[2 if groups > 1 else 1]
    along = [i + n + p.first for i, n, p in zip(a.x[2:], low, phases, strict=True)]
    turned = [p.filters[0] - s * t for p, s, t in zip(phases, window.strides, a.w[2:], strict=True)]
    terms = [Term(inside, (*a.x[:2], *along)), Term(w, (a.x[1], c, *turned))]
    full = (inside.shape[0], groups * channels, *counts)
    return b.statement(a.domain, terms, full, a.y, scalar.multiply, Combine.ADD, "gathered")


def _interleaved(b: Builder, parts: Sequence[Value], strides: Sequence[int], shape: Sequence[int]) -> Value:
    """Return ``x[n][c][s*q + a]``, of which ``parts`` hold one ``a`` each, the last axis fastest."""
    counts = parts[0].shape[2:]
    together = stacked(b, parts, 2)
    axes = iterators(2 + 2 * len(strides))
    phase = Linear()
    for s, a in zip(strides, axes[3::2], strict=True):
        phase = s * phase + a
    split = [n for pair in zip(counts, strides, strict=True) for n in pair]
    apart = reindexed(together, (*parts[0].shape[:2], *split), (*axes[:2], phase, *axes[2::2]))
    wide = [n * s for n, s in zip(counts, strides, strict=True)]
    x = reshaped(b, apart, (*parts[0].shape[:2], *wide), "interleaved")
    for k, size in enumerate(shape):
        x = sliced(x, 2 + k, 0, 1, size)
    return x


def filter_gradient(
    b: Builder, x: Value, y: Value, window: Window, groups: int, shape: Sequence[int]
) -> Value:
    """Return ``w[k][c][r] += x[n][c][s*o + d*r] * y[n][k][o]``; ``shape``: of the filters."""
    window.check()
    inside = padded(b, x, (0, 0, *window.before), (0, 0, *window.after))
    a = _accesses(window, x.shape[0], groups, shape[0] // groups, shape[1], y.shape[2:])
    terms = [Term(inside, a.x), Term(y, a.y)]
    return b.statement(a.domain, terms, shape, a.w, scalar.multiply, Combine.ADD)


def with_bias(b: Builder, y: Value, bias: Value | None, axis: int = 1, hint: str = "") -> Value:
    """Return ``y`` plus a bias along an axis."""
    if bias is None:
        return y
    refuse_if(
        bias.shape != (y.shape[axis],), f"a bias of shape {list(bias.shape)} for {y.shape[axis]} channels"
    )
    others = [k for k in range(y.rank) if k != axis]
    return mapped(b, scalar.add, y, unsqueezed(bias, others), hint=hint)
