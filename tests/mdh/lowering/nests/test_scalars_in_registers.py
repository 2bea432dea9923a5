"""Scalars of sequential loops stay in registers where no other thread may want them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.mdh.lowering.nests.scalars_in_registers import scalars_in_registers
from polyloom.mdh.tree.nodes import Array, Function, Space
from polyloom.mdh.tree.rewrite import arrays_used, walk

HEAD = "void kernel(int n, double a[n], double b[n], double c[n], int out[1])"
PACK = "int k = 0; for (int i = 0; i < n; i++) if (b[i] > 0.5) a[k++] = b[i];"
TWO = "double x = b[0]; int k = 0; for (int i = 0; i < n; i++) { if (b[i] > x) { x = b[i]; a[k++] = c[i]; } }"
OWN = {
    "a counter": (f"{PACK} out[0] = k;", {"k"}),
    "in loops in a loop": (
        "int k = 0; for (int t = 0; t < 3; t++) for (int i = 0; i < n; i++)"
        " if (b[i] > 0.4 + 0.2 * t && k < n) { a[k] = b[i]; k++; } out[0] = k;",
        {"k"},
    ),
    "two": (f"{TWO} out[0] = k; c[0] = x;", {"k", "x"}),
    "scalars and a vector of each point": (
        "for (int i = 0; i < n; i++) { double d[3], s = 0; if (b[i] > 0.8) continue;"
        " for (int m = 0; m < 3; m++) { d[m] = b[i] - m; s += d[m] * d[m]; } if (s > 4) continue;"
        " for (int m = 0; m < 3; m++) a[(i * 7 + m) % n] += d[m] * s; }",
        {"d", "s"},
    ),
    "many elements": (
        "double d[40]; for (int i = 0; i < n; i++) { for (int m = 0; m < 40; m++) d[m] = b[i] * m;"
        " for (int m = 0; m < 40; m++) a[(i + m) % n] += d[39 - m]; }",
        set(),
    ),
    "what all threads read": (f"{PACK} for (int i = 0; i < n; i++) c[i] = b[i] * k + a[i];", set()),
}


def in_registers(function: Function) -> set[str]:
    """Return the scratch arrays that a program has as variables of its loops only."""
    made = scalars_in_registers(function)
    assert made.parameters == function.parameters
    scratch = {p.name for p in made.parameters if p.scratch}
    spaces = {Space.REGISTER, Space.PRIVATE}
    own = {s.name for s in walk(made.body) if isinstance(s, Array) and s.space in spaces}
    return {name for name in scratch - arrays_used(made.body) if f"{name}_here" in own}


@pytest.mark.parametrize("form", OWN)
def test_scalars_that_one_thread_uses(tmp_path: Path, form: str) -> None:
    body, wanted = OWN[form]
    path = tmp_path / "kernel.c"
    path.write_text(f"{HEAD} {{\n{body}\n}}\n")
    made = polyloom.compile(path, device="native", threads=2, check=True)
    assert in_registers(made.tree({"n": 40_000})) == wanted
    for n in (5, 40_000):
        rng = np.random.default_rng(n)
        a, b, c = (rng.random(n) for _ in range(3))
        made(n=n, a=a, b=b, c=c, out=np.zeros(1, np.int32))


def test_a_name_that_is_taken(tmp_path: Path) -> None:
    """The register is called otherwise than the user's array."""
    path = tmp_path / "kernel.c"
    path.write_text(
        "void kernel(int n, double k_here[n], double b[n], int out[1]) {\n"
        "int k = 0; for (int i = 0; i < n; i++) if (b[i] > 0.5) k_here[k++] = b[i]; out[0] = k;\n}\n"
    )
    made = polyloom.compile(path, device="native", threads=1, check=True)
    rng = np.random.default_rng(1)
    made(n=99, k_here=rng.random(99), b=rng.random(99), out=np.zeros(1, np.int32))


def test_what_was_stored_when_constants_were_bound_stays_in_memory(tmp_path: Path) -> None:
    """A number of the sizes alone is computed once, by another function."""
    path = tmp_path / "kernel.c"
    path.write_text(
        "void kernel(int n, int m, double x[n][m], double mean[m]) {\n"
        "double count = n;\n"
        "for (int c = 0; c < m; c++) {\n"
        "  mean[c] = 0; for (int r = 0; r < n; r++) mean[c] += x[r][c]; mean[c] /= count;\n}\n}\n"
    )
    made = polyloom.compile(path, device="native", threads=1, check=True)
    mean = np.zeros(3)
    made(n=4, m=3, x=np.arange(12.0).reshape(4, 3), mean=mean)
    np.testing.assert_array_equal(mean, [4.5, 5.5, 6.5])
