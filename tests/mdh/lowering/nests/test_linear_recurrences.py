"""Linear recurrences in vectors, and programs in rows where wavefronts suit few threads less."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyloom
from polyloom.mdh.native.device import choose
from polyloom.mdh.native.rows import suited
from polyloom.mdh.tree.text import function_text
from polyloom.sources import Reading, load_host_programs
from samples import one_in

NEIGHBOURS = "A[i-1][j] + A[i+1][j] + A[i][j-1] + A[i][j+1]"
GAUSS_SEIDEL = f"for (int t = 0; t < 3; t++) {{loops}} A[i][j] = ({NEIGHBOURS}) / 4;"
ROWS = "for (int i = 1; i < n - 1; i++) for (int j = 2; j < n - 1; j++)"

FORMS: dict[str, str] = {
    "a mean of neighbours, in place": GAUSS_SEIDEL.replace("{loops}", ROWS),
    "relaxed": f"{ROWS} A[i][j] = (1 - w) * A[i][j] + w * (b[i][j] - ({NEIGHBOURS}));",
    "two steps back": f"{ROWS} A[i][j] = b[i][j] - w * A[i][j-1] + v * A[i][j-2] / 3;",
    "a step twice": f"{ROWS} A[i][j] = A[i][j-1] - (b[i][j] - A[i][j-1] * w);",
    "to a last one": f"{ROWS.replace('j < n - 1', 'j <= n - 2')} A[i][j] = b[i][j] - w * A[i][j-1];",
    "only the second": f"{ROWS} A[i][j] = -(A[i][j-2] + b[i][j+1]);",
}


def program(tmp_path: Path, body: str, **options: Any) -> Any:
    head = "void kernel(int n, REAL w, REAL v, REAL A[n][n], REAL b[n][n])"
    text = f"{head} {{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    path = tmp_path / "recurrence.c"
    path.write_text(text)
    return polyloom.compile(path, device="native", threads=1, **options)


def sequential(body: str, arrays: dict[str, Any]) -> Any:
    """Run the loops in Python, one point after the other."""
    n, w, v, b = (arrays[name] for name in "nwvb")
    A = arrays["A"].copy()
    value = body.rpartition("A[i][j] = ")[2].rstrip(";")
    code = compile(value.replace("][", ", "), "body", "eval")
    for _ in range(3 if "int t" in body else 1):
        for i in range(1, n - 1):
            for j in range(2, n - 1):
                A[i, j] = eval(code, {"A": A, "b": b, "w": w, "v": v, "i": i, "j": j})
    return A


def values(n: int, real: Any = np.float64) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    arrays = {name: rng.standard_normal((n, n)).astype(real) for name in "Ab"}
    return {"n": n, "w": 0.375, "v": 0.5, **arrays}


def is_in_vectors(made: Any, n: int) -> bool:
    return "impulse" in function_text(made.tree({"n": n}))


@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("form", one_in(3, FORMS))
def test_points_of_a_recurrence_are_those_of_the_loop(tmp_path: Path, form: str, real: str) -> None:
    kind = np.float64 if real == "double" else np.float32
    made = program(tmp_path, FORMS[form], defines={"REAL": real})
    assert is_in_vectors(made, 61)
    for n in (61, 12):
        given = values(n, kind)
        expected = sequential(FORMS[form], values(n))
        made(**given)
        assert np.allclose(given["A"], expected, rtol=1e-4 if real == "float" else 1e-12, atol=1e-4)


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308])
def test_what_is_no_number_spreads_forwards_alone(tmp_path: Path, value: float) -> None:
    body = f"{ROWS} A[i][j] = b[i][j] + w * A[i][j-1];"
    made, given = program(tmp_path, body, defines={"REAL": "double"}), values(40)
    given["b"][5, 13] = value
    given["b"][5, 14] = value
    expected = sequential(body, given)
    made(**given)
    assert np.array_equal(np.isnan(given["A"]), np.isnan(expected))
    assert np.allclose(given["A"], expected, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(
    "body",
    [
        f"{ROWS} A[i][j] = b[i][j] * A[i][j-1] + 1;",  # a coefficient of each point's own
        f"{ROWS} A[i][j] = A[i][j-1] * A[i][j-2];",
        f"{ROWS} A[i][j] = A[i][j-1] + A[i][2];",
        f"{ROWS} A[i][j] = b[i][j] / A[i][j-1];",
    ],
)
def test_other_recurrences_stay(tmp_path: Path, body: str) -> None:
    made, given = program(tmp_path, body, defines={"REAL": "double"}), values(40)
    assert not is_in_vectors(made, 40)
    expected = sequential(body, given)
    made(**given)
    assert np.allclose(given["A"], expected, rtol=1e-9)


def test_strict_programs_keep_their_order(tmp_path: Path) -> None:
    made = program(tmp_path, FORMS["two steps back"], defines={"REAL": "double"}, fp="strict")
    assert not is_in_vectors(made, 61)


def test_few_threads_walk_along_rows_and_many_along_wavefronts(tmp_path: Path) -> None:
    program(tmp_path, FORMS["a mean of neighbours, in place"], defines={"REAL": "double"})
    reading = Reading(defines={"REAL": "double"})
    (loaded,) = load_host_programs(tmp_path / "recurrence.c", reading)
    assert suited(loaded.program, choose("native", threads=2)) is loaded.program.in_rows is not None
    assert suited(loaded.program, choose("native", threads=64)) is loaded.program


TABLE = """void table(int n, int m, int s[n + 1][m + 1], const char a[n], const char b[m]) {
#pragma scop
  for (int i = 0; i <= n; i++) s[i][0] = -i;
  for (int i = 1; i <= n; i++)
    for (int j = 1; j <= m; j++) {
      int best = s[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 2 : -1);
      best = s[i - 1][j] - 3 > best ? s[i - 1][j] - 3 : best;
      s[i][j] = s[i][j - 1] - 3 > best ? s[i][j - 1] - 3 : best;
    }
#pragma endscop
}
"""
ALONG_ROWS = """void grid(int n, double A[n][n][n]) {
#pragma scop
  for (int i = 1; i < n; i++)
    for (int j = 1; j < n; j++)
      for (int k = 0; k < n; k++)
        A[i][j][k] = A[i][j][k] > A[i - 1][j][k] ? A[i][j][k] : A[i][j - 1][k];
#pragma endscop
}
"""


def test_few_threads_take_rows_in_order_where_wavefronts_jump_from_row_to_row(tmp_path: Path) -> None:
    """A maximum is no linear recurrence, but a diagonal in memory is worse than a row in order."""
    (tmp_path / "table.c").write_text(TABLE)
    (loaded,) = load_host_programs(tmp_path / "table.c", Reading())
    assert suited(loaded.program, choose("native", threads=2)) is loaded.program.in_rows is not None
    assert suited(loaded.program, choose("native", threads=64)) is loaded.program


def test_wavefronts_along_rows_stay(tmp_path: Path) -> None:
    """Planes of a grid in which rows are parallel: the wavefront is over planes and columns."""
    (tmp_path / "grid.c").write_text(ALONG_ROWS)
    (loaded,) = load_host_programs(tmp_path / "grid.c", Reading())
    assert loaded.program.in_rows is not None
    assert suited(loaded.program, choose("native", threads=2)) is loaded.program


def test_loops_that_both_forms_have_do_not_decide(tmp_path: Path) -> None:
    """The squares are no linear recurrence, and stay loops with and without a wavefront."""
    squares = "for (int i = 1; i < n; i++) b[0][i] += b[0][i - 1] * b[0][i - 1];"
    program(tmp_path, f"{squares} {FORMS['a mean of neighbours, in place']}", defines={"REAL": "double"})
    (loaded,) = load_host_programs(tmp_path / "recurrence.c", Reading(defines={"REAL": "double"}))
    assert suited(loaded.program, choose("native", threads=2)) is loaded.program.in_rows is not None


HEAD = "void kernel(int n, double w, double v, double A[n][n], double b[n][n], float f[n])"
SCANS: dict[str, str] = {
    "sums": "double s = w; for (int i = 0; i < n; i++) { s += b[0][i]; A[1][i] = s; }",
    "in place": "for (int i = 1; i < n; i++) A[1][i] += A[1][i - 1];",
    "of what a point overwrites": """double s = 0;
        for (int i = 0; i < n; i++) { s += A[1][i]; A[1][i] = s * b[2][i]; }""",
    "a number of the caller": "double s = v; for (int i = 0; i < n; i++) { s += w; A[1][i] = s * b[2][i]; }",
    "rows": "for (int i = 0; i < n; i++) for (int j = 1; j < n; j++) A[i][j] += A[i][j - 1];",
    "stored as another type": "double s = 0; for (int i = 0; i < n; i++) { s += b[0][i]; f[i] = s; }",
}


def scan(tmp_path: Path, body: str, threads: int = 1, **options: Any) -> Any:
    path = tmp_path / "scan.c"
    path.write_text(f"{HEAD} {{\n{body}\n}}\n")
    return polyloom.compile(path, device="native", threads=threads, check=True, **options)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.parametrize("form", one_in(2, SCANS))
def test_loops_that_carry_a_sum(tmp_path: Path, form: str) -> None:
    """Each call is compared with the C program."""
    for threads in (1, 3):
        made = scan(tmp_path, SCANS[form], threads)
        assert is_in_vectors(made, 61)
        for n in (3, 12, 61):
            made(**values(n), f=np.zeros(n, np.float32))


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308])
def test_sums_of_what_is_no_number(tmp_path: Path, value: float) -> None:
    made, given = scan(tmp_path, SCANS["sums"]), values(40)
    given["b"][0, 13:15] = value
    expected = np.cumsum([given["w"], *given["b"][0]])[1:]
    made(**given, f=np.zeros(40, np.float32))
    assert np.array_equal(np.isnan(given["A"][1]), np.isnan(expected))
    assert np.allclose(given["A"][1], expected, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize(
    "body",
    [
        "double s = 0; for (int i = 1; i < n - 1; i++) { s += b[0][i]; A[1][i] = s + A[1][i + 1]; }",
        "double s = 0; for (int i = 1; i < n; i++) { s += A[1][i - 1]; A[1][i] = s; }",
        "double s = 0; for (int i = 0; i < n; i++) { s += b[0][i]; if (s > 1) A[1][i] = s; }",
        "double s = 0; for (int i = 0; i < n; i++) { s += b[0][i]; A[1][(int)b[1][i] & 1] = s + A[1][0]; }",
    ],
)
def test_loops_that_carry_more_stay(tmp_path: Path, body: str) -> None:
    made = scan(tmp_path, body)
    for n in (3, 40):
        made(**values(n), f=np.zeros(n, np.float32))


def test_strict_sums_keep_their_order(tmp_path: Path) -> None:
    assert not is_in_vectors(scan(tmp_path, SCANS["sums"], fp="strict"), 61)
