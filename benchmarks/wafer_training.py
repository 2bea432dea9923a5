"""Networks trained on one simulated wafer, their losses beside those of NumPy.

    python benchmarks/wafer_training.py lenet --steps 100
    python benchmarks/wafer_training.py mlp --steps 100

Each sample is a step of gradient descent: forward, backward and the update of all weights are layers on
rectangles of their own, and the weights are states. LeNet's step, on two images of 28 x 28 points, is
``tests/data/tensorflow/grad_lenet.pb``, written by TensorFlow; the perceptron's, 64 to 48 to 10, is
``examples/mlp_training.lair``. The other losses are computed here, in NumPy. Inputs are patterns, one for
each of four classes, with noise.

Rounding decides which of two nearly equal points a pooling takes, and whether a sum near 0 passes a ReLU;
from there on trainings are different ones, all of them right. So NumPy trains several times, with sums that
are off by roundings, and it ends with 1 where the wafer's losses or weights are those of none of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from polyloom.api.network import simulate_one_wafer
from polyloom.api.reading import load_tensor_program
from polyloom.sources import Loaded, Reading, load_tensors

ROOT = Path(__file__).parents[1]
Array = np.ndarray[Any, np.dtype[np.float32]]
Rounding = np.random.Generator | None
"""Where the roundings of a training come from; None: what NumPy does by itself."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """A network and what it learns from.

    ``state``: its weights, each with the output that is its value after a step, in the order of ``weights``,
    their values before the first one; ``samples``: inputs with an axis of steps, in the order in which
    ``step`` takes what one of them has of each; ``losses``: of each step, from the network's outputs;
    ``step``: what NumPy makes of weights and a sample: the weights after it, and the loss.
    """

    loaded: Loaded
    state: Mapping[str, str]
    weights: Sequence[Array]
    samples: Mapping[str, Array]
    losses: Callable[[Mapping[str, Array]], Array]
    step: Callable[[Sequence[Array], Sequence[Array], Rounding], tuple[list[Array], np.float32]]


CLASSES = 4
TRAININGS, ROUNDING = 24, 2e-7
"""NumPy's trainings, the first without noise; what a sum is off by, of the largest beside it."""
NEAR = 1e-5
"""How far losses and weights of the same training may be apart."""


def rounded(sums: Array, rng: Rounding) -> Array:
    """Return sums that are off by roundings."""
    if rng is None:
        return sums
    off = ROUNDING * float(np.abs(sums).max()) * rng.normal(size=sums.shape)
    return sums + off.astype(sums.dtype)


# A perceptron


def perceptron(steps: int) -> Training:
    """Return a perceptron that learns labels by their squared distance."""
    before, hidden, after = 64, 48, 10
    sizes = {"K": str(before), "M": str(hidden), "N": str(after)}
    rng = np.random.default_rng(0)
    x, t = patterns(rng, (before,), (steps,))
    shapes = (hidden, before), (after, hidden)
    weights = [rng.normal(0, (2 / n) ** 0.5, (m, n)).astype(np.float32) for m, n in shapes]
    return Training(
        loaded=load_tensors(ROOT / "examples" / "mlp_training.lair", Reading(defines=sizes)),
        state={"W1": "V1", "W2": "V2"},
        weights=weights,
        samples={"x": x, "t": t},
        losses=lambda outputs: ((outputs["y"] - t) ** 2).sum(axis=1),
        step=perceptron_step,
    )


def perceptron_step(
    weights: Sequence[Array], sample: Sequence[Array], rng: Rounding = None
) -> tuple[list[Array], np.float32]:
    """Return the weights after a step of gradient descent, and the loss before it."""
    (w1, w2), (x, t), rate = weights, sample, np.float32(0.125)
    sums = rounded(w1 @ x, rng)
    active = np.maximum(sums, 0)
    error = w2 @ active - t
    back = np.where(sums > 0, w2.T @ error, 0)
    return [w1 - rate * np.outer(back, x), w2 - rate * np.outer(error, active)], (error**2).sum()


