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
from polyloom.function import Function
from polyloom.mdh.native.execution import NativeExecutable, address

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


def matmul(c: Any, a: Any, b: Any) -> None:
    """The same for ``polyloom.jit``."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[i, j] = 0
            for k in range(a.shape[1]):
                c[i, j] += a[i, k] * b[k, j]


def bare(function: Function, *arguments: Any) -> Callable[[], Any]:
    """Return a call of the C function through ctypes, which looks at no argument."""
    function(*arguments)
    executable = function.compiled.executable
    assert isinstance(executable, NativeExecutable)
    (sizes,) = executable.known_sizes()
    arrays = [address(a) for a in arguments if isinstance(a, np.ndarray)]
    return executable.prepared(sizes).entry.call(arrays)


def calls(threads: int | None) -> dict[str, Callable[[], Any]]:
    """Return what is compared, by name."""
    rng = np.random.default_rng(1)
    one = np.zeros(1, np.float32)
    device = {"device": "native", "threads": threads}
    found: dict[str, Callable[[], Any]] = {}
    for name, made in (("compile", polyloom.compile), ("load", polyloom.load)):
        found[f"an empty program, {name}"] = partial(made(NOTHING, **device), one)
        found[f"an empty program, {name}"]()
    for n, m, k in ((10, 500, 64), (16, 16, 16), (128, 128, 128)):
        a, b = rng.random((n, k), np.float32), rng.random((k, m), np.float32)
        c, d = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
        product = polyloom.load(PRODUCT, **device)
        size = f"{n} x {m} x {k}"
        found[f"{size}, load"] = partial(product, n, m, k, c, a, b)
        found[f"{size}, C alone"] = bare(product, n, m, k, c, a, b)
        found[f"{size}, jit"] = partial(polyloom.jit(matmul, **device), c, a, b)
        found[f"{size}, NumPy"] = partial(np.matmul, a, b, out=d)
        found[f"{size}, load"]()
        found[f"{size}, jit"]()
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
        print(f"{name:26} {1e6 * median(times):8.2f} us, least {1e6 * times[0]:8.2f}")


if __name__ == "__main__":
    main()
