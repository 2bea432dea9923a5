"""Loops split by what iterations need and overwrite: results are those of the order of the source."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from forms import run, transformed

from samples import one_in

N = 13
"""Odd, so that halves meet."""


FAR = ["i", "i", "i", "i + 1", "i - 1", "i + 2", "n - 1 - i", "n // 2", "0", "i - n // 2", "i + k"]
NEAR = ["i", "i", "i", "i + 1", "i + 1", "i + 2"]


def _random(seed: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the text of a loop, and its statements as Python."""
    rng = Random(seed)
    places = [FAR, NEAR][seed // 16 % 2]

    def element(places: list[str] = places) -> str:
        return f"{rng.choice('abc')}[{rng.choice(places)} + 20]"

    targets = [element(["i"] if places is NEAR else FAR) for _ in range(rng.randint(1, 3))]
    lines = [(target, f"{element()} {rng.choice('+-')} {element()}") for target in targets]
    body = " ".join(f"{target} = {value};" for target, value in lines)
    arrays = "int a[n + 60], int b[n + 60], int c[n + 60]"
    text = f"void f(int n, int k, {arrays}) {{ for (int i = 0; i < n; i++) {{ {body} }} }}"
    return text.replace("//", "/"), lines


def _in_order(lines: list[tuple[str, str]], arrays: dict[str, np.ndarray], k: int) -> None:
    for i in range(N):
        for target, value in lines:
            exec(f"{target} = {value}", {**arrays, "i": i, "n": N, "k": k})


@pytest.mark.parametrize("seed", one_in(16, [(k,) for k in range(240)], name=lambda case: str(case[0])))
def test_random_loops_leave_what_the_order_of_the_source_leaves(seed: tuple[int]) -> None:
    text, lines = _random(seed[0])
    program = transformed(text)
    rng = np.random.default_rng(7)
    for k in (-3, 0, 5):
        arrays = {name: rng.integers(-99, 99, N + 60).astype(np.int32) for name in "abc"}
        wanted = {name: array.copy() for name, array in arrays.items()}
        _in_order(lines, wanted, k)
        for name, found in run(program, {"n": N, "k": k, **arrays}).items():
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name} of {text}")
