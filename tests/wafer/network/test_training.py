"""A perceptron trained for a hundred steps on the simulated wafer, its weights staying where they are.

Once as one layer on a rectangle, once with each of its calls on a rectangle of its own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.api.network import simulate_one_wafer
from polyloom.sources import Reading, load_tensors
from wafer.network.networks import CNN_TRAINING

EXAMPLES = Path(__file__).parents[3] / "examples"
STEPS, RATE = 100, np.float32(0.125)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("several", [False, True], ids=["one rectangle", "several"])
def test_losses_of_a_hundred_steps_are_those_of_numpy(several: bool) -> None:
    sizes = {"K": "8", "M": "12", "N": "6"}
    loaded = load_tensors(EXAMPLES / "mlp_training.lair", Reading(defines=sizes))
    rng = np.random.default_rng(0)
    w1, w2, teacher = (rng.normal(0, 0.3, s).astype(np.float32) for s in ((12, 8), (6, 12), (6, 8)))
    x = rng.normal(0, 0.5, (STEPS, 8)).astype(np.float32)
    t = x @ teacher.T
    inputs = {"W1": w1, "W2": w2, "x": x, "t": t}
    if several:
        state = {"W1": "V1", "W2": "V2"}
        network = simulate_one_wafer(loaded, inputs, samples=STEPS, state=state, check=True)
        verdict, results = network.check, network.outputs
    else:
        mapping = EXAMPLES / "mlp_training.map"
        layer = polyloom.simulate(loaded.program, mapping, inputs, invocations=STEPS, check=True)
        verdict, results = layer.check, layer.outputs
    assert verdict is not None
    assert verdict.passed
    outputs = []
    for sample, target in zip(x, t, strict=True):
        hidden = w1 @ sample
        active = np.maximum(hidden, 0)
        y = w2 @ active
        error = y - target
        back = np.where(hidden > 0, w2.T @ error, 0)
        w2, w1 = w2 - RATE * np.outer(error, active), w1 - RATE * np.outer(back, sample)
        outputs.append(y)
    losses = [((np.array(ys) - t) ** 2).sum(axis=1) for ys in (results["y"], outputs)]
    assert np.allclose(*losses, rtol=1e-4, atol=1e-6)
    assert losses[0][-20:].mean() < 0.5 * losses[0][:20].mean(), "it does not learn"
    assert np.allclose(results["V1"], w1, atol=1e-5)
    assert np.allclose(results["V2"], w2, atol=1e-5)


def test_weights_of_a_model_are_a_state(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    x, v = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4]) for n in "xV")
    first = np.array([1, 2, 3, 4], dtype=np.float32)
    nodes = [onnx.helper.make_node("Sub", ["W", "x"], ["V"])]
    graph = onnx.helper.make_graph(nodes, "g", [x], [v], [onnx.numpy_helper.from_array(first, "W")])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)]), tmp_path / "m.onnx"
    )
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    result = simulate_one_wafer(
        load_tensors(tmp_path / "m.onnx", Reading()),
        {"x": given},
        samples=3,
        pes=8,
        state={"W": "V"},
        check=True,
    )
    assert result.check is not None
    assert result.check.passed
    assert np.array_equal(result.outputs["V"], first - given.sum(axis=0))


@pytest.mark.slow
def test_a_convolutional_network_learns_as_in_numpy() -> None:
    rng, rate = np.random.default_rng(0), np.float32(1 / 32)
    filters, dense = (rng.normal(0, 0.2, s).astype(np.float32) for s in ((2, 3, 3), (4, 2, 6, 6)))
    x = rng.normal(0, 0.5, (STEPS, 8, 8)).astype(np.float32)
    t = (x.reshape(STEPS, 64) @ rng.normal(0, 0.2, (64, 4))).astype(np.float32)
    inputs = {"x": x, "t": t, "F": filters, "D": dense}
    state = {"F": "G", "D": "E"}
    network = simulate_one_wafer(CNN_TRAINING, inputs, samples=STEPS, pes=64, state=state, check=True)
    assert network.check is not None
    assert network.check.passed
    outputs = []
    for sample, target in zip(x, t, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(sample, (6, 6))
        sums = np.einsum("ckl,klij->cij", filters, windows)
        y = np.einsum("mcij,cij->m", dense, np.maximum(sums, 0))
        back = np.where(sums > 0, np.einsum("mcij,m->cij", dense, y - target), 0)
        dense = dense - rate * np.einsum("m,cij->mcij", y - target, np.maximum(sums, 0))
        filters = filters - rate * np.einsum("cij,klij->ckl", back, windows)
        outputs.append(y)
    losses = [((np.array(ys) - t) ** 2).sum(axis=1) for ys in (network.outputs["y"], outputs)]
    assert np.allclose(*losses, rtol=1e-4, atol=1e-6)
    assert losses[0][-20:].mean() < losses[0][:20].mean(), "it does not learn"
    assert np.allclose(network.outputs["G"], filters, atol=1e-5)
    assert np.allclose(network.outputs["E"], dense, atol=1e-5)
