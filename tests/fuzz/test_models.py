"""Random models of single operators: what onnxruntime says, or a refusal."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="the models are made with onnx: requirements/develop.txt")
pytest.importorskip("onnxruntime", reason="onnx's own evaluator alone is no judge: requirements/develop.txt")
from models import compare, random_model


def faults(seeds: range) -> list[str]:
    verdicts = {seed: compare(random_model(seed), seed) for seed in seeds}
    return [f"seed {seed}: {v.reason}" for seed, v in verdicts.items() if v.is_fault]


@pytest.mark.slow
@pytest.mark.ci
def test_random_models() -> None:
    assert faults(range(120)) == []


@pytest.mark.slow
@pytest.mark.ci
def test_many_random_models() -> None:
    assert faults(range(1000, 4000)) == []


def test_the_same_seed_makes_the_same_model() -> None:
    for seed in range(20):
        assert random_model(seed) == random_model(seed)
