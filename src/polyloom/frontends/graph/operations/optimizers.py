"""Pieces of optimizers, each a map over a parameter's elements."""

from __future__ import annotations

from polyloom.frontends.graph.basis import Builder, Expression, Value, scalar
from polyloom.frontends.graph.operations.elementwise import mapped


def regularised(b: Builder, x: Value, gradient: Value, norm: float) -> Value:
    """Return ``gradient + norm * x``."""
    if norm == 0:
        return gradient
    return mapped(b, lambda w, g: scalar.add(scalar.multiply(w, norm), g), x, gradient, hint="gradient")


def blended(b: Builder, old: Value, new: Value, share: float, hint: str) -> Value:
    """Return ``share * old + (1 - share) * new``."""
    return mapped(
        b,
        lambda m, g: scalar.add(scalar.multiply(m, share), scalar.multiply(g, 1 - share)),
        old,
        new,
        hint=hint,
    )


def blended_square(b: Builder, old: Value, new: Value, share: float, hint: str) -> Value:
    """Return ``share * old + (1 - share) * new * new``."""

    def function(v: Expression, g: Expression) -> Expression:
        return scalar.add(scalar.multiply(v, share), scalar.multiply(scalar.square(g), 1 - share))

    return mapped(b, function, old, new, hint=hint)
