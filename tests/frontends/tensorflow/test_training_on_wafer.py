"""A training step out of TensorFlow on the wafer: every layer with a map that is chosen, against TensorFlow.

A layer gets what the evaluator computes for the layers before it, and is compared with the evaluator; what
the last layers give, the updated weights and the loss, is compared with what TensorFlow computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_tensorflow import DATA, TOLERANCE, stored

from polyloom import simulate_layers
from polyloom.frontends.graph.imported import Imported
from polyloom.frontends.tensorflow import import_tensorflow
from polyloom.wafer.explain.layers import ModelRun

pytestmark = pytest.mark.slow


def assert_trains(name: str) -> None:
    model = import_tensorflow(DATA / f"{name}.pb")
    inputs, wanted = stored(name)
    run = simulate_layers(model.program, model.inputs(inputs), check=True)
    assert run.fault() is None
    assert all(r.check is not None and r.check.passed for r in run.results)
    assert len(run.results) == len(run.layers) > 1
    assert_as_tensorflow(model, run, wanted)


def assert_as_tensorflow(model: Imported, run: ModelRun, wanted: dict[str, Any]) -> None:
    simulated = {name: array for result in run.results for name, array in result.outputs.items()}
    found = model.outputs(simulated)
    for name, array in wanted.items():
        bound = TOLERANCE * np.abs(array).max(initial=0)
        assert np.abs(found[name].astype(float) - array).max(initial=0) <= bound, name


@pytest.mark.ci
def test_a_dense_layer_trains() -> None:
    assert_trains("grad_dense")


@pytest.mark.parametrize("name", ["grad_residual", "grad_lenet"])
def test_a_network_trains(name: str) -> None:
    assert_trains(name)
