"""LeNet trained on one simulated wafer, its losses beside those of NumPy.

    python benchmarks/lenet_training.py --steps 100

Each sample is a step of gradient descent on two images of 28 x 28 points: forward, backward and the update of
all weights are layers on rectangles of their own, and the weights are states. The step is
``tests/data/tensorflow/grad_lenet.pb``, written by TensorFlow; the other losses are computed here, in NumPy.
Images are patterns, one for each of four classes, with noise.

Rounding decides which of two nearly equal points a pooling takes, and whether a sum near 0 passes a ReLU;
from there on trainings are different ones, all of them right. So NumPy trains several times, with sums that
are off by roundings, and it ends with 1 where the wafer's losses or weights are those of none of them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from polyloom.api.network import simulate_one_wafer
from polyloom.api.reading import load_tensor_program

MODEL = Path(__file__).parents[1] / "tests" / "data" / "tensorflow" / "grad_lenet.pb"
STATE = {
    "Conv2D_ReadVariableOp_resource": "Identity_2",
    "add_ReadVariableOp_resource": "Identity",
    "Conv2D_1_ReadVariableOp_resource": "Identity_3",
    "add_1_ReadVariableOp_resource": "Identity_1",
    "matmul_ReadVariableOp_resource": "Identity_5",
    "matmul_1_ReadVariableOp_resource": "Identity_6",
    "matmul_2_ReadVariableOp_resource": "Identity_7",
}
"""Weights, each with the output that is its value after the step, in the order of the layers."""
LOSS = "Identity_4"
RATE, SCALE = np.float32(0.1), np.float32(0.5)
"""Of a step; of the weights in the file, with which it does not learn."""
Array = np.ndarray[Any, np.dtype[np.float32]]


CLASSES = 4


def batches(steps: int) -> tuple[Array, Array]:
    """Return images, float32[steps, 2, 28, 28, 1], and labels, float32[steps, 2, 10]."""
    rng = np.random.default_rng(0)
    patterns = rng.normal(0, 0.4, (CLASSES, 28, 28, 1))
    classes = rng.integers(0, CLASSES, (steps, 2))
    images = patterns[classes] + rng.normal(0, 0.2, (steps, 2, 28, 28, 1))
    return images.astype(np.float32), np.eye(10, dtype=np.float32)[classes]


TRAININGS, ROUNDING = 24, 2e-7
"""NumPy's trainings, the first without noise; what a sum is off by, of the largest beside it."""
NEAR = 1e-5
"""How far losses and weights of the same training may be apart."""


def trained(
    weights: list[Array], images: Array, labels: Array, rng: np.random.Generator | None
) -> tuple[Array, list[Array]]:
    """Return the loss of each step, and the weights behind the last; ``rng``: of the roundings."""
    losses = []
    for x, t in zip(images, labels, strict=True):
        weights, loss = step(weights, x, t, rng)
        losses.append(loss)
    return np.array(losses), weights


def step(
    weights: list[Array], x: Array, labels: Array, rng: np.random.Generator | None = None
) -> tuple[list[Array], np.float32]:
    """Return the weights after a step of gradient descent, and the loss before it."""
    c1, b1, c2, b2, w3, w4, w5 = weights
    x = np.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)))
    a1 = np.maximum(rounded(convolved(x, c1), rng) + b1, 0)
    p1, way1 = pooled(a1)
    a2 = np.maximum(rounded(convolved(p1, c2), rng) + b2, 0)
    p2, way2 = pooled(a2)
    flat = p2.reshape(len(p2), -1)
    h3 = np.maximum(flat @ w3, 0)
    h4 = np.maximum(h3 @ w4, 0)
    logits = h4 @ w5
    shifted = logits - logits.max(axis=1, keepdims=True)
    sums = np.exp(shifted).sum(axis=1, keepdims=True)
    loss = (labels * (np.log(sums) - shifted)).sum() / np.float32(len(x))
    d5 = (np.exp(shifted) / sums - labels) / np.float32(len(x))
    d4 = np.where(h4 > 0, d5 @ w5.T, 0)
    d3 = np.where(h3 > 0, d4 @ w4.T, 0)
    g2 = np.where(a2 > 0, unpooled((d3 @ w3.T).reshape(p2.shape), way2), 0)
    back = np.pad(g2, ((0, 0), (4, 4), (4, 4), (0, 0)))
    g1 = np.where(a1 > 0, unpooled(convolved(back, c2[::-1, ::-1].transpose(0, 1, 3, 2)), way1), 0)
    gradients = [
        filter_gradient(x, g1),
        g1.sum(axis=(0, 1, 2)),
        filter_gradient(p1, g2),
        g2.sum(axis=(0, 1, 2)),
        flat.T @ d3,
        h3.T @ d4,
        h4.T @ d5,
    ]
    return [w - RATE * g for w, g in zip(weights, gradients, strict=True)], loss


