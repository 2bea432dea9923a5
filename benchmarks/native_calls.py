"""What a call from Python costs: an empty program, small products, NumPy beside them, one after another.

python benchmarks/native_calls.py [--threads N] [--rounds N]: medians of rounds in which all take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import polyloom

PRODUCT = """
void product(int n, int m, int k, float C[n][m], float A[n][k], float B[k][m])
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            C[i][j] = 0;
            for (int l = 0; l < k; l++)
                C[i][j] += A[i][l] * B[l][j];
        }
}
"""
NOTHING = """
void nothing(float x[1])
{
    x[0] = 1;
}
"""
CALLS = 200
"""Calls of a round."""


def calls(threads: int | None) -> dict[str, Callable[[], Any]]:
    """Return what is compared, by name."""
    rng = np.random.default_rng(1)
    one = np.zeros(1, np.float32)
    device = {"device": "native", "threads": threads}
    nothing = polyloom.compile(NOTHING, **device)
    found: dict[str, Callable[[], Any]] = {"an empty program": partial(nothing, one)}
    for n, m, k in ((10, 500, 64), (16, 16, 16), (128, 128, 128)):
        a, b = rng.random((n, k), np.float32), rng.random((k, m), np.float32)
        c, d = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
        product = polyloom.compile(PRODUCT, **device)
        size = f"{n} x {m} x {k}"
        found[f"{size}, native"] = partial(product, n, m, k, c, a, b)
        found[f"{size}, NumPy"] = partial(np.matmul, a, b, out=d)
        found[f"{size}, native"]()
        np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    return found


def seconds(call: Callable[[], Any]) -> float:
    """Return what a call takes, in a row of them."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - begin) / CALLS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    compared = calls(options.threads)
    rounds = [{name: seconds(call) for name, call in compared.items()} for _ in range(options.rounds)]
    for name in compared:
        times = sorted(r[name] for r in rounds)
        print(f"{name:24} {1e6 * median(times):8.2f} us, least {1e6 * times[0]:8.2f}")


if __name__ == "__main__":
    main()
