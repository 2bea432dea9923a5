"""Softmax, normalisations, and their gradients."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    ElementType,
    Function,
    Value,
    refuse_if,
    scalar,
    split,
    squeezed,
    unsqueezed,
)
from polyloom.frontends.graph.functions import rounded_once, unless_zero
from polyloom.frontends.graph.operations.convolution import Window
from polyloom.frontends.graph.operations.elementwise import cast, halves_wide, mapped
from polyloom.frontends.graph.operations.movement import reshaped
from polyloom.frontends.graph.operations.pooling import pooled
from polyloom.frontends.graph.operations.reductions import mean, reduced, variance

# -- softmax


@halves_wide
def softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the softmax along axes: maximum, exp, sum, quotient."""
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    powers = mapped(b, lambda v, m: scalar.exp(v - m), x, largest, hint="exp")
    return mapped(b, scalar.divide, powers, reduced(b, Combine.ADD, powers, axes, hint="sum"))


@halves_wide
def safe_softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the softmax, and 0 where all elements are minus infinity: nothing to look at."""
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    power = lambda v, m: scalar.select(scalar.equal(m, -np.inf), 0, scalar.exp(v - m))  # noqa: E731
    powers = mapped(b, power, x, largest, hint="exp")
    total = reduced(b, Combine.ADD, powers, axes, hint="sum")
    return mapped(b, lambda v, s: unless_zero(s, v / s), powers, total)


@halves_wide
def log_softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the logarithm of the softmax: ``(x - max) - log(sum(exp(x - max)))``."""
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    shifted = mapped(b, scalar.subtract, x, largest, hint="shifted")
    total = reduced(b, Combine.ADD, shifted, axes, scalar.exp, hint="sum")
    return mapped(b, lambda v, s: v - scalar.log(s), shifted, total)


@halves_wide
def softmax_gradient(b: Builder, dy: Value, y: Value, axes: Collection[int]) -> Value:
    """Return ``y * (dy - sum(dy * y))``, of the result ``y``."""
    total = reduced(b, Combine.ADD, [dy, y], axes, scalar.multiply, hint="sum")
    return mapped(b, lambda g, v, s: v * (g - s), dy, y, total)


@halves_wide
def log_softmax_gradient(b: Builder, dy: Value, y: Value, axes: Collection[int]) -> Value:
    """Return ``dy - exp(y) * sum(dy)``, of the result ``y``."""
    total = reduced(b, Combine.ADD, dy, axes, hint="sum")
    return mapped(b, lambda g, v, s: g - scalar.exp(v) * s, dy, y, total)


# -- normalisations


def centred(b: Builder, x: Value, axes: Collection[int]) -> tuple[Value, Value]:
    """Return the mean along axes and the elements without it."""
    middle = mean(b, x, axes)
    return middle, mapped(b, scalar.subtract, x, middle, hint="centred")


def inverse_root(b: Builder, spread: Value, epsilon: float, hint: str) -> Value:
    """Return ``rsqrt(spread + epsilon)``."""
    return mapped(b, lambda s: scalar.rsqrt(s + epsilon), spread, hint=hint)


def scaled(b: Builder, x: Value, spread: Value, epsilon: float, hint: str = "") -> Value:
    """Return ``x * rsqrt(spread + epsilon)``."""
    return mapped(b, lambda v, s: v * scalar.rsqrt(s + epsilon), x, spread, hint=hint)


def affine(b: Builder, x: Value, scale: Value | None, shift: Value | None, hint: str = "") -> Value:
    """Return ``x * scale + shift``; what is missing changes nothing."""
    if scale is not None and shift is not None:
        return mapped(b, lambda v, s, t: v * s + t, x, scale, shift, hint=hint)
    if scale is not None:
        return mapped(b, scalar.multiply, x, scale, hint=hint)
    return x if shift is None else mapped(b, scalar.add, x, shift, hint=hint)


def per_channel(value: Value | None, rank: int, axis: int = 1) -> Value | None:
    """Return one number for each channel as it broadcasts over data of a rank; None of None."""
    return None if value is None else unsqueezed(value, [k for k in range(rank) if k != axis])


@halves_wide
def normalised(
    b: Builder,
    x: Value,
    axes: Collection[int],
    epsilon: float,
    scale: Value | None = None,
    shift: Value | None = None,
) -> tuple[Value, Value, Value]:
    """Return ``(x - mean) * rsqrt(variance + epsilon) * scale + shift``, and mean and variance along axes."""
    middle, without = centred(b, x, axes)
    spread = variance(b, without, axes)
    return affine(b, scaled(b, without, spread, epsilon, "normalised"), scale, shift), middle, spread


def layer_norm(
    b: Builder,
    x: Value,
    axes: Collection[int],
    epsilon: float,
    scale: Value,
    shift: Value | None,
    wide: ElementType,
) -> tuple[Value, Value, Value]:
    """Return the normalised data, the mean, and the inverse root of the variance; ``wide``: their type."""
    middle, without = centred(b, cast(b, x, wide, "wide"), axes)
    inverse = inverse_root(b, variance(b, without, axes), epsilon, "inverse")
    unit = mapped(b, scalar.multiply, without, inverse, hint="normalised")
    return affine(b, cast(b, unit, x.type, "narrow"), scale, shift), middle, inverse


