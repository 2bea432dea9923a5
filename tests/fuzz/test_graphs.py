"""Random ONNX graphs of many nodes, as C on the processor: what onnxruntime says, or a refusal."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are made with onnx: requirements/develop.txt")
pytest.importorskip("onnxruntime", reason="graphs grow by what it gives: requirements/develop.txt")
from graphs import compare, inputs_of, random_graph

SEEDS = (8, 14)
"""Images and volumes: windows, an epilogue with a sum, parts and products."""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("seed", SEEDS)
def test_random_graphs(seed: int) -> None:
    model = random_graph(seed)
    verdict = compare(model, seed)
    assert verdict.status == "same", f"seed {seed}: {verdict}"
    assert len(model.graph.node) > 2


def test_the_same_seed_makes_the_same_graph() -> None:
    assert random_graph(11) == random_graph(11)


def test_a_result_that_is_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import graphs

    def off(*arguments: object) -> dict[str, np.ndarray]:
        found = evaluator(*arguments)  # type: ignore[arg-type]
        return {n: a * np.asarray(1.001, a.dtype) for n, a in found.items()}

    evaluator = graphs.models._onnxruntime
    model = random_graph(SEEDS[0])
    assert inputs_of(model, SEEDS[0])
    monkeypatch.setattr(graphs.models, "_onnxruntime", off)
    monkeypatch.setattr(graphs.models, "_evaluator", off)
    assert compare(model, SEEDS[0]).status == "wrong"