def patterns(
    rng: np.random.Generator, shape: tuple[int, ...], samples: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return points, ``float32[*samples, *shape]``, and their labels, ``float32[*samples, 10]``."""
    clean = rng.normal(0, 0.4, (CLASSES, *shape))
    classes = rng.integers(0, CLASSES, samples)
    noisy = clean[classes] + rng.normal(0, 0.2, (*samples, *shape))
    return noisy.astype(np.float32), np.eye(10, dtype=np.float32)[classes]


# LeNet


def lenet(steps: int) -> Training:
    """Return LeNet with the weights of the file, smaller: with those it does not learn."""
    loaded = load_tensor_program(ROOT / "tests" / "data" / "tensorflow" / "grad_lenet.pb")
    assert loaded.model is not None
    images, labels = patterns(np.random.default_rng(0), (28, 28, 1), (steps, 2))
    samples = {"x0": images, "x1": labels}
    given = loaded.model.inputs(samples)
    return Training(
        loaded=loaded,
        state=LENET,
        weights=[np.float32(0.5) * given[name] for name in LENET],
        samples=samples,
        losses=lambda outputs: outputs["Identity_4"].reshape(-1),
        step=lenet_step,
    )


LENET = {
    "Conv2D_ReadVariableOp_resource": "Identity_2",
    "add_ReadVariableOp_resource": "Identity",
    "Conv2D_1_ReadVariableOp_resource": "Identity_3",
    "add_1_ReadVariableOp_resource": "Identity_1",
    "matmul_ReadVariableOp_resource": "Identity_5",
    "matmul_1_ReadVariableOp_resource": "Identity_6",
    "matmul_2_ReadVariableOp_resource": "Identity_7",
}


def lenet_step(
    weights: Sequence[Array], sample: Sequence[Array], rng: Rounding = None
) -> tuple[list[Array], np.float32]:
    """Return the weights after a step of gradient descent, and the loss before it."""
    (c1, b1, c2, b2, w3, w4, w5), (x, labels), rate = weights, sample, np.float32(0.1)
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
    return [w - rate * g for w, g in zip(weights, gradients, strict=True)], loss


def windows(x: Array, rows: int, columns: int) -> Array:
    """Return ``[n, i, j, c, k, l]``: of an image ``[n, h, w, c]`` what a filter covers at each place."""
    return np.lib.stride_tricks.sliding_window_view(x, (rows, columns), axis=(1, 2))


def convolved(x: Array, f: Array) -> Array:
    """Return the sums of a filter ``[k, l, c, o]`` at each place."""
    return np.einsum("nijckl,klco->nijo", windows(x, *f.shape[:2]), f, optimize=True)


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


NETWORKS: dict[str, Callable[[int], Training]] = {"mlp": perceptron, "lenet": lenet}


def trained(training: Training, rng: Rounding) -> tuple[Array, list[Array]]:
    """Return the loss of each step, and the weights behind the last, as NumPy computes them."""
    weights, losses = list(training.weights), []
    for sample in zip(*training.samples.values(), strict=True):
        weights, loss = training.step(weights, sample, rng)
        losses.append(loss)
    return np.array(losses), weights


@click.command(help=__doc__)
@click.argument("network", type=click.Choice(list(NETWORKS)))
@click.option("--steps", metavar="N", default=100, show_default=True, type=click.IntRange(min=1))
@click.option("--pes", metavar="N", type=click.IntRange(min=1), help="For all layers together.")
def main(network: str, steps: int, pes: int | None) -> None:
    training = NETWORKS[network](steps)
    began = time.process_time()
    given = {name: x[0] if steps == 1 else x for name, x in training.samples.items()}
    found = simulate_one_wafer(
        training.loaded,
        {**given, **dict(zip(training.state, training.weights, strict=True))},
        samples=steps,
        pes=pes,
        state=training.state,
        progress=lambda name: print(f"placing {name}", file=sys.stderr, flush=True),
    )
    seconds = time.process_time() - began
    ours = training.losses(found.outputs)
    results = [found.outputs[name] for name in training.state.values()]

    def distance(losses: Array, others: Sequence[Array]) -> float:
        pairs = [(ours, losses), *zip(results, others, strict=True)]
        return max(float(np.abs(a - b).max()) for a, b in pairs)

    noise = [None, *(np.random.default_rng(seed) for seed in range(1, TRAININGS))]
    trainings = [trained(training, rng) for rng in noise]
    off = [distance(*each) for each in trainings]
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
    print(f"{found.simulation.cycles:,} cycles, {found.interval:,.0f} between two steps, {seconds:.0f} s")
    if off[nearest] > NEAR:
        sys.exit(1)


def spread(trainings: Sequence[tuple[Array, list[Array]]]) -> float:
    """Return how far the first training's losses and weights are from those of any other."""
    first, *others = [(losses, *weights) for losses, weights in trainings]
    return max(float(np.abs(a - b).max()) for other in others for a, b in zip(first, other, strict=True))


if __name__ == "__main__":
    main()
