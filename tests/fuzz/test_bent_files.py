"""Model files bent at random are imported or refused by a diagnostic, in little time."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the models are made with onnx: requirements/develop.txt")
from bent_files import run


def faults(seeds: range, folder: Path) -> list[str]:
    found = {seed: run(seed, folder) for seed in seeds}
    return [f"seed {seed}: {said}" for seed, said in found.items() if said.startswith("FAULT")]


@pytest.mark.slow
@pytest.mark.ci
def test_bent_files(tmp_path: Path) -> None:
    assert faults(range(150), tmp_path) == []


def test_a_view_of_nothing_is_refused(tmp_path: Path) -> None:
    assert run(2949, tmp_path) == "model-inexpressible"


@pytest.mark.slow
@pytest.mark.ci
def test_many_bent_files(tmp_path: Path) -> None:
    assert faults(range(1000, 4000), tmp_path) == []
