"""Normalisations and softmax."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from polyloom.frontends.graph.basis import (
    Builder,
    Combine,
    Expression,
    Function,
    Value,
    scalar,
    squeezed,
    unsqueezed,
)
from polyloom.frontends.graph.operations.convolution import Window
from polyloom.frontends.graph.operations.elementwise import mapped
from polyloom.frontends.graph.operations.pooling import pooled
from polyloom.frontends.graph.operations.reductions import mean, reduced, variance


def softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the softmax along axes: maximum, exp, sum, quotient."""
    powers = _powers(b, x, axes)
    total = reduced(b, Combine.ADD, powers, axes, hint="sum")
    return mapped(b, scalar.divide, powers, total)


def _powers(b: Builder, x: Value, axes: Collection[int]) -> Value:
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    return mapped(b, lambda v, m: scalar.exp(scalar.subtract(v, m)), x, largest, hint="exp")


def log_softmax(b: Builder, x: Value, axes: Collection[int]) -> Value:
    """Return the logarithm of the softmax: ``(x - max) - log(sum(exp(x - max)))``."""
    largest = reduced(b, Combine.MAXIMUM, x, axes, hint="max")
    shifted = mapped(b, scalar.subtract, x, largest, hint="shifted")
    total = reduced(b, Combine.ADD, shifted, axes, scalar.exp, hint="sum")
    return mapped(b, lambda v, s: scalar.subtract(v, scalar.log(s)), shifted, total)


def centred(b: Builder, x: Value, axes: Collection[int]) -> tuple[Value, Value]:
    """Return the mean along axes and the elements without it."""
    middle = mean(b, x, axes)
    return middle, mapped(b, scalar.subtract, x, middle, hint="centred")


def scaled(b: Builder, x: Value, spread: Value, epsilon: float, hint: str = "") -> Value:
    """Return ``x * rsqrt(spread + epsilon)``."""
    return mapped(
        b, lambda v, s: scalar.multiply(v, scalar.rsqrt(scalar.add(s, epsilon))), x, spread, hint=hint
    )


def affine(b: Builder, x: Value, scale: Value | None, shift: Value | None, hint: str = "") -> Value:
    """Return ``x * scale + shift``; what is missing changes nothing."""
    if scale is not None and shift is not None:
        return mapped(b, lambda v, s, t: scalar.add(scalar.multiply(v, s), t), x, scale, shift, hint=hint)
    if scale is not None:
        return mapped(b, scalar.multiply, x, scale, hint=hint)
    return x if shift is None else mapped(b, scalar.add, x, shift, hint=hint)


def normalised(b: Builder, x: Value, axes: Collection[int], epsilon: float) -> tuple[Value, Value, Value]:
    """Return the normalised elements, the mean and the variance along axes."""
    middle, without = centred(b, x, axes)
    spread = variance(b, without, axes)
    return scaled(b, without, spread, epsilon, "normalised"), middle, spread


def batch_norm(b: Builder, x: Value, parameters: Sequence[Value], epsilon: float, axis: int = 1) -> Value:
    """Return ``(x - mean) * rsqrt(variance + epsilon) * scale + shift`` per channel, one statement.

    ``parameters``: scale, shift, mean, variance.
    """
    others = [k for k in range(x.rank) if k != axis]
    scale, shift, middle, spread = (unsqueezed(p, others) for p in parameters)

    def function(v: Expression, s: Expression, t: Expression, m: Expression, q: Expression) -> Expression:
        unit = scalar.multiply(scalar.subtract(v, m), scalar.rsqrt(scalar.add(q, epsilon)))
        return scalar.add(scalar.multiply(unit, s), t)

    return mapped(b, function, x, scale, shift, middle, spread)


def local_response(
    b: Builder, x: Value, size: tuple[int, int], alpha: float, beta: float, bias: float
) -> Value:
    """Return ``x / (bias + alpha * sum of squares) ** beta`` over ``size`` channels before and after."""
    squares = channel_sums(b, x, size, scalar.square)

    def function(v: Expression, s: Expression) -> Expression:
        return scalar.divide(v, scalar.power(scalar.add(scalar.multiply(s, alpha), bias), beta))

    return mapped(b, function, x, squares)


def channel_sums(b: Builder, x: Value, size: tuple[int, int], function: Function) -> Value:
    """Return the sums of a function over ``size`` channels before and after each, of data ``x[n][c]...``."""
    before, after = size
    rest = (x.rank - 2) * (0,)
    ones = (x.rank - 1) * (1,)
    window = Window((before + after + 1, *ones[1:]), ones, ones, (before, *rest), (after, *rest))
    return squeezed(pooled(b, unsqueezed(x, [1]), window, Combine.ADD, function, hint="sums"), [1])
