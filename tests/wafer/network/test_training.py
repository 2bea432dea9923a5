"""A perceptron trained for a hundred steps on the simulated wafer, its weights staying where they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.sources import Reading, load_tensors

EXAMPLES = Path(__file__).parents[3] / "examples"
STEPS, RATE = 100, np.float32(0.125)


@pytest.mark.slow
@pytest.mark.ci
def test_losses_of_a_hundred_steps_are_those_of_numpy() -> None:
    sizes = {"K": "8", "M": "12", "N": "6"}
    program = load_tensors(EXAMPLES / "mlp_training.lair", Reading(defines=sizes)).program
    rng = np.random.default_rng(0)
    w1, w2, teacher = (rng.normal(0, 0.3, s).astype(np.float32) for s in ((12, 8), (6, 12), (6, 8)))
    x = rng.normal(0, 0.5, (STEPS, 8)).astype(np.float32)
    t = x @ teacher.T
    inputs = {"W1": w1, "W2": w2, "x": x, "t": t}
    mapping = EXAMPLES / "mlp_training.map"
    result = polyloom.simulate(program, mapping, inputs, invocations=STEPS, check=True)
    assert result.check is not None
    assert result.check.passed
    outputs = []
    for sample, target in zip(x, t, strict=True):
        hidden = w1 @ sample
        active = np.maximum(hidden, 0)
        y = w2 @ active
        error = y - target
        back = np.where(hidden > 0, w2.T @ error, 0)
        w2, w1 = w2 - RATE * np.outer(error, active), w1 - RATE * np.outer(back, sample)
        outputs.append(y)
    losses = [((np.array(ys) - t) ** 2).sum(axis=1) for ys in (result.outputs["y"], outputs)]
    assert np.allclose(*losses, rtol=1e-4, atol=1e-6)
    assert losses[0][-20:].mean() < 0.5 * losses[0][:20].mean(), "it does not learn"
    assert np.allclose(result.outputs["V1"], w1, atol=1e-5)
    assert np.allclose(result.outputs["V2"], w2, atol=1e-5)
