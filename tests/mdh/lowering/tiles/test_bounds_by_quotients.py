"""Loops begin and end at parts of a size: no iteration asks for it, and each point is visited once."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

import polyloom
from polyloom.ir.integers import integer
from polyloom.mdh.tree.nodes import counted
from polyloom.mdh.tree.ranges import bound_of, limited
from polyloom.polyhedra.loops.tree import Name, Number, Operation, sum_of

FORMS = {
    "from a half on": "for (int i = 0; i < n; i++) if (2 * i + 3 >= n) a[i] += b[i] * 2;",
    "two halves": "for (int i = 0; i < n; i++) if (2 * i + 3 < n) a[i] += b[i]; else a[i] -= b[i];",
    "a third": "for (int i = 0; i < n; i++) if (3 * i > n && 3 * i < 2 * n) a[i] = b[i];",
    "one point": "for (int i = 0; i < n; i++) if (2 * i == n) a[i] = b[i];",
    "rows": "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (2 * j >= m) A[i][j] += b[i];",
    "sums": "for (int i = 0; i < n; i++) for (int j = 0; j < m; j++) if (2 * j + 1 > m) a[i] += A[i][j];",
    "of two iterators": """for (int i = 0; i < n; i++) for (int j = 0; j < m; j++)
        if (2 * j >= i) A[i][j] += b[i];""",
}


def called(library: Path, *functions: str) -> list[list[np.ndarray]]:
    made = ctypes.CDLL(str(library))
    found = []
    for n in range(1, 30):
        m = 31 - n
        rng = np.random.default_rng(n)
        arrays = [rng.integers(-9, 9, shape).astype(np.float32) for shape in (n, n, (n, m))]
        made.f(n, m, *(x.ctypes.data_as(ctypes.c_void_p) for x in arrays))
        found.append(arrays)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_results_of_open_and_of_known_sizes(form: str, tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"void f(int n, int m, float a[n], float b[n], float A[n][m]) {{ {FORMS[form]} }}\n")
    polyloom.drop_in(path, target="c").write(tmp_path / "out")
    both = tmp_path / "wanted.so", tmp_path / "made.so"
    files = [path], [tmp_path / "out" / name for name in ("f.c", "polyloom_loops.c")]
    for library, sources in zip(both, files, strict=True):
        command = ["gcc", "-O1", "-Wno-psabi", "-fPIC", "-shared", *map(str, sources), "-o", str(library)]
        subprocess.run(command, check=True)
    for wanted, made in zip(*map(called, both), strict=True):
        assert all(map(np.array_equal, wanted, made))
    known = polyloom.compile(path, device="native", check=True)
    for n, m in ((7, 8), (40, 33)):
        known(n=n, m=m, a=np.ones(n, np.float32), b=np.ones(n, np.float32), A=np.ones((n, m), np.float32))


def test_no_iteration_asks(tmp_path: Path) -> None:
    path = tmp_path / "f.c"
    path.write_text(f"void f(int n, float *a, float *b) {{ {FORMS['two halves']} }}\n")
    polyloom.drop_in(path, target="c").write(tmp_path / "out")
    text = (tmp_path / "out" / "polyloom_loops.c").read_text()
    loops = text[text.index("static void f_loops") : text.index("static void f_loops(struct")]
    assert loops.count("for (") == 2 and "if (" not in loops


@pytest.mark.parametrize("factor", [-5, -2, -1, 1, 2, 3])
@pytest.mark.parametrize("rest", range(-7, 8))
def test_a_part_of_a_loop(factor: int, rest: int) -> None:
    wanted = [i for i in range(-9, 9) if factor * i + rest >= 0]
    for term in (Number(rest), Name("n")):
        expression = sum_of([(factor, Name("i")), (1, term)])
        assert bound_of(Operation(">=", (expression, Number(0))), ["j", "i"]) == ("i", (expression,))
        loop = limited(counted("i", Number(9), (), start=Number(-9)), expression)
        values = {"n": rest}
        assert list(range(integer(loop.start, values), integer(loop.end, values))) == wanted


def test_quotients_of_other_iterators_are_no_bounds() -> None:
    twice = sum_of([(2, Name("i")), (-1, Name("j"))])
    assert bound_of(Operation(">=", (twice, Number(0))), ["j", "i"]) is None
    assert bound_of(Operation(">=", (twice, Number(0))), ["i", "j"]) == ("j", (twice,))
