"""Maps in place without a copy of what they overwrite: where an order allows it, and only there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.mdh.tree.text import function_text
from samples import one_in

HEAD = "void kernel(int n, int k, double A[n][n], double b[n][n], double a[n], float f[n])"
LOOP = "for (int i = 1; i < n - 1; i++)"
BOTH = f"{LOOP} for (int j = 1; j < n - 1; j++)"

ORDERED = {
    "ahead": f"{LOOP} a[i] = a[i + 1] * b[0][i];",
    "far ahead": "for (int i = 0; i < n - k; i++) a[i] = a[i + k] * 0.5 + b[1][i];",
    "behind, downwards": "for (int i = n - 1; i > 0; i--) a[i] = a[i - 1] + b[0][i];",
    "own element too": f"{LOOP} a[i] = a[i] * 2 - a[i + 1];",
    "the next row": f"{BOTH} A[i][j] = A[i + 1][j - 1] - b[i][j];",
    "two later ones": f"{BOTH} A[i][j] = A[i][j + 1] + A[i + 1][j] * A[i + 1][j + 1];",
    "the row before": """for (int i = n - 1; i > 0; i--)
        for (int j = 0; j < n - 1; j++) A[i][j] = A[i - 1][j + 1];""",
    "unrolled by hand": """for (int i = 0; i < n - 3; i += 3) { a[i] = a[i + 1] * a[i];
        a[i + 1] = a[i + 2] * a[i + 1]; a[i + 2] = a[i + 3] * a[i + 2]; }""",
    "unrolled by hand, of two arrays": """for (int i = 0; i < n - 2; i += 2) {
        a[i] = a[i + 1] - b[0][i] * a[i]; a[i + 1] = a[i + 2] - b[0][i + 1] * a[i + 1]; }""",
    "another type": f"{LOOP} f[i] = f[i + 1] + (float)a[i];",
}
COPIED = {
    "a column downwards": """for (int i = 0; i < n - 1; i++)
        for (int j = n - 1; j > 0; j--) A[i][j] = A[i][j - 1] + A[i + 1][j];""",
    "backwards": "for (int i = 0; i < n / 2; i++) a[i] = a[n - 1 - i];",
    "unrolled by hand, not alike": """for (int i = 0; i < n - 3; i += 3) { a[i] = a[i + 1] * a[i];
        a[i + 1] = a[i + 2] + a[i + 1]; a[i + 2] = a[i + 3] * a[i + 2]; }""",
    "functions": f"{LOOP} a[i] = exp(a[i + 1]);",
}


def compiled(tmp_path: Path, body: str, threads: int, **options: Any) -> Any:
    path = tmp_path / "order.c"
    path.write_text(f"#include <math.h>\n{HEAD} {{\n{body}\n}}\n")
    return polyloom.compile(path, device="native", threads=threads, check=True, **options)


def run(made: Any, n: int) -> None:
    """Call it, which compares with the C program."""
    rng = np.random.default_rng(n)
    squares = {name: rng.standard_normal((n, n)) for name in "Ab"}
    made(n=n, k=min(3, n), **squares, a=rng.standard_normal(n), f=rng.standard_normal(n).astype(np.float32))


def copies(made: Any, n: int, k: int = 3) -> bool:
    """Return whether a copy of an array, which is a parameter in any case, is used."""
    text = function_text(made.tree({"n": n, "k": k}))
    return text.count("_before[") > 1 or text.count("_old[") > 1


@pytest.mark.slow
@pytest.mark.ci
def test_a_map_that_overwrites_nothing_that_it_reads(tmp_path: Path) -> None:
    """The first elements of a recurrence: they need neither copy nor order."""
    for threads in (1, 3):
        made = compiled(tmp_path, "for (int i = k; i < n; i++) a[i] = a[i - k] * 0.5 + b[0][i];", threads)
        assert not copies(made, 37)
        assert not copies(made, 400_000, 200_000)
        for n in (3, 5, 10, 37):
            run(made, n)


@pytest.mark.parametrize("form", one_in(2, ORDERED))
def test_in_order(tmp_path: Path, form: str) -> None:
    for threads in (1, 3):
        made = compiled(tmp_path, ORDERED[form], threads)
        assert not copies(made, 37)
        for n in (2, 5, 37):
            run(made, n)


@pytest.mark.parametrize("form", COPIED)
def test_others_stay(tmp_path: Path, form: str) -> None:
    made = compiled(tmp_path, COPIED[form], 1)
    assert copies(made, 37) or form == "backwards"
    for n in (3, 8, 37):
        run(made, n)


def test_so_many_threads_copy_what_is_large_that_they_gain_by_it(tmp_path: Path) -> None:
    """A copy is stored and loaded once more: two threads take as long with it as one without."""
    assert copies(compiled(tmp_path, ORDERED["ahead"], 4), 100_000)
    for threads in (1, 2):
        made = compiled(tmp_path, ORDERED["ahead"], threads)
        assert not copies(made, 100_000)
    run(made, 300)


def test_the_program_asks_where_a_step_tells_how_large_a_map_is(tmp_path: Path) -> None:
    path = tmp_path / "steps.c"
    path.write_text("""void steps(int n, double a[n]) {
  for (int t = 1; t < 4; t++)
    for (int i = 0; i < n - 9000 * t; i++) a[i] = a[i + 1] * 0.5;
}
""")
    n = 40_000
    for threads, asks in ((1, False), (3, True)):
        made = polyloom.compile(path, device="native", threads=threads, check=True)
        text = function_text(made.tree({"n": n}))
        assert ("< 16384" in text) == asks == (text.count("_before[") > 1)
        made(n=n, a=np.random.default_rng(1).standard_normal(n))


def test_strict_programs_keep_their_vectors(tmp_path: Path) -> None:
    assert copies(compiled(tmp_path, ORDERED["ahead"], 1, fp="strict"), 40_000)


OPEN = {
    "ahead": ("for (int i = 0; i < n; i++) a[i] = a[i + k] + b[i];", True),
    "ahead, where it is asked": ("if (k > 0) for (int i = 0; i < n; i++) a[i] = a[i + k] + b[i];", True),
    "two ahead": ("for (int i = 0; i < n; i++) a[i] = a[i + k] * a[i + 2 * k + 1];", True),
    "one may be behind": ("for (int i = 1; i < n; i++) a[i] = a[i + k] + a[i - 1 + k];", False),
}


@pytest.mark.parametrize("form", OPEN)
def test_distances_of_which_the_sign_is_known(form: str, tmp_path: Path) -> None:
    """In drop-ins the step is open; all results are those of the C program."""
    body, is_ordered = OPEN[form]
    path = tmp_path / "f.c"
    path.write_text(f"""#include <stdio.h>
void f(int n, int k, float *a, float *b) {{
#pragma scop
{body}
#pragma endscop
}}
int main(void) {{
  for (int k = 0; k < 5; k++) for (int n = 1; n < 60; n += 13) {{
    float a[80], b[80];
    for (int i = 0; i < 80; i++) a[i] = i % 7 - 3, b[i] = i % 5;
    f(n, k, a, b);
    for (int i = 0; i < 80; i++) printf("%g\\n", a[i]);
  }}
  return 0;
}}
""")
    polyloom.drop_in(path, target="c").write(tmp_path / "out")
    text = (tmp_path / "out" / "polyloom_loops.c").read_text()
    assert ("a_before" not in text) == is_ordered

    def printed(*files: Path) -> str:
        command = ["gcc", "-O2", "-Wno-psabi", *map(str, files), "-o", str(tmp_path / "run"), "-lm"]
        subprocess.run(command, check=True)
        return subprocess.run(tmp_path / "run", check=True, capture_output=True, text=True).stdout

    assert printed(tmp_path / "out" / "f.c", tmp_path / "out" / "polyloom_loops.c") == printed(path)
