"""What gcc is told in emitted files has the effect that it is told for."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from c_host_programs import host_programs_of
from polyloom.api.opencl import drop_in
from polyloom.c_compilers import c_compiler
from polyloom.mdh.lowering.program_tree import program_tree
from polyloom.mdh.native.build import FLAGS
from polyloom.mdh.print.gcc_pragma import (
    asks_for_ties,
    gcc_options,
    gcc_pragma,
    may_stay_as_it_is,
    squares_what_it_carries,
    sums_choices,
)

GUARDED = """
void steps(long begin, long n, float (*restrict a)[100], float (*restrict b)[100])
{
    for (long k = 0; k < n; k++) {
        for (long i = 0; i < 100; i++)
            if (k >= begin)
                b[k][i] = a[k][i];
        for (long i = 0; i < k; i++)
            a[i][k] = __builtin_sqrtf(a[i][k]);
    }
}
"""


@pytest.mark.parametrize("strict", [False, True])
def test_a_guard_on_the_steps_does_not_double_them(strict: bool, tmp_path: Path) -> None:
    """A loop over steps that is split in two at its guard has all that each step does twice."""
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "steps.c").write_text(gcc_pragma(gcc_options(strict=strict)) + GUARDED)
    words = [*compiler.command, *FLAGS, "-fno-tree-vectorize", "-S", "steps.c", "-o", "steps.s"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert (tmp_path / "steps.s").read_text().count("sqrt") == 1


ESCAPE = """void kernel(int n, int k, int x[n], int c[n]) {{
    for (int i = 0; i < n; i++) {{
        int v = x[i], steps = 0;
        for (int t = 0; t < k; t++) {{
            int w = v * v;
            if ({0} > 9) {{ v = w / 3; steps = steps + 1; }}
        }}
        c[i] = steps;
    }}
}}"""


def test_only_loops_that_may_end_early_are_split() -> None:
    """Where nothing changes once a branch on values of the loop is not taken; not at guards on iterators."""
    for asked, splits in (("w", True), ("x[t % n]", False), ("t", False)):
        (program,) = host_programs_of(ESCAPE.format(asked))
        assert may_stay_as_it_is(program_tree(program).body) is splits


CHOICES = """
#include <stdio.h>
__attribute__((noinline)) float chosen(long at, const long *restrict k, const float *restrict x)
{
    float s = 0;
    for (long i = 0; i < 36; i += 3) {
        s = s + (at == k[i] ? x[i] : 0.0f);
        s = s + (at == k[i + 1] ? x[i + 1] : 0.0f);
        s = s + (at == k[i + 2] ? x[i + 2] : 0.0f);
    }
    return s;
}
int main(void)
{
    long k[36];
    float x[36], all = 0;
    for (int i = 0; i < 36; i++) { k[i] = i; x[i] = i + 1; }
    for (int i = 0; i < 36; i++) all += chosen(i, k, x);
    return printf("%g", all) < 0;
}
"""


def test_all_terms_of_sums_of_choices_are_added(tmp_path: Path) -> None:
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "sums.c").write_text(gcc_pragma(gcc_options(strict=False, chooses=True)) + CHOICES)
    subprocess.run(
        [*compiler.command, *FLAGS, "-march=native", "sums.c", "-o", "sums"], cwd=tmp_path, check=True
    )
    assert subprocess.run([tmp_path / "sums"], capture_output=True, check=True).stdout == b"666"


SUMS = """void kernel(int n, int at[n], float x[n], float c[2]) {{
    for (int i = 0; i < n - 1; i++) {{
        c[0] = 0.5f * c[0] + {0};
        c[0] = 0.5f * c[0] + {1};
    }}
}}"""


def test_sums_of_choices_are_seen() -> None:
    chosen, plain = "(at[{0}] == 3 ? x[{0}] : 0.0f)", "x[{0}]"
    for form, chooses in ((chosen, True), (plain, False)):
        (program,) = host_programs_of(SUMS.format(form.format("i"), form.format("i + 1")))
        assert sums_choices(program_tree(program).body) is chooses


SQUARES = """
#include <stdio.h>
static int squared(int x) { return (int)((unsigned)x * (unsigned)x); }
__attribute__((noinline)) int again_and_again(long n, int x)
{
    for (long i = 0; i < n; i++) x = squared(x);
    return x;
}
int main(void) { return printf("%d", again_and_again(40, 5)) < 0; }
"""


def test_what_is_squared_again_and_again_is_no_product_of_factors(tmp_path: Path) -> None:
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "squares.c").write_text(gcc_pragma(gcc_options(strict=False, squares=True)) + SQUARES)
    subprocess.run(
        [*compiler.command, *FLAGS, "-march=native", "squares.c", "-o", "squares"], cwd=tmp_path, check=True
    )
    assert subprocess.run([tmp_path / "squares"], capture_output=True, check=True).stdout == b"1"


TIES = """
#include <math.h>
#include <stdio.h>
static double larger(double a, double b) { return a > b ? a : b; }
__attribute__((noinline)) void place(const double *restrict a, const double *restrict b,
                                     const int *restrict c, int *restrict at)
{
    double x = -INFINITY;
    int k = -2147483647 - 1;
    for (long i = 8; i < 10; i++) {
        const double y = a[i];
        const int l = (int)i;
        const double largest = larger(y, x);
        const int last = y > x || (y == x && l > k) ? l : k;
        x = largest;
        k = last;
    }
    at[0] = b[0] > x || (b[0] == x && c[0] > k) ? c[0] : k;
}
int main(void)
{
    volatile double infinity = INFINITY, none = NAN;
    double a[10] = {0, 0, 0, 0, 0, 0, 0, 0, infinity, none}, b[1] = {infinity};
    int c[1] = {0}, at;
    place(a, b, c, &at);
    return printf("%d", at) < 0;
}
"""


def test_what_is_no_number_is_no_tie(tmp_path: Path) -> None:
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    (tmp_path / "ties.c").write_text(gcc_pragma(gcc_options(strict=False, ties=True)) + TIES)
    words = [*compiler.command, *FLAGS, "-march=native", "ties.c", "-o", "ties", "-lm"]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "ties"], capture_output=True, check=True).stdout == b"8"


@pytest.mark.parametrize(
    ("condition", "ties"),
    [
        ("x[i] > c[0] || (x[i] == c[0] && i > at[0])", True),
        ("x[i] != c[0] && x[i] > c[1]", True),
        ("x[i] == 0 || x[i] > c[0]", False),
        ("at[i] == at[0] || x[i] > c[0]", False),
    ],
)
def test_ties_are_seen(condition: str, ties: bool) -> None:
    text = "void kernel(int n, int at[n], float x[n], float c[2]) {{\n"
    text += "for (int i = 0; i < n; i++) if ({0}) {1}\n}}"
    (program,) = host_programs_of(text.format(condition, "{ at[0] = i; c[0] = x[i] + c[1]; c[1] = x[i]; }"))
    assert asks_for_ties(program_tree(program).body) is ties


@pytest.mark.parametrize(
    ("body", "squares"),
    [
        ("x[0] = x[0] * x[0];", True),
        ("x[0] = x[0] * x[0] * x[0] + 1;", True),
        ("y[0] = x[0] * x[0]; x[0] = y[0] + 3;", True),
        ("y[0] = x[0]; x[0] = x[0] * y[0];", True),
        ("{ int t = x[0]; x[0] = t * t; }", True),
        ("x[0] = x[0] * 3 + a[i];", False),
        ("x[0] += a[i] * a[i];", False),
        ("a[i] = a[i] * b[i];", False),
        ("f[0] = f[0] * f[0];", False),
    ],
)
def test_squares_are_seen(body: str, squares: bool) -> None:
    arrays = "int x[1], int y[1], int a[9], int b[9], float f[1]"
    text = f"void kernel(int n, {arrays}) {{ for (int i = 0; i < n; i++) {{ {body} }} }}"
    (program,) = host_programs_of(text)
    assert squares_what_it_carries(program_tree(program).body) is squares


TILE = """
typedef double wide __attribute__((vector_size(32)));
void sums(long n, const double *restrict a, const wide *restrict b, wide *restrict c)
{{
    wide {names};
    {start}
    for (long k = 0; k < n; k += 2) {{
        {steps}
    }}
    {ends}
}}
"""


def tile(rows: int = 6, columns: int = 2) -> str:
    """A product whose results are in registers, two steps of its sum in turn."""
    cells = [(i, j) for i in range(rows) for j in range(columns)]
    steps = [
        f"t{i}{j} = t{i}{j} + a[{i} * n + k + {k}] * b[{columns} * (k + {k}) + {j}];"
        for k in range(2)
        for i, j in cells
    ]
    return TILE.format(
        names=", ".join(f"t{i}{j}" for i, j in cells),
        start=" ".join(f"t{i}{j} = (wide){{0}};" for i, j in cells),
        steps="\n        ".join(steps),
        ends=" ".join(f"c[{columns * i + j}] = t{i}{j};" for i, j in cells),
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions of x86-64 are looked at")
def test_tiles_stay_in_registers_where_sums_may_have_any_order(tmp_path: Path) -> None:
    compiler = c_compiler("gcc")
    if compiler is None:
        pytest.skip("there is no gcc")
    additions = []
    for orders in (True, False):
        pragma = '#pragma GCC optimize("O3")\n' + gcc_pragma(gcc_options(strict=False, orders=orders))
        (tmp_path / "tile.c").write_text(pragma + tile())
        words = [*compiler.command, "-O3", "-mavx2", "-mfma", "-ffast-math", "-S", "tile.c", "-o", "tile.s"]
        subprocess.run(words, cwd=tmp_path, check=True)
        additions.append((tmp_path / "tile.s").read_text().count("vaddpd"))
    assert additions[0] == 0 < additions[1]


PRODUCT = """void kernel(int n, int m, double a[n][m], double b[m][n], double c[n][n]) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            for (int k = 0; k < m; k++) c[i][j] += a[i][k] * b[k][j];
}"""
STENCIL = """void kernel(int n, double a[n][n], double b[n][n]) {
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++) b[i][j] = a[i][j] + 0.5 * (a[i][j - 1] + a[i][j + 1] + a[i + 1][j]);
}"""


@pytest.mark.slow
@pytest.mark.ci
def test_drop_ins_with_tiles_of_sums_keep_their_order(tmp_path: Path) -> None:
    for text, orders in ((PRODUCT, True), (STENCIL, False)):
        (tmp_path / "kernel.c").write_text(text)
        found = drop_in(tmp_path / "kernel.c", target="c").files["polyloom_loops.c"]
        assert ("no-associative-math" in found) is orders
