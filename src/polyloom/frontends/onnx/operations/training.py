"""Optimizers of the preview training domain: state goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from polyloom.frontends.graph.composites.optimizers import adagrad, adam, momentum, regularised
from polyloom.frontends.graph.core import (
    Context,
    Function,
    Table,
    Value,
    cast,
    mapped,
    refuse_if,
    scalar,
    squeezed,
)


def _each(c: Context, count: int, update: Callable[..., Sequence[Value]]) -> Sequence[Value]:
    """Update every parameter with its gradient and states, ``count`` tensors; results are grouped alike."""
    rest = c.inputs[2:]
    refuse_if(len(rest) % count, f"{len(rest)} tensors in groups of {count}")
    each = len(rest) // count
    results = []
    for x, gradient, *states in (rest[k::each] for k in range(each)):
        ones = (squeezed(v, list(range(v.rank))) for v in c.first(2))
        scalars = [cast(c.b, v, x.type, "scalar") for v in ones]
        regular = regularised(c.b, x, gradient, c.number("norm_coefficient", 0.0))
        results.append(update(c, *scalars, x, regular, *states))
    return [value for group in zip(*results, strict=True) for value in group]


def _momentum(c: Context, rate: Value, step: Value, x: Value, g: Value, old: Value) -> Sequence[Value]:
    beta, nesterov = c.number("beta"), c.text("mode", "standard") == "nesterov"
    added = mapped(c.b, lambda g, t: g * scalar.select(t > 0, scalar.number(beta, g.type), 1), g, step)
    return momentum(c.b, x, old, g, rate, c.number("alpha"), nesterov=nesterov, added=added)


def _adagrad(c: Context, rate: Value, step: Value, x: Value, g: Value, old: Value) -> Sequence[Value]:
    decay = c.number("decay_factor", 0.0)
    slower = mapped(c.b, lambda r, t: r / (t * decay + 1), rate, step, hint="rate")
    return adagrad(c.b, x, old, g, slower, c.number("epsilon", 1e-6))


def _adam(
    c: Context, rate: Value, step: Value, x: Value, g: Value, first: Value, second: Value
) -> Sequence[Value]:
    alpha, beta, epsilon = c.number("alpha", 0.9), c.number("beta", 0.999), c.number("epsilon", 1e-6)
    lost: Function = lambda share, t: 1 - scalar.power(share, t)  # noqa: E731
    now: Function = lambda r, t: r * scalar.select(t > 0, scalar.sqrt(lost(beta, t)) / lost(alpha, t), 1)  # noqa: E731
    shrunk = 1 - c.number("norm_coefficient_post", 0.0)
    return adam(c.b, x, first, second, g, alpha, beta, epsilon, now, rate, step, shrunk=shrunk)


OPERATIONS: Table = {
    "Momentum": partial(_each, count=3, update=_momentum),
    "Adagrad": partial(_each, count=3, update=_adagrad),
    "Adam": partial(_each, count=4, update=_adam),
}
