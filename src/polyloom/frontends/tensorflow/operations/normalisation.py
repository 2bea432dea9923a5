"""Softmax, normalisations and losses, with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from polyloom.frontends.graph.composites.losses import rows_with_gradient
from polyloom.frontends.graph.composites.normalisation import (
    batch_norm,
    batch_norm_gradient,
    local_response,
    local_response_gradient,
    log_softmax,
    normalised,
    per_channel,
    softmax,
)
from polyloom.frontends.graph.composites.optimizers import blended
from polyloom.frontends.graph.core import (
    LAST,
    Context,
    Operation,
    Table,
    Value,
    X,
    mapped,
    only,
    op,
    refuse_if,
    scalar,
    squeezed,
    value,
)
from polyloom.frontends.tensorflow.operations.linear import channels_first, channels_last, given_back


def _in_channels(function: Callable[..., Value], count: int) -> Operation:
    """Return an operation over the neighbours of each channel, which are always the last axis."""

    def operation(c: Context) -> Sequence[Value]:
        radius = c.integer("depth_radius", 5)
        numbers = (c.number("alpha", 1.0), c.number("beta", 0.5), c.number("bias", 1.0))
        data = (channels_first(c, x) for x in c.first(count))
        return only(given_back(c, function(c.b, *data, (radius, radius), *numbers)))

    return operation


def _channels(c: Context) -> int:
    """Return the axis of the channels."""
    refuse_if(c.input().rank < 2, f"data of rank {c.input().rank}")
    return c.input().rank - 1 if channels_last(c) else 1


def _batch_norm(c: Context) -> Sequence[Value]:
    """FusedBatchNorm: y, mean, variance, and what the gradient needs: mean, variance, nothing.

    The mean and variance that the model keeps are unbiased, and mixed with the old ones if asked.
    """
    b, x, scale, shift = c.b, *c.first(3)
    epsilon, at = c.number("epsilon", 1e-4), _channels(c)
    others = [k for k in range(x.rank) if k != at]
    nothing = b.constant(np.zeros((), x.type.dtype))
    if not c.attribute("is_training", True):
        kept = c.input(3), c.input(4)
        return batch_norm(b, x, (scale, shift, *kept), epsilon, at), *kept, *kept, nothing
    given = (per_channel(p, x.rank, at) for p in (scale, shift))
    y, *found = normalised(b, x, others, epsilon, *given)
    middle, spread = (squeezed(v, others) for v in found)
    count, factor = x.size // max(1, x.shape[at]), c.number("exponential_avg_factor", 1.0)
    unbiased = mapped(b, scalar.multiply, spread, count / max(1, count - 1), hint="unbiased")
    running = [middle, unbiased]
    if factor != 1.0:
        pairs = zip((c.input(3), c.input(4)), running, strict=True)
        running = [blended(b, old, new, 1 - factor, added=factor) for old, new in pairs]
    return y, *running, middle, spread, nothing


def _batch_norm_gradient(c: Context) -> Sequence[Value]:
    """FusedBatchNormGrad(dy, x, scale, mean, variance): dx, dscale, dshift, and two that mean nothing."""
    epsilon, of_batch = c.number("epsilon", 1e-4), c.flag("is_training", True)
    dy, x, *parameters = c.first(5)
    found = batch_norm_gradient(c.b, dy, x, parameters, epsilon, _channels(c), of_batch=of_batch)
    nothing = c.b.constant(np.zeros(0, x.type.dtype))
    return *found, nothing, nothing


OPERATIONS: Table = {
    "Softmax": op(softmax, X, LAST),
    "LogSoftmax": op(log_softmax, X, LAST),
    "LRN": _in_channels(local_response, 1),
    "LRNGrad": _in_channels(local_response_gradient, 3),
    **dict.fromkeys(("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"), _batch_norm),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"), _batch_norm_gradient
    ),
    **dict.fromkeys(
        ("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"),
        op(rows_with_gradient, X, value(1)),
    ),
}
