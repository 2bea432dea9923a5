"""Blocks in the user's file: what they ask of sizes in C's variables, and variables without an address."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from polyloom import drop_in
from polyloom.mdh.dropin.variables import Integers
from polyloom.polyhedra.loops.tree import Name, Number, Operation

REGISTERS = """
#include <stdio.h>
static double total(register int n, const double *a, int *last)
{
  register double s = 1;
  register int k;
  register int c = 3;
  int other = n;
  s += a[0];
#pragma scop
  for (k = 0; k < n; k++) { s += a[k]; c ^= k; other = a[k] > 2; }
#pragma endscop
  *last = c + other;
  return s + c;
}
int main(void)
{
  double a[100];
  int last = 0;
  for (int k = 0; k < 100; k++) a[k] = k % 7;
  printf("%g ", total(100, a, &last));
  printf("%d\\n", last);
  return 0;
}
"""

SIZES = """
#include <stdio.h>
struct s { int x; double y; };
void f(unsigned n, unsigned m, struct s *p, const double *q, int *k)
{
  for (unsigned i = 5; i < n && i < m; i++) { p[i - 5].x = i + k[0]; p[i - 5].y = q[i / 2]; }
}
void g(const int *n, int *b)
{
  for (int i = 0; i < *n / 2; i += 2) b[i % 8] += *n;
}
int main(void)
{
  struct s p[100] = {{0}};
  double q[100];
  int k[100] = {7}, n = 11;
  for (int i = 0; i < 100; i++) q[i] = i % 7;
  f(90, 80, p, q, k);
  f(3, 80, p, q, k);
  g(&n, k);
  g(k + 2, k);
  for (int i = 0; i < 100; i++) printf("%d %g %d\\n", p[i].x, p[i].y, k[i]);
  return 0;
}
"""


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("program", [REGISTERS, SIZES])
def test_what_the_program_prints(program: str, tmp_path: Path) -> None:
    """Addresses of registers were taken, and functions called that only the other file has."""
    (tmp_path / "program.c").write_text(program)
    drop_in(tmp_path / "program.c", target="c").write(tmp_path / "out")
    build = ["gcc", "-O1", "-fopenmp", "-Wno-psabi", "-Werror=implicit-function-declaration"]
    printed = []
    for folder, files in ((tmp_path, ["program.c"]), (tmp_path / "out", ["program.c", "polyloom_loops.c"])):
        subprocess.run([*build, *files, "-o", "program", "-lm"], cwd=folder, check=True)
        printed.append(subprocess.run("./program", cwd=folder, check=True, capture_output=True).stdout)
    assert printed[0] == printed[1]


@pytest.mark.slow
@pytest.mark.ci
def test_variables_without_an_address_are_copied() -> None:
    files = drop_in(REGISTERS, target="c").files
    (text,) = (text for name, text in files.items() if name.endswith(".c") and name != "polyloom_loops.c")
    assert "  double polyloom_s = s;" in text
    assert "&other" in text and "&s" not in text
    assert "} else { s = polyloom_s; c = polyloom_c; }" in text


def test_sizes_in_blocks_are_wide() -> None:
    """``n`` may be unsigned, so that ``n - 5 <= -1`` never held, or so large that ``4 * n`` was negative."""
    integers = Integers({"n": "s.n"})
    size = Operation("min", (Operation("-", (Name("n"), Number(5))), Operation("*", (Number(4), Name("n")))))
    assert integers.text(size) == "polyloom_lesser((long long)s.n - 5, 4 * (long long)s.n)"
    assert integers.called == ("polyloom_lesser",)
