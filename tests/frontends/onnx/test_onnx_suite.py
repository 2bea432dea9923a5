"""ONNX's own backend tests: nothing wrong, much passing, the rest refused by name."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx ships the cases: requirements/develop.txt")
from onnx_suite import cases, run_case

from polyloom.frontends.graph.lowering import NOT_FORESEEN


def test_the_cases_are_there() -> None:
    assert sum(1 for _ in cases()) == 1905


@pytest.mark.parametrize("kind", ["pytorch-converted", "pytorch-operator"])
def test_models_of_pytorch(kind: str) -> None:
    outcomes = [run_case(case) for case in cases([kind])]
    assert [o for o in outcomes if o.status != "pass"] == []


@pytest.mark.slow
@pytest.mark.ci
def test_the_whole_suite() -> None:
    outcomes = [run_case(case) for case in cases()]
    assert [o for o in outcomes if o.status in ("wrong", "crash")] == []
    counts = Counter(o.status for o in outcomes)
    assert counts["pass"] >= 1520
    assert all(o.reason for o in outcomes if o.status == "unsupported")
    assert [o for o in outcomes if NOT_FORESEEN in o.reason] == []


def test_the_documents_have_one_number() -> None:
    docs = Path(__file__).parents[3] / "docs"
    (by_evaluator,) = re.findall(r"1905 cases: (\d+) pass, ", (docs / "onnx_support.md").read_text())
    (by_runner,) = re.findall(r"1,905 tests, ([\d,]+) passed, ", (docs / "python.md").read_text())
    assert int(by_runner.replace(",", "")) == int(by_evaluator)
