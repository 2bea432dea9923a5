"""Assignments to variables and the steps of optimizers: each gives the new values of what it changes.

Formulas: tensorflow/core/kernels/training_ops.cc.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyloom.frontends.graph.core import (
    Context,
    Expression,
    Refused,
    Table,
    Value,
    X,
    mapped,
    maps,
    only,
    scalar,
    value,
)


def _assign(c: Context) -> Sequence[Value]:
    value = c.input(1)
    if value.shape != c.input(0).shape:
        raise Refused(f"a variable of shape {list(c.input(0).shape)} gets {list(value.shape)}")
    return only(value)


def _momentum(c: Context) -> Sequence[Value]:
    """``a = a * mu + g; w -= rate * a`` (Nesterov: ``w -= rate * (g + mu * a)``)."""
    b = c.b
    w, old, rate, g, mu = c.first(5)
    a = mapped(b, lambda a, g, m: scalar.add(scalar.multiply(a, m), g), old, g, mu, hint="accumulated")
    nesterov = bool(c.attribute("use_nesterov", False))

    def function(w: Expression, a: Expression, r: Expression, g: Expression, m: Expression) -> Expression:
        step = scalar.add(g, scalar.multiply(m, a)) if nesterov else a
        return scalar.subtract(w, scalar.multiply(r, step))

    return mapped(b, function, w, a, rate, g, mu), a


def _keras_momentum(c: Context) -> Sequence[Value]:
    """``a = a * mu - rate * g; w += a`` (Nesterov: ``w += mu * a - rate * g``)."""
    b = c.b
    w, old, rate, g, mu = c.first(5)

    def velocity(a: Expression, r: Expression, g: Expression, m: Expression) -> Expression:
        return scalar.subtract(scalar.multiply(a, m), scalar.multiply(r, g))

    a = mapped(b, velocity, old, rate, g, mu, hint="accumulated")
    if not c.attribute("use_nesterov", False):
        return mapped(b, scalar.add, w, a), a
    step = lambda w, a, r, g, m: scalar.add(w, velocity(a, r, g, m))  # noqa: E731
    return mapped(b, step, w, a, rate, g, mu), a


def _adam(c: Context) -> Sequence[Value]:
    """``m += (g - m)(1 - b1); v += (g^2 - v)(1 - b2); w -= a m / (sqrt(v) + e)``.

    ``a = rate * sqrt(1 - p2) / (1 - p1)``.
    """
    b = c.b
    w, m0, v0, p1, p2, rate, beta1, beta2, epsilon, g = c.first(10)
    m = mapped(b, _moved, m0, g, beta1, hint="m")
    v = mapped(b, lambda v, g, k: _moved(v, scalar.square(g), k), v0, g, beta2, hint="v")
    nesterov = bool(c.attribute("use_nesterov", False))

    def function(*p: Expression) -> Expression:
        w, m, v, p1, p2, r, k, e, g = p
        alpha = scalar.divide(scalar.multiply(r, scalar.sqrt(scalar.subtract(1, p2))), scalar.subtract(1, p1))
        top = m
        if nesterov:
            top = scalar.add(scalar.multiply(k, m), scalar.multiply(scalar.subtract(1, k), g))
        return scalar.subtract(w, scalar.divide(scalar.multiply(alpha, top), scalar.add(scalar.sqrt(v), e)))

    return mapped(b, function, w, m, v, p1, p2, rate, beta1, epsilon, g), m, v


def _moved(old: Expression, new: Expression, kept: Expression) -> Expression:
    """Return ``old + (new - old) * (1 - kept)``."""
    return scalar.add(old, scalar.multiply(scalar.subtract(new, old), scalar.subtract(1, kept)))


def _adagrad(c: Context) -> Sequence[Value]:
    """``a += g^2; w -= rate * g / (sqrt(a) + e)``."""
    b = c.b
    w, old, rate, epsilon, g = c.first(5)
    a = old
    if c.attribute("update_slots", True):
        a = mapped(b, lambda a, g: scalar.add(a, scalar.square(g)), old, g, hint="accumulated")

    def function(w: Expression, a: Expression, r: Expression, e: Expression, g: Expression) -> Expression:
        return scalar.subtract(w, scalar.divide(scalar.multiply(r, g), scalar.add(scalar.sqrt(a), e)))

    return mapped(b, function, w, a, rate, epsilon, g), a


def _rms(c: Context) -> Sequence[Value]:
    """``s += (g^2 - s)(1 - rho); m = mu m + rate g / sqrt(s + e); w -= m``."""
    b = c.b
    w, s0, m0, rate, rho, mu, epsilon, g = c.first(8)
    s = mapped(b, lambda s, g, k: _moved(s, scalar.square(g), k), s0, g, rho, hint="squares")

    def function(*p: Expression) -> Expression:
        m, s, r, k, e, g = p
        step = scalar.divide(scalar.multiply(r, g), scalar.sqrt(scalar.add(s, e)))
        return scalar.add(scalar.multiply(k, m), step)

    m = mapped(b, function, m0, s, rate, mu, epsilon, g, hint="momentum")
    return mapped(b, scalar.subtract, w, m), s, m


_GRADIENT_DESCENT = maps(
    lambda w, rate, g: scalar.subtract(w, scalar.multiply(rate, g)), *map(value, range(3))
)

OPERATIONS: Table = {
    "AssignVariableOp": _assign,
    "Assign": _assign,
    "AssignAddVariableOp": maps(scalar.add, X, value(1)),
    "AssignSubVariableOp": maps(scalar.subtract, X, value(1)),
    "AssignAdd": maps(scalar.add, X, value(1)),
    "AssignSub": maps(scalar.subtract, X, value(1)),
    "ResourceApplyGradientDescent": _GRADIENT_DESCENT,
    "ApplyGradientDescent": _GRADIENT_DESCENT,
    "ResourceApplyMomentum": _momentum,
    "ApplyMomentum": _momentum,
    "ResourceApplyKerasMomentum": _keras_momentum,
    "ResourceApplyAdam": _adam,
    "ApplyAdam": _adam,
    "ResourceApplyAdagradV2": _adagrad,
    "ResourceApplyRMSProp": _rms,
}
