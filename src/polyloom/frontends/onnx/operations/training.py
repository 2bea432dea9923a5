"""Optimizers of the preview training domain: state goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyloom.frontends.graph.core import (
    CompareOp,
    Context,
    Expression,
    Table,
    Value,
    cast,
    expanded,
    mapped,
    optimizers,
    refuse_if,
    scalar,
    squeezed,
)


def _state(c: Context, count: int) -> list[list[Value]]:
    """Return the inputs after rate and step in ``count`` groups: parameters, gradients, states."""
    rest = c.inputs[2:]
    refuse_if(len(rest) % count, f"{len(rest)} tensors in groups of {count}")
    each = len(rest) // count
    return [rest[k * each : (k + 1) * each] for k in range(count)]


def _scalars(c: Context, like: Value) -> tuple[Value, Value]:
    """Return rate and step as they broadcast over a tensor, in its type."""
    found = []
    for k in range(2):
        one = squeezed(c.input(k), list(range(c.input(k).rank)))
        found.append(expanded(cast(c.b, one, like.type, "scalar"), like.shape))
    return found[0], found[1]


def _each(
    c: Context, count: int, update: Callable[[Context, Value, Value, Sequence[Value]], Sequence[Value]]
) -> Sequence[Value]:
    """Update every tensor; results are grouped like the inputs."""
    groups = _state(c, count)
    results = []
    for parts in zip(*groups, strict=True):
        rate, step = _scalars(c, parts[0])
        results.append(list(update(c, rate, step, parts)))
    return [value for group in zip(*results, strict=True) for value in group]


def _momentum(c: Context, rate: Value, step: Value, parts: Sequence[Value]) -> Sequence[Value]:
    x, gradient, velocity = parts
    alpha, beta, norm = c.number("alpha"), c.number("beta"), c.number("norm_coefficient")
    nesterov = c.text("mode", "standard") == "nesterov"
    b = c.b

    def new_velocity(v: Expression, g: Expression, w: Expression, t: Expression) -> Expression:
        regular = scalar.add(scalar.multiply(w, norm), g)
        later = scalar.compare(CompareOp.GT, t, 0)
        share = scalar.select(later, scalar.number(beta, w.type), scalar.number(1, w.type))
        return scalar.add(scalar.multiply(v, alpha), scalar.multiply(regular, share))

    moved = mapped(b, new_velocity, velocity, gradient, x, step, hint="velocity")

    def new_weight(w: Expression, v: Expression, g: Expression, r: Expression) -> Expression:
        if not nesterov:
            return scalar.subtract(w, scalar.multiply(v, r))
        regular = scalar.add(scalar.multiply(w, norm), g)
        return scalar.subtract(w, scalar.multiply(scalar.add(regular, scalar.multiply(v, alpha)), r))

    return mapped(b, new_weight, x, moved, gradient, rate, hint="new"), moved


def _adagrad(c: Context, rate: Value, step: Value, parts: Sequence[Value]) -> Sequence[Value]:
    x, gradient, squares = parts
    decay, norm, epsilon = (
        c.number("decay_factor", 0.0),
        c.number("norm_coefficient", 0.0),
        c.number("epsilon", 1e-6),
    )
    b = c.b
    regular = optimizers.regularised(b, x, gradient, norm)
    total = mapped(b, lambda s, g: scalar.add(s, scalar.square(g)), squares, regular, hint="squares")

    def new_weight(w: Expression, s: Expression, g: Expression, r: Expression, t: Expression) -> Expression:
        rate_now = scalar.divide(r, scalar.add(scalar.multiply(t, decay), 1))
        share = scalar.divide(g, scalar.add(scalar.sqrt(s), epsilon))
        return scalar.subtract(w, scalar.multiply(share, rate_now))

    return mapped(b, new_weight, x, total, regular, rate, step, hint="new"), total


def _adam(c: Context, rate: Value, step: Value, parts: Sequence[Value]) -> Sequence[Value]:
    x, gradient, first, second = parts
    alpha, beta, epsilon = c.number("alpha", 0.9), c.number("beta", 0.999), c.number("epsilon", 1e-6)
    norm, after = c.number("norm_coefficient", 0.0), c.number("norm_coefficient_post", 0.0)
    b = c.b
    regular = optimizers.regularised(b, x, gradient, norm)
    moment = optimizers.blended(b, first, regular, alpha, "first")
    squares = optimizers.blended_square(b, second, regular, beta, "second")

    def new_weight(w: Expression, m: Expression, v: Expression, r: Expression, t: Expression) -> Expression:
        one = scalar.number(1, w.type)
        up = scalar.sqrt(scalar.subtract(1, scalar.power(scalar.number(beta, w.type), t)))
        down = scalar.subtract(1, scalar.power(scalar.number(alpha, w.type), t))
        later = scalar.compare(CompareOp.GT, t, 0)
        rate_now = scalar.multiply(r, scalar.select(later, scalar.divide(up, down), one))
        moved = scalar.divide(scalar.multiply(m, rate_now), scalar.add(scalar.sqrt(v), epsilon))
        return scalar.multiply(scalar.subtract(w, moved), 1 - after)

    return mapped(b, new_weight, x, moment, squares, rate, step, hint="new"), moment, squares


OPERATIONS: Table = {
    "Momentum": lambda c: _each(c, 3, _momentum),
    "Adagrad": lambda c: _each(c, 3, _adagrad),
    "Adam": lambda c: _each(c, 4, _adam),
}
