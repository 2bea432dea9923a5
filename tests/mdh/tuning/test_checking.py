"""What is compared: everything for small sizes, blocks and the first right result for large ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_signature import matmul

from polyloom.ir.evaluation.random_inputs import trial_arrays
from polyloom.ir.verification.comparison import Verdict
from polyloom.mdh.tuning.candidates import checking
from polyloom.mdh.tuning.candidates.checking import Checker
from polyloom.polyhedra.loops.tree import Number


def test_a_small_md_hom_is_compared_whole(tmp_path: Path) -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays = trial_arrays(hom, buffers)
    checker = Checker(hom, arrays, tmp_path)
    right = arrays["A"] @ arrays["B"]
    assert checker.check({"C": right}) == Verdict()
    right[4, 5] += 1
    assert "C[4][5]" in checker.check({"C": right}).mismatches[0]


@pytest.mark.slow
@pytest.mark.ci
def test_a_large_one_is_sampled_and_then_compared_with_the_first_right_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "WHOLE", 1000)
    monkeypatch.setattr(checking, "BLOCK", 200)
    hom, buffers = matmul(Number(40), 30, 20)
    arrays = trial_arrays(hom, buffers)
    checker = Checker(hom, arrays, tmp_path)
    right = arrays["A"] @ arrays["B"]
    for corner in ((0, 0), (39, 29)):
        broken = right.copy()
        broken[corner] += 1
        assert not checker.check({"C": broken}).passed
    assert checker.check({"C": right}).passed
    for at in np.ndindex(right.shape):
        broken = right.copy()
        broken[at] += 1
        assert not checker.check({"C": broken}).passed
    again = Checker(hom, arrays, tmp_path)
    assert again.check({"C": right}).passed


@pytest.mark.parametrize("large", [False, True], ids=["whole", "sampled"])
def test_a_small_element_beside_a_large_one_has_its_own_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    """A kernel that is off by 3 bounds in one element of 1e-3, where another is 1e6."""
    if large:
        monkeypatch.setattr(checking, "WHOLE", 1000)
        monkeypatch.setattr(checking, "BLOCK", 200)
    hom, buffers = matmul(Number(40), 30, 20)
    arrays = trial_arrays(hom, buffers)
    scales = np.geomspace(1e-3, 1e6, 40, dtype=np.float32)
    given = {**arrays, "A": arrays["A"] * scales[:, None], "B": arrays["B"] * np.float32(1 / 3)}
    right = given["A"] @ given["B"]
    sizes = np.abs(given["A"]).astype(np.float64) @ np.abs(given["B"])
    bound = 20 * np.finfo(np.float32).eps * sizes
    checker = Checker(hom, given, tmp_path)
    assert checker.check({"C": right}).passed
    assert bound[0, 0] < 1e-6 * np.abs(right).max()
    for factor, passes in ((0.5, True), (3, False)):
        off = right.astype(np.float64)
        off[0, 0] += factor * bound[0, 0] * np.sign(off[0, 0])
        for judge in (checker, Checker(hom, given, tmp_path)):
            assert judge.check({"C": off.astype(np.float32)}).passed is passes


def test_nan_is_no_right_result(tmp_path: Path) -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays = trial_arrays(hom, buffers)
    wrong = arrays["A"] @ arrays["B"]
    wrong[0, 0] = np.nan
    assert "nan" in Checker(hom, arrays, tmp_path).check({"C": wrong}).mismatches[0]


def test_made_up_data_are_exact_and_the_same_each_time() -> None:
    hom, buffers = matmul(Number(5), 6, 7)
    arrays, again = trial_arrays(hom, buffers), trial_arrays(hom, buffers)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert set(np.unique(arrays["A"])) <= {-2, -1, 1, 2}
