"""Counters have 64 bits where the loops around them show that 32 hold all that they may be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.diagnostics import Source
from polyloom.frontends.c import read_c
from polyloom.ir.transform.specialise import specialise
from polyloom.ir.types import ElementType
from polyloom.mdh.lowering.nests.scalars_in_registers import scalars_in_registers
from polyloom.mdh.lowering.nests.wide_counters import wide_counters
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.execution import plain, tree_of
from polyloom.mdh.tree.evaluate import evaluate
from polyloom.mdh.tree.nodes import Array, Function
from polyloom.mdh.tree.rewrite import walk
from polyloom.scop.transform import host_program

HEAD = "void kernel(int n, double a[n * n], double A[n][n], double b[n], int out[2])"
ALL = "for (int i = 0; i < n; i++)"
WIDE = {
    "a triangle": f"int k = 0; {ALL} for (int j = 0; j <= i; j++) a[k++] = A[i][j];",
    "where it is asked": f"int k = -1; {ALL} if (b[i] > 1) {{ k++; b[i] = a[k]; }} out[0] = k;",
    "down from a number": (
        f"int k = 40; {ALL} if (b[i] > 1) {{ if (k < 38) out[1]++;"
        f" a[k + 2] = b[i] - k; k -= 1; }} out[0] = k;"
    ),
    "beside an iterator": f"int k = 3; {ALL} {{ a[k + i - 2] += b[i]; if (b[i] > 1) k += 2; }}",
    "by what a test gives": f"int k = 0; {ALL} {{ a[k] = b[i]; k += b[i] > 1; }} out[0] = k;",
    "to a number again": (
        f"int k = 0; {ALL} {{ if (b[i] > 1.5) k = 7; if (b[i] > 1) a[k] += b[i]; k = k + 1; }}"
    ),
}
NARROW = {
    "too far": (
        f"int k = 0; {ALL} {{ if (b[i] > 1) {{ a[(k + 16) & 7] += b[i]; k += 2000000000; }} }} out[0] = k;"
    ),
    "by what an array holds": f"int k = 0; {ALL} {{ a[k] = b[i]; if (b[i] > 1) k += out[1]; }} out[0] = k;",
    "otherwise": (
        f"int k = 2; {ALL} {{ a[k] = b[i]; if (b[i] > 1) k = 3 * k - i; if (k < 0 || k >= n) k = 1; }}"
    ),
    "no subscript": f"int k = 0; {ALL} {{ if (b[i] > 1) k++; b[i] += k; }} out[0] = k;",
}
FORMS = WIDE | NARROW


def scalars_of(body: str, sizes: dict[str, int]) -> Function:
    """Return a program for one thread, with its scalars in registers."""
    program = host_program(next(iter(read_c(Source("kernel.c", f"{HEAD} {{\n{body}\n}}\n"))))).program
    return scalars_in_registers(tree_of(specialise(program, sizes), plain, choose("native", threads=1)))


def given(n: int) -> dict[str, np.ndarray]:
    """Return arrays for a size."""
    rng = np.random.default_rng(n)
    made = {"a": rng.random(n * n), "A": rng.random((n, n)), "b": 2 * rng.random(n)}
    return made | {"out": np.zeros(2, np.int32)}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_values(form: str) -> None:
    for n in (7, 12):
        before = scalars_of(FORMS[form], {"n": n})
        after = wide_counters(before)
        types = {s.type for s in walk(after.body) if isinstance(s, Array) and s.name == "k_here"}
        assert types == {ElementType.INT64 if form in WIDE else ElementType.INT32}
        wanted = evaluate(before, given(n), {"n": n})
        for name, found in evaluate(after, given(n), {"n": n}).items():
            np.testing.assert_array_equal(found, wanted[name], err_msg=f"{name}, n = {n}")


@pytest.mark.parametrize("form", FORMS)
def test_beside_c(tmp_path: Path, form: str) -> None:
    path = tmp_path / "kernel.c"
    path.write_text(f"{HEAD} {{\n{FORMS[form]}\n}}\n")
    made = polyloom.compile(path, device="native", threads=1, check=True)
    for n in (7, 30):
        made(n=n, **given(n))
