"""What is compared: everything for small sizes, blocks and the first right result for large ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_signature import matmul

from polyloom.ir.evaluation.host_random_inputs import trial_arrays
from polyloom.mdh.tuning import check_candidate
from polyloom.mdh.tuning.check_candidate import Checker
from polyloom.polyhedra.loops.tree import Number


def test_a_small_md_hom_is_compared_whole(tmp_path: Path) -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays = trial_arrays(hom, buffers)
    checker = Checker(hom, arrays, tmp_path)
    right = arrays["A"] @ arrays["B"]
    assert checker.check({"C": right}) == check_candidate.Verdict(0.0)
    right[4, 5] += 1
    assert "C[4][5]" in checker.check({"C": right}).fault


def test_a_large_one_is_sampled_and_then_compared_with_the_first_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_candidate, "WHOLE", 1000)
    monkeypatch.setattr(check_candidate, "BLOCK", 200)
    hom, buffers = matmul(Number(40), 30, 20)
    arrays = trial_arrays(hom, buffers)
    checker = Checker(hom, arrays, tmp_path)
    right = arrays["A"] @ arrays["B"]
    for corner in ((0, 0), (39, 29)):
        broken = right.copy()
        broken[corner] += 1
        assert checker.check({"C": broken}).fault
    assert not checker.check({"C": right}).fault
    for at in np.ndindex(right.shape):
        broken = right.copy()
        broken[at] += 1
        assert checker.check({"C": broken}).fault
    again = Checker(hom, arrays, tmp_path)
    assert not again.check({"C": right}).fault


def test_nan_is_no_right_result(tmp_path: Path) -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays = trial_arrays(hom, buffers)
    wrong = arrays["A"] @ arrays["B"]
    wrong[0, 0] = np.nan
    assert "nan" in Checker(hom, arrays, tmp_path).check({"C": wrong}).fault


def test_made_up_data_are_exact_and_the_same_each_time() -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays, again = trial_arrays(hom, buffers), trial_arrays(hom, buffers)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert set(np.unique(arrays["A"])) <= {-2, -1, 1, 2}
