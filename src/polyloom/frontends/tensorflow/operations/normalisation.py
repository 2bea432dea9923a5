"""Softmax, normalisations and losses, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polyloom.frontends.graph.core import (
    LAST,
    Combine,
    CompareOp,
    Context,
    Expression,
    Table,
    Value,
    X,
    batch_norm,
    channel_sums,
    expanded,
    iota,
    local_response,
    log_softmax,
    mapped,
    normalised,
    only,
    op,
    reduced,
    refuse_if,
    scalar,
    softmax,
    squeezed,
    unsqueezed,
)
from polyloom.frontends.tensorflow.operations.linear import channels_first, channels_last, given_back


def _local_response(c: Context) -> Sequence[Value]:
    """LRN over the channels, which are always the last axis."""
    radius = c.integer("depth_radius", 5)
    numbers = (c.number("alpha", 1.0), c.number("beta", 0.5), c.number("bias", 1.0))
    x = channels_first(c, c.input())
    return only(given_back(c, local_response(c.b, x, (radius, radius), *numbers)))


def _local_response_gradient(c: Context) -> Sequence[Value]:
    """LRNGrad(dy, x, y): ``dx = dy * s^-beta - 2 alpha beta x * (sum over the window of dy * y / s)``.

    ``s = bias + alpha * sum of squares`` over the window, in which each channel is as far as it sees.
    """
    b, radius = c.b, c.integer("depth_radius", 5)
    alpha, beta, bias = c.number("alpha", 1.0), c.number("beta", 0.5), c.number("bias", 1.0)
    dy, x, y = (channels_first(c, c.input(k)) for k in range(3))
    total = channel_sums(b, x, (radius, radius), scalar.square)
    spread = mapped(b, lambda s: scalar.add(scalar.multiply(s, alpha), bias), total, hint="spread")
    part = mapped(b, lambda d, v, s: scalar.divide(scalar.multiply(d, v), s), dy, y, spread, hint="part")
    parts = channel_sums(b, part, (radius, radius), lambda v: v)

    def function(d: Expression, v: Expression, s: Expression, p: Expression) -> Expression:
        own = scalar.divide(d, scalar.power(s, beta))
        return scalar.subtract(own, scalar.multiply(scalar.multiply(v, 2 * alpha * beta), p))

    return only(given_back(c, mapped(b, function, dy, x, spread, parts)))


@dataclass(frozen=True)
class _Channels:
    """``at``: the axis of the channels; ``others``: all but it; ``count``: elements of one channel."""

    at: int
    others: tuple[int, ...]
    count: int


def _channels(c: Context, x: Value) -> _Channels:
    refuse_if(x.rank < 2, f"data of rank {x.rank}")
    at = x.rank - 1 if channels_last(c) else 1
    return _Channels(at, tuple(k for k in range(x.rank) if k != at), x.size // max(1, x.shape[at]))


def _batch_norm(c: Context) -> Sequence[Value]:
    """FusedBatchNorm: y, mean, variance, and what the gradient needs: mean, variance, nothing."""
    b, x, scale, shift = c.b, c.input(0), c.input(1), c.input(2)
    epsilon = c.number("epsilon", 1e-4)
    axes = _channels(c, x)
    nothing = b.constant(np.zeros((), x.type.dtype))
    if not c.attribute("is_training", True):
        middle, spread = c.input(3), c.input(4)
        y = batch_norm(b, x, (scale, shift, middle, spread), epsilon, axes.at)
        return y, middle, spread, middle, spread, nothing
    unit, middle, spread = normalised(b, x, axes.others, epsilon)
    y = mapped(
        b,
        lambda v, s, t: scalar.add(scalar.multiply(v, s), t),
        unit,
        *(unsqueezed(p, axes.others) for p in (scale, shift)),
    )
    flat = squeezed(middle, axes.others), squeezed(spread, axes.others)
    return y, *_running(c, *flat, axes.count), *flat, nothing


def _running(c: Context, middle: Value, spread: Value, count: int) -> tuple[Value, Value]:
    """Return the mean and variance that the model keeps: unbiased, and mixed with the old ones if asked."""
    b, factor = c.b, c.number("exponential_avg_factor", 1.0)
    unbiased = mapped(b, lambda v: scalar.multiply(v, count / max(1, count - 1)), spread, hint="unbiased")
    if factor == 1.0:
        return middle, unbiased

    def mixed(old: Expression, new: Expression) -> Expression:
        return scalar.add(scalar.multiply(old, 1 - factor), scalar.multiply(new, factor))

    new_mean = mapped(b, mixed, c.input(3), middle, hint="running_mean")
    return new_mean, mapped(b, mixed, c.input(4), unbiased, hint="running_variance")


def _batch_norm_gradient(c: Context) -> Sequence[Value]:
    """FusedBatchNormGrad(dy, x, scale, mean, variance): dx, dscale, dshift, and two that mean nothing.

    With statistics of the batch ``dx = scale * r * (dy - mean(dy) - unit * mean(dy * unit))``, else
    ``dx = scale * r * dy``; ``r = rsqrt(variance + epsilon)``, ``unit = (x - mean) * r``.
    """
    b, dy, x = c.b, c.input(0), c.input(1)
    epsilon = c.number("epsilon", 1e-4)
    axes = _channels(c, x)
    scale, middle, spread = (unsqueezed(c.input(k), axes.others) for k in (2, 3, 4))

    def centred_unit(v: Expression, m: Expression, s: Expression) -> Expression:
        return scalar.multiply(scalar.subtract(v, m), scalar.rsqrt(scalar.add(s, epsilon)))

    unit = mapped(b, centred_unit, x, middle, spread, hint="unit")
    by_scale = reduced(b, Combine.ADD, [dy, unit], axes.others, scalar.multiply, hint="scale")
    by_shift = reduced(b, Combine.ADD, dy, axes.others, hint="shift")
    count = axes.count

    def training(*p: Expression) -> Expression:
        g, u, k, s, ds, dt = p
        less = scalar.add(scalar.divide(dt, count), scalar.multiply(u, scalar.divide(ds, count)))
        factor = scalar.multiply(k, scalar.rsqrt(scalar.add(s, epsilon)))
        return scalar.multiply(factor, scalar.subtract(g, less))

    def inference(g: Expression, k: Expression, s: Expression) -> Expression:
        return scalar.multiply(g, scalar.multiply(k, scalar.rsqrt(scalar.add(s, epsilon))))

    if c.attribute("is_training", True):
        dx = mapped(b, training, dy, unit, scale, spread, by_scale, by_shift)
    else:
        dx = mapped(b, inference, dy, scale, spread)
    nothing = b.constant(np.zeros(0, x.type.dtype))
    return dx, squeezed(by_scale, axes.others), squeezed(by_shift, axes.others), nothing, nothing


# -- losses


def _cross_entropy(c: Context) -> Sequence[Value]:
    """SoftmaxCrossEntropyWithLogits: ``sum(-labels * log_softmax(x))`` per row, and its gradient by x."""
    x, labels = c.input(0), c.input(1)
    refuse_if(x.rank != 2, f"data of rank {x.rank}, not 2")
    return _entropies(c, x, expanded(labels, x.shape))


def _sparse_cross_entropy(c: Context) -> Sequence[Value]:
    """The same with positions as labels: compared with 0, 1, 2, ..."""
    b, x, labels = c.b, c.input(0), c.input(1)
    refuse_if(x.rank != 2 or labels.rank != 1, f"data of rank {x.rank} and labels of rank {labels.rank}")

    def hot(t: Expression, k: Expression) -> Expression:
        one = scalar.number(1, x.type)
        return scalar.select(scalar.compare(CompareOp.EQ, t, k), one, 0)

    numbers = iota(b, x.shape[1], labels.type)
    return _entropies(c, x, mapped(b, hot, unsqueezed(labels, [1]), unsqueezed(numbers, [0]), hint="labels"))


def _entropies(c: Context, x: Value, labels: Value) -> Sequence[Value]:
    """Return the loss of each row, and ``softmax(x) - labels``."""
    b = c.b
    logarithms = log_softmax(b, x, [1])
    part = lambda t, v: scalar.negate(scalar.multiply(t, v))  # noqa: E731
    loss = reduced(b, Combine.ADD, [labels, logarithms], [1], part, keep=False, hint="loss")
    back = lambda v, t: scalar.subtract(scalar.exp(v), t)  # noqa: E731
    return loss, mapped(b, back, logarithms, labels, hint="backprop")


OPERATIONS: Table = {
    "Softmax": op(softmax, X, LAST),
    "LogSoftmax": op(log_softmax, X, LAST),
    "LRN": _local_response,
    "LRNGrad": _local_response_gradient,
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), _batch_norm_gradient
    ),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
