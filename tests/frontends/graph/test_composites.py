"""Layers, losses and optimizers over the core set, against NumPy; gradients against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polyloom.frontends.graph.builder import Builder
from polyloom.frontends.graph.composites import losses, normalisation, optimizers, recurrent
from polyloom.frontends.graph.core import norm, scalar
from polyloom.frontends.graph.values import Value

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(14)
X = RANDOM.standard_normal((2, 4, 3))
LABELS = np.array([[0, 3, 1], [1, 1, 2]])


def computed(function: Callable[..., Any], *arrays: Array) -> list[Array]:
    """Return what an operation makes of constants, which the builder folds."""
    b = Builder()
    found = function(b, *(b.constant(a) for a in arrays))
    results = [b.known(v) for v in ((found,) if isinstance(found, Value) else found)]
    return [r for r in results if r is not None]


def softmax(x: Array, axis: int = 1) -> Array:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def difference(function: Callable[[Array], Array], x: Array, dy: Array) -> Array:
    """Return the gradient of ``sum(dy * f(x))`` by central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-6
        found[place] = (dy * (function(x + step) - function(x - step))).sum() / 2e-6
    return found


@pytest.mark.parametrize(
    ("forward", "gradient"),
    [
        (softmax, normalisation.softmax_gradient),
        (lambda x: np.log(softmax(x)), normalisation.log_softmax_gradient),
    ],
)
def test_gradients_of_softmax(forward: Callable[[Array], Array], gradient: Callable[..., Value]) -> None:
    dy = RANDOM.standard_normal(X.shape)
    (found,) = computed(lambda b, g, y: gradient(b, g, y, [1]), dy, forward(X))
    np.testing.assert_allclose(found, difference(forward, X, dy), atol=1e-8)


def test_the_gradient_of_batch_norm() -> None:
    scale, dy = RANDOM.standard_normal(4), RANDOM.standard_normal(X.shape)

    def forward(x: Array) -> Array:
        unit = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 0.1)
        return unit * scale[None, :, None]

    parameters = (scale, X.mean((0, 2)), X.var((0, 2)))
    dx, _, shift = computed(
        lambda b, g, x, *p: normalisation.batch_norm_gradient(b, g, x, p, 0.1, 1, of_batch=True),
        dy,
        X,
        *parameters,
    )
    np.testing.assert_allclose(dx, difference(forward, X, dy), atol=1e-8)
    np.testing.assert_allclose(shift, dy.sum((0, 2)))


def test_a_row_with_nothing_to_look_at_has_no_weights() -> None:
    x = np.array([[0.0, 1.0], [-np.inf, -np.inf]])
    (found,) = computed(lambda b, v: normalisation.safe_softmax(b, v, [1]), x)
    np.testing.assert_allclose(found, [softmax(x[:1])[0], [0, 0]])


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("ignored", [-100, 1])
@pytest.mark.parametrize("reduction", losses.REDUCTIONS)
def test_losses_of_labels(reduction: str, ignored: int, smoothing: float) -> None:
    log_p, weight = np.log(softmax(X)), np.array([1.0, 2.0, 0.5, 3.0])
    hot = (LABELS[:, None] == np.arange(4)[:, None]) * (ignored != LABELS)[:, None]
    shares = hot * (1 - smoothing) + smoothing / 4 * (ignored != LABELS)[:, None]
    each = -(log_p * shares * weight[:, None]).sum(1)
    total = (hot * weight[:, None]).sum()
    wanted = {"none": each, "sum": each.sum(), "mean": each.sum() / total}[reduction]
    loss, divisor = computed(
        lambda b, p, t, w: losses.label_loss(b, p, t, w, ignored, reduction, smoothing=smoothing),
        *(log_p, LABELS, weight),
    )
    np.testing.assert_allclose(loss, wanted)
    np.testing.assert_allclose(divisor, total)


def sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("backwards", [True, False])
def test_a_gru_resets_the_product_or_the_state(late: bool, backwards: bool) -> None:
    x, h = RANDOM.standard_normal((3, 2, 5)), RANDOM.standard_normal((2, 4))
    w, r = RANDOM.standard_normal((12, 5)), RANDOM.standard_normal((12, 4))
    bias_w, bias_r = RANDOM.standard_normal((2, 12))

    def run(b: Builder, x: Value, w: Value, r: Value, p: Value, q: Value, h: Value) -> Any:
        activations = (scalar.sigmoid, scalar.tanh)
        cell = recurrent.Cell(w, r, p, q, (h,), activations, (0, 1, 2), backwards, late_reset=late)
        results, (last,) = recurrent.run(b, recurrent.gru, cell, x)
        return results, last

    found, last = computed(run, x, w, r, bias_w, bias_r, h)
    wanted = []
    for part in x[::-1] if backwards else x:
        (xr, xz, xn), (pr, pz, pn) = np.split(part @ w.T + bias_w, 3, 1), np.split(r, 3)
        qr, qz, qn = np.split(bias_r, 3)
        reset, update = sigmoid(xr + h @ pr.T + qr), sigmoid(xz + h @ pz.T + qz)
        inner = reset * (h @ pn.T + qn) if late else (reset * h) @ pn.T + qn
        h = (1 - update) * np.tanh(xn + inner) + update * h
        wanted.append(h)
    np.testing.assert_allclose(found, wanted[::-1] if backwards else wanted)
    np.testing.assert_allclose(last, h)


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, np.inf, -np.inf])
def test_norms(order: float) -> None:
    (found,) = computed(lambda b, x: norm(b, x, [2], order, keep=False), X)
    np.testing.assert_allclose(found, np.linalg.norm(X, order, 2))


@pytest.mark.parametrize("nesterov", [True, False])
def test_momentum_takes_numbers_and_tensors(nesterov: bool) -> None:
    w, a, g = RANDOM.standard_normal((3, 4))
    step = lambda b, w, a, g, rate=0.1, mu=0.9: optimizers.momentum(  # noqa: E731
        b, w, a, g, rate, mu, nesterov=nesterov
    )
    moved = a * 0.9 + g
    wanted = w - 0.1 * (g + 0.9 * moved if nesterov else moved)
    for factors in ((), (np.asarray(0.1), np.asarray(0.9))):
        new, kept = computed(step, w, a, g, *factors)
        np.testing.assert_allclose(new, wanted)
        np.testing.assert_allclose(kept, moved)