def windows(x: Array, rows: int, columns: int) -> Array:
    """Return ``[n, i, j, c, k, l]``: of an image ``[n, h, w, c]`` what a filter covers at each place."""
    return np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(1, 2))


def convolved(x: Array, f: Array) -> Array:
    """Return the sums of a filter ``[k, l, c, o]`` at each place."""
    return np.einsum("nijckl,klco->nijo", windows(x, *f.shape[:2]), f, optimize=True)


def rounded(sums: Array, rng: np.random.Generator | None) -> Array:
    """Return sums that are off by roundings."""
    if rng is None:
        return sums
    off = ROUNDING * float(np.abs(sums).max()) * rng.normal(size=sums.shape)
    return sums + off.astype(sums.dtype)


def filter_gradient(x: Array, gradient: Array) -> Array:
    """Return the gradient of a filter, from that of its sums."""
    seen = windows(x, x.shape[1] - gradient.shape[1] + 1, x.shape[2] - gradient.shape[2] + 1)
    return np.einsum("nijckl,nijo->klco", seen, gradient, optimize=True)


def pooled(x: Array) -> tuple[Array, Array]:
    """Return the largest of each 2 x 2 points, and the first of them that has that value, of ``[.., 4]``."""
    n, h, w, c = x.shape
    fours = x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)
    return fours.max(axis=-1), np.eye(4, dtype=x.dtype)[fours.argmax(axis=-1)]


def unpooled(gradient: Array, way: Array) -> Array:
    """Return the gradient of what was pooled."""
    n, h, w, c = gradient.shape
    fours = (gradient[..., None] * way).reshape(n, h, w, c, 2, 2)
    return fours.transpose(0, 1, 4, 2, 5, 3).reshape(n, 2 * h, 2 * w, c)


@click.command()
@click.option("--steps", metavar="N", default=100, show_default=True, type=click.IntRange(min=1))
@click.option("--pes", metavar="N", type=click.IntRange(min=1), help="For all layers together.")
def main(steps: int, pes: int | None) -> None:
    """Train, compare, and print both losses."""
    loaded = load_tensor_program(MODEL)
    assert loaded.model is not None
    images, labels = batches(steps)
    given = loaded.model.inputs({"x0": images, "x1": labels})
    weights = [SCALE * given[name] for name in STATE]
    found = simulate_one_wafer(
        loaded,
        {"x0": images, "x1": labels, **dict(zip(STATE, weights, strict=True))},
        samples=steps,
        pes=pes,
        state=STATE,
        progress=lambda name: print(f"placing {name}", file=sys.stderr, flush=True),
    )
    ours = found.outputs[LOSS].reshape(-1)
    results = [found.outputs[name] for name in STATE.values()]

    def distance(losses: Array, others: list[Array]) -> float:
        pairs = [(ours, losses), *zip(results, others, strict=True)]
        return max(float(np.abs(a - b).max()) for a, b in pairs)

    noise = [None, *(np.random.default_rng(seed) for seed in range(1, TRAININGS))]
    trainings = [trained(weights, images, labels, rng) for rng in noise]
    off = [distance(*training) for training in trainings]
    nearest = int(np.argmin(off))
    losses = trainings[nearest][0]
    print("step     wafer     NumPy")
    for k in sorted({*range(0, steps, max(1, steps // 10)), steps - 1}):
        print(f"{k:>4}  {ours[k]:.6f}  {losses[k]:.6f}")
    print(
        f"NumPy's training {nearest} of {TRAININGS}: losses and weights are off by {off[nearest]:.1e} at most"
    )
    print(
        f"from NumPy's without noise by {off[0]:.1e}, that from the others by up to {spread(trainings):.1e}"
    )
    print(f"{found.simulation.cycles:,} cycles, {found.interval:,.0f} between two steps")
    if off[nearest] > NEAR:
        sys.exit(1)


def spread(trainings: list[tuple[Array, list[Array]]]) -> float:
    """Return how far the first training's losses and weights are from those of any other."""
    first, *others = [(losses, *weights) for losses, weights in trainings]
    return max(float(np.abs(a - b).max()) for other in others for a, b in zip(first, other, strict=True))


if __name__ == "__main__":
    main()
