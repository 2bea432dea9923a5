"""What ``run --check`` lets pass: reassociated sums and rounding, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.evaluation.random_inputs import SCALES, random_reals
from polyloom.ir.host import HostProgram
from polyloom.ir.verification.comparison import Verdict
from polyloom.ir.verification.host_results import check_run
from polyloom.ir.verification.references import Expected, evaluated
from polyloom.scop.transform import host_program

N = 1000

QUOTIENTS = "for (int i = 0; i < n; i++) y[i] = a[i] / b[i];"
DOT = "y[0] = 0; for (int i = 0; i < n; i++) y[0] += a[i] * b[i];"
SCAN = "y[0] = a[0]; for (int i = 1; i < n; i++) y[i] = y[i - 1] + a[i];"


def program(body: str, kind: str = "float") -> HostProgram:
    text = f"""#include <math.h>
void f(int n, {kind} a[n], {kind} b[n], {kind} y[n])
{{
#pragma scop
{body}
#pragma endscop
}}
"""
    (scop,) = read_c(Source("f.c", text), None, {}, (), None)
    return host_program(scop).program


def verdict(made: HostProgram, inputs: dict[str, Any], change: Any) -> Verdict:
    """Return the verdict on the right results after ``change``."""
    given = {b.name: inputs.get(b.name, np.zeros(N, np.float32)) for b in made.buffers if b.name in "aby"}
    given = {n: a for n, a in given.items() if made.buffer(n).role.value in ("input", "updated")}
    expected = evaluated(made)({"n": N}, given)
    found = {name: change(array.copy()) for name, array in expected.arrays.items()}
    return check_run(made, {"n": N}, given, expected, found, made_up=False)


def reals(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = 10 ** generator.uniform(-3, 3, N) * generator.choice([-1, 1], N)
    return values.astype(np.float32)


def with_one_large() -> dict[str, np.ndarray]:
    a, b = reals(0), np.abs(reals(1))
    a[0], b[0] = 1e6, 1.0
    return {"a": a, "b": b}


@pytest.mark.parametrize(
    "change",
    [
        lambda y: np.concatenate([y[:1], -3 * y[1:]]),
        lambda y: 0 * y,
        lambda y: np.where(np.arange(N) == 17, np.nan, y),
        lambda y: np.where(np.arange(N) == 17, np.inf, y),
        lambda y: np.where(np.arange(N) == 999, y * np.float32(1 + 1e-5), y),
    ],
    ids=["wrong signs", "zeros", "one NaN", "one infinity", "the last one slightly off"],
)
def test_small_elements_beside_a_large_one_are_judged_too(change: Any) -> None:
    found = verdict(program(QUOTIENTS), with_one_large(), change)
    assert not found.passed
    assert found.tight == 1 and not found.unknown


def test_an_ulp_more_or_less_passes() -> None:
    found = verdict(program(QUOTIENTS), with_one_large(), lambda y: np.nextafter(y, 0))
    assert found.passed and found.max_error > 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("body", [DOT, SCAN], ids=["dot", "scan"])
def test_sums_in_another_order_pass(body: str, seed: int) -> None:
    a, b = reals(seed), reals(seed + 100)

    def reordered(y: np.ndarray) -> np.ndarray:
        order = np.random.default_rng(seed).permutation(N)
        if body == DOT:
            y[0] = np.float32(np.add.reduce((a * b)[order], dtype=np.float32))
            return y
        blocks = np.add.accumulate(a.reshape(10, -1), axis=1, dtype=np.float32)
        carries = np.concatenate([[0], np.add.accumulate(blocks[:, -1], dtype=np.float32)[:-1]])
        return np.asarray(blocks + carries[:, None], np.float32).reshape(-1)

    assert verdict(program(body), {"a": a, "b": b}, reordered).passed
    assert not verdict(program(body), {"a": a, "b": b}, lambda y: 0 * y).passed


def test_what_nothing_is_known_of_is_said() -> None:
    inputs = {"a": reals(0), "b": np.full(N, np.nextafter(np.float32(1 / 3), 1))}
    body = "for (int i = 0; i < n; i++) y[i] = a[i] / (b[i] * 3 - 1);"
    found = verdict(program(body), inputs, lambda y: 2 * y)
    assert found.passed and found.tight == 0 and found.unknown == N
    assert "the bound says little" in found.says and f"{N:,} differ" in found.says


def test_elements_that_must_be_infinite_or_no_number() -> None:
    a, b = reals(0), reals(1)
    a[3], b[3], a[5], b[5] = 0, 0, 1, 0
    right = verdict(program(QUOTIENTS), {"a": a, "b": b}, lambda y: y)
    assert right.passed
    for at, value in ((3, 1.0), (5, -np.inf), (5, np.nan)):
        wrong = verdict(program(QUOTIENTS), {"a": a, "b": b}, lambda y, k=at, v=value: _put(y, k, v))
        assert not wrong.passed


def _put(array: np.ndarray, at: int, value: float) -> np.ndarray:
    array[at] = value
    return array


def test_twice_the_bound_where_a_reference_takes_other_ways() -> None:
    made, inputs = program(QUOTIENTS), with_one_large()
    expected = evaluated(made)({"n": N}, inputs)
    found = {"y": expected.arrays["y"] * np.float32(1 + 5e-7)}
    assert not check_run(made, {"n": N}, inputs, expected, found, made_up=False).passed
    wider = Expected(expected.arrays, expected.by, reading_checked=True, bounds=2.0)
    assert check_run(made, {"n": N}, inputs, wider, found, made_up=False).passed


def test_too_large_for_bounds_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyloom.ir.verification.host_results.host_error_bound", lambda *_: None)
    found = verdict(program(QUOTIENTS), with_one_large(), lambda y: np.nextafter(y, 0))
    assert found.passed and found.coarse and "too large for a bound of each element" in found.says


def test_reals_of_mixed_scale() -> None:
    body = "for (int i = 0; i < n; i++) y[i] = sqrtf(a[i]) * b[i];"
    made = program(body)
    inputs = random_reals(made, SCALES[0], 1, parameters={"n": N})
    assert inputs is not None
    assert (inputs["a"] > 0).all() and (inputs["b"] < 0).any()
    sizes = np.abs(inputs["b"])
    assert sizes.min() < 0.01 and sizes.max() > 100
    again = random_reals(made, SCALES[0], 1, parameters={"n": N})
    assert again is not None and all(np.array_equal(inputs[n], again[n]) for n in inputs)
    assert random_reals(program(QUOTIENTS, "int"), SCALES[0], 1, parameters={"n": N}) is None