@halves_wide
def rms_norm(
    b: Builder,
    x: Value,
    axes: Collection[int],
    epsilon: float,
    scale: Value | None,
    wide: ElementType | None = None,
) -> Value:
    """Return ``x * rsqrt(mean(x * x) + epsilon) * scale``, the unit computed in the type ``wide``."""
    inside = cast(b, x, wide or x.type, "wide")
    unit = scaled(b, inside, variance(b, inside, axes), epsilon, "normalised")
    return affine(b, cast(b, unit, x.type, "narrow"), scale, None)


@halves_wide
def group_norm(
    b: Builder,
    x: Value,
    groups: int,
    epsilon: float,
    scale: Value | None,
    shift: Value | None,
    wide: ElementType | None = None,
) -> tuple[Value, Value, Value]:
    """Return data normalised over the channels of a group and space, and mean and variance ``[n][group]...``.

    ``scale``, ``shift``: one number for each channel, or for each group. Raises ``Refused``.
    """
    refuse_if(
        x.rank < 2 or groups < 1 or x.shape[1] % groups, f"{groups} groups of the shape {list(x.shape)}"
    )
    sizes = (groups, x.shape[1] // groups)
    parts = cast(b, split(x, 1, sizes), wide or x.type, "wide")
    unit, middle, spread = normalised(b, parts, range(2, parts.rank), epsilon)
    others = [0, *range(3, parts.rank)]
    given = (p and split(p, 0, (groups, 1) if p.size == groups else sizes) for p in (scale, shift))
    factor, added = (p and unsqueezed(p, others) for p in given)
    y = affine(b, cast(b, unit, x.type, "narrow"), factor, added)
    return reshaped(b, y, x.shape), middle, spread


def batch_norm(b: Builder, x: Value, parameters: Sequence[Value], epsilon: float, axis: int = 1) -> Value:
    """Return ``(x - mean) * rsqrt(variance + epsilon) * scale + shift`` per channel, one statement.

    ``parameters``: scale, shift, mean, variance.
    """
    others = [k for k in range(x.rank) if k != axis]
    given = (unsqueezed(p, others) for p in parameters)
    function = rounded_once(lambda v, s, t, m, q: (v - m) * scalar.rsqrt(q + epsilon) * s + t)
    return mapped(b, function, x, *given)


def batch_norm_gradient(
    b: Builder,
    dy: Value,
    x: Value,
    parameters: Sequence[Value],
    epsilon: float,
    axis: int,
    *,
    of_batch: bool,
) -> tuple[Value, Value, Value]:
    """Return the gradients of batch norm by data, scale and shift. ``parameters``: scale, mean, variance.

    With statistics ``of_batch`` ``dx = scale * r * (dy - mean(dy) - unit * mean(dy * unit))``, else
    ``dx = scale * r * dy``; ``r = rsqrt(variance + epsilon)``, ``unit = (x - mean) * r``.
    """
    others = [k for k in range(x.rank) if k != axis]
    count = x.size // max(1, x.shape[axis])
    scale, middle, spread = (unsqueezed(p, others) for p in parameters)
    root: Function = lambda s: scalar.rsqrt(s + epsilon)  # noqa: E731
    unit = mapped(b, lambda v, m, s: (v - m) * root(s), x, middle, spread, hint="unit")
    by_scale = reduced(b, Combine.ADD, [dy, unit], others, scalar.multiply, hint="scale")
    by_shift = reduced(b, Combine.ADD, dy, others, hint="shift")
    if of_batch:
        dx = mapped(
            b,
            lambda g, u, k, s, ds, dt: k * root(s) * (g - (dt / count + u * (ds / count))),
            *(dy, unit, scale, spread, by_scale, by_shift),
        )
    else:
        dx = mapped(b, lambda g, k, s: g * (k * root(s)), dy, scale, spread)
    return dx, squeezed(by_scale, others), squeezed(by_shift, others)


# -- over neighbouring channels


def local_response(
    b: Builder, x: Value, size: tuple[int, int], alpha: float, beta: float, bias: float
) -> Value:
    """Return ``x / (bias + alpha * sum of squares) ** beta`` over ``size`` channels before and after."""
    squares = _channel_sums(b, x, size, scalar.square)
    return mapped(b, lambda v, s: v / scalar.power(s * alpha + bias, beta), x, squares)


def local_response_gradient(
    b: Builder,
    dy: Value,
    x: Value,
    y: Value,
    size: tuple[int, int],
    alpha: float,
    beta: float,
    bias: float,
) -> Value:
    """Return ``dy * s^-beta - 2 alpha beta x * (sum over the window of dy * y / s)``.

    ``s = bias + alpha * sum of squares`` over the window, in which each channel is as far as it sees.
    """
    total = _channel_sums(b, x, size, scalar.square)
    spread = mapped(b, lambda s: s * alpha + bias, total, hint="spread")
    part = mapped(b, lambda d, v, s: d * v / s, dy, y, spread, hint="part")
    parts = _channel_sums(b, part, size, lambda v: v)
    return mapped(
        b, lambda d, v, s, p: d / scalar.power(s, beta) - v * (2 * alpha * beta) * p, dy, x, spread, parts
    )


def _channel_sums(b: Builder, x: Value, size: tuple[int, int], function: Function) -> Value:
    """Return the sums of a function over ``size`` channels before and after each, of data ``x[n][c]...``."""
    before, after = size
    rest = (x.rank - 2) * (0,)
    ones = (x.rank - 1) * (1,)
    window = Window((before + after + 1, *ones[1:]), ones, ones, (before, *rest), (after, *rest))
    return squeezed(pooled(b, unsqueezed(x, [1]), window, Combine.ADD, function, hint="sums"), [1])
