"""Steps of optimizers, maps over a parameter's elements: each gives the new values of all that it changes.

Rates and factors are numbers, or tensors that broadcast. Formulas: tensorflow/core/kernels/training_ops.cc,
and the operators' specification of ONNX (ai.onnx.preview.training).
"""

from __future__ import annotations

from polyloom.frontends.graph.basis import Builder, Expression, Function, Value, scalar
from polyloom.frontends.graph.operations.elementwise import mapped

Factor = Value | float


def regularised(b: Builder, x: Value, gradient: Value, norm: float) -> Value:
    """Return ``gradient + norm * x``."""
    return mapped(b, lambda w, g: w * norm + g, x, gradient, hint="gradient") if norm else gradient


def blended(
    b: Builder, old: Value, new: Value, kept: float, hint: str = "running", added: float | None = None
) -> Value:
    """Return ``kept * old + added * new``; without ``added`` it is ``1 - kept``."""
    share = 1 - kept if added is None else added
    return mapped(b, lambda o, n: o * kept + n * share, old, new, hint=hint)


def momentum(
    b: Builder,
    w: Value,
    old: Value,
    g: Value,
    rate: Factor,
    mu: Factor,
    *,
    nesterov: bool,
    added: Value | None = None,
) -> tuple[Value, Value]:
    """Return ``a = a * mu + g; w -= rate * a`` (Nesterov: ``w -= rate * (g + mu * a)``).

    ``added``: what ``a`` gets in place of ``g``.
    """
    a = mapped(b, lambda a, g, m: a * m + g, old, added or g, mu, hint="accumulated")
    if not nesterov:
        return mapped(b, lambda w, a, r: w - r * a, w, a, rate), a
    return mapped(b, lambda w, a, r, g, m: w - r * (g + m * a), w, a, rate, g, mu), a


def keras_momentum(
    b: Builder, w: Value, old: Value, g: Value, rate: Factor, mu: Factor, *, nesterov: bool
) -> tuple[Value, Value]:
    """Return ``a = a * mu - rate * g; w += a`` (Nesterov: ``w += mu * a - rate * g``)."""
    velocity: Function = lambda a, r, g, m: a * m - r * g  # noqa: E731
    a = mapped(b, velocity, old, rate, g, mu, hint="accumulated")
    if not nesterov:
        return mapped(b, scalar.add, w, a), a
    return mapped(b, lambda w, *of: w + velocity(*of), w, a, rate, g, mu), a


def adam(
    b: Builder,
    w: Value,
    first: Value,
    second: Value,
    g: Value,
    beta1: Factor,
    beta2: Factor,
    epsilon: Factor,
    rate: Function,
    *of: Factor,
    nesterov: bool = False,
    shrunk: float = 1.0,
) -> tuple[Value, Value, Value]:
    """Return ``m += (g - m)(1 - b1); v += (g^2 - v)(1 - b2); w = (w - rate(of) m / (sqrt(v) + e)) * shrunk``.

    Nesterov: ``b1 m + (1 - b1) g`` in place of ``m``.
    """
    m = mapped(b, _moved, first, g, beta1, hint="m")
    v = mapped(b, lambda v, g, k: _moved(v, scalar.square(g), k), second, g, beta2, hint="v")
    ahead = mapped(b, lambda m, g, k: k * m + (1 - k) * g, m, g, beta1, hint="ahead") if nesterov else m

    def step(w: Expression, m: Expression, v: Expression, e: Expression, *of: Expression) -> Expression:
        found = w - rate(*of) * m / (scalar.sqrt(v) + e)
        return found if shrunk == 1 else found * shrunk

    return mapped(b, step, w, ahead, v, epsilon, *of), m, v


def _moved(old: Expression, new: Expression, kept: Expression) -> Expression:
    """Return ``old + (new - old) * (1 - kept)``."""
    return old + (new - old) * (1 - kept)


def adagrad(
    b: Builder, w: Value, old: Value, g: Value, rate: Factor, epsilon: Factor, *, update: bool = True
) -> tuple[Value, Value]:
    """Return ``a += g^2; w -= rate * g / (sqrt(a) + e)``; without ``update`` ``a`` stays."""
    a = mapped(b, lambda a, g: a + scalar.square(g), old, g, hint="accumulated") if update else old
    return mapped(b, lambda w, a, r, e, g: w - r * g / (scalar.sqrt(a) + e), w, a, rate, epsilon, g), a


def rms_prop(
    b: Builder, w: Value, old: Value, moved: Value, g: Value, rate: Factor, rho: Factor, mu: Factor, e: Factor
) -> tuple[Value, Value, Value]:
    """Return ``s += (g^2 - s)(1 - rho); m = mu m + rate g / sqrt(s + e); w -= m``."""
    s = mapped(b, lambda s, g, k: _moved(s, scalar.square(g), k), old, g, rho, hint="squares")
    step = lambda m, s, r, k, e, g: k * m + r * g / scalar.sqrt(s + e)  # noqa: E731
    m = mapped(b, step, moved, s, rate, mu, e, g, hint="momentum")
    return mapped(b, scalar.subtract, w, m), s, m
