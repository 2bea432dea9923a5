"""Iterations that data asks for: found before they run, where no later question depends on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from compiled_c import compiled
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.specialise import specialise
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import plain, tree_of
from polyloom.mdh.print.c_source import c_source
from polyloom.scop.transform import host_program

HEAD = (
    "void f(int n, int m, double a[n], double b[n], float c[n], int p[n], double A[m][m], long out[2])\n"
    "{\n#pragma scop\n"
)
ALL = "for (int i = 0; i < n; i++)"
FOUND = {
    "packed": f"int k = 0; {ALL} if (b[i] > 0) {{ a[k] = b[i]; k++; }} out[0] = k;",
    "places": f"int k = 0; {ALL} if (c[i] <= 0.5) p[k++] = i; out[0] = k;",
    "unpacked, over what asks": f"int k = -1; {ALL} if (b[i] != 0) {{ k++; b[i] = a[k]; }} out[0] = k;",
    "a row behind the other": "int k = 0; for (int i = 0; i < m; i++) for (int j = 0; j < m; j++)"
    " if (A[j][i] > 0) a[k++] = A[j][i];",
    "from the second one on": (
        "int k = 1; for (int i = 3; i < n - 2; i++) if (b[i] > b[i + 2]) a[k++] = c[i];"
    ),
    "two counters": (
        f"int k = 0; long l = 0; {ALL} if (b[i] > 0 && c[i] < 1) {{ a[k] = l; k++; l += 2; }} out[0] = l;"
    ),
    "counted where it lies": f"{ALL} if (b[i] > 0) {{ out[0]++; a[out[0] % 7] += b[i]; out[1] += out[0]; }}",
}
AS_BEFORE = {
    "asked by what was stored": f"int k = 0; {ALL} if (a[i] > 0) {{ a[k] = b[i] - 1; k++; }} out[0] = k;",
    "asked by the largest so far": (
        f"double x = 0; int k = 0; {ALL} if (b[i] > x) {{ x = b[i]; a[k] = x; k++; }} out[0] = k;"
    ),
    "asked by what was counted": f"int k = 0; {ALL} if (b[i] > k % 3) {{ a[k] = b[i]; k++; }} out[0] = k;",
    "few": "int k = 0; for (int i = 0; i < 40; i++) if (b[i] > 0) { a[k] = b[i]; k++; } out[0] = k;",
    "no element by a count": f"{ALL} if (b[i] > 0) a[i] = b[i] * a[i];",
}
SIZES = (128, 191, 2500)


def text(body: str) -> str:
    return f"{HEAD}{body}\n#pragma endscop\n}}\n"


def printed(body: str, n: int) -> str:
    """Return the emitted C for a size."""
    program = host_program(next(iter(read_c(Source("f.c", text(body)))))).program
    sizes = {"n": n, "m": int(n**0.5)}
    return c_source(tree_of(specialise(program, sizes), plain, choose("native", threads=1)))


@pytest.mark.parametrize("form", FOUND | AS_BEFORE)
def test_which_loops_are_done_so(form: str) -> None:
    body = (FOUND | AS_BEFORE)[form]
    is_found = "bits_of(asked)" in printed(body, 40000)
    assert is_found is (form in FOUND)


@pytest.mark.parametrize("form", FOUND | AS_BEFORE)
def test_beside_c(tmp_path: Path, form: str) -> None:
    """All, none, and some of the iterations are asked for; sizes are no multiples of 64 either."""
    whole = text((FOUND | AS_BEFORE)[form])
    made, in_c = polyloom.load(whole, device="native", threads=2), compiled(whole, "f", tmp_path)
    rng = np.random.default_rng(5)
    for n in SIZES:
        m = int(n**0.5)
        for share in (0.0, 0.02, 0.5, 0.98, 1.0):
            signs = np.where(rng.random(n) < share, 1.0, -1.0)
            arrays = {
                "a": rng.standard_normal(n),
                "b": signs * rng.integers(1, 9, n),
                "c": signs.astype(np.float32),
                "p": np.zeros(n, np.int32),
                "A": np.where(rng.random((m, m)) < share, 1.0, -1.0) * rng.integers(1, 9, (m, m)),
                "out": np.zeros(2, np.int64),
            }
            expected = in_c({"n": n, "m": m, **arrays})
            made(n=n, m=m, **arrays)
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, expected[name], f"{n} {share} {name}")
