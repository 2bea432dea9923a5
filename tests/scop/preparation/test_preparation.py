"""Statements joined and substituted before dependences are asked for: what they become, and C's numbers."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from forms import read, transformed

from compiled_c import call
from polyloom.ir.evaluation.programs import evaluate_host
from polyloom.ir.expressions import Select, walk
from polyloom.ir.host import MdHom, Role
from polyloom.polyhedra.loops.tree import leaves_in
from polyloom.scop.preparation.branches import joined
from polyloom.scop.preparation.choices import with_choices_made
from polyloom.scop.preparation.coordinates import over_written
from polyloom.scop.preparation.forward_substitution import substituted
from polyloom.scop.preparation.remainders import with_remainders_joined
from polyloom.scop.preparation.unchanged import without_unchanged

SIGNS = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++) {
    unsigned s = 7;
    for (int j = 1; j < i; j++) {
      unsigned d = x[i][j] - x[i][j - 1];
      if (d > 5) s += d * w[j]; else s -= d * w[i];
    }
    y[i] = s;
  }
}"""

NO_ELSE = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (x[i][j] == w[j]) y[i] += 1; else y[i] = y[i];
    }
}"""

NESTED = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (x[i][j] > w[j]) y[i] += 3;
      else if (x[i][j] > w[i]) y[i] += x[j][i];
      else y[i] += w[j] * 5;
    }
}"""

CHAIN = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= i; j++) {
      unsigned a = x[i][j] ^ w[j];
      unsigned b = a * 3 + w[i];
      y[i] += b * x[j][i];
    }
}"""

TARGET_IN_THE_CONDITION = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (y[i] > x[i][j]) y[i] -= w[j]; else y[i] += w[j] + 1;
    }
}"""

OVERWRITTEN_IN_BETWEEN = """
void kernel(int n, const unsigned x[n][n], unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++) {
    unsigned old = w[i];
    w[i] = x[i][0] + 1;
    y[i] += old * w[i];
  }
}"""

OF_THE_ITERATION_BEFORE = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int z = 0; z < 1; z++) {
    unsigned old;
    for (int i = 0; i < n; i++) {
      if (i > 0) y[i] += old;
      old = x[i][i] * w[i];
    }
  }
}"""

SOMETIMES = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int z = 0; z < 1; z++) {
    unsigned d;
    for (int i = 0; i < n; i++) {
      if (i == 0 || w[i] > 3) d = x[i][i];
      y[i] = d * d;
    }
  }
}"""

TWO_IFS = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (y[i] > x[i][j]) y[i] -= w[j];
      if (y[i] <= x[i][j]) y[i] += w[j] + 1;
    }
}"""

BOTH_OR_NONE = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (x[i][j] > 2) y[i] += 5;
      if (x[i][j] <= 6) y[i] -= w[j];
      if (!(x[i][j] && w[j])) y[i] += 3;
      if (x[j][i] && w[j]) y[i] += 4;
    }
}"""

AS_AN_INDEX = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      unsigned bin = (x[i][j] + w[j]) % n;
      y[bin] += w[bin];
    }
}"""

SUMMED_AREA = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      y[i][j] = x[i][j] + (i > 0 ? y[i - 1][j] : 0) + (0 < j ? y[i][j - 1] : 0)
              - (i > 0 && j >= 1 ? y[i - 1][j - 1] : 0) * w[j];
}"""

STARTED_BY_PARAMETERS = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    y[i] = w[i] + (2 * i + 1 < n - 1 ? x[i][i] : i == n - 1 ? y[0] * 3 : y[i - 1]) * 5;
}"""

OF_DATA_AND_ITERATORS = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    y[i] = (i > 1 && w[i] > 4 ? y[i - 2] : w[i] > 2 ? (i > 0 ? y[i - 1] : 7) : x[i][0]) + w[i];
}"""

ELSE_IFS = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (x[i][j] > 2 && (w[j] == 1 || w[i] == 3)) y[i][j] = 1;
      else if (x[i][j] > 4 && w[i] > 2) y[i][j] = x[i][j] * 3;
      else y[i][j] = w[j];
    }
}"""

NO_LAST_ELSE = """
void kernel(int n, const unsigned x[n][n], const unsigned w[n], unsigned y[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      if (x[i][j] > 5) y[i][j] = 1;
      else if (w[i] > 3 && w[j] > 2) y[i][j] = x[i][j] * 3;
    }
}"""

TWO_STORES_EACH = """
void kernel(int n, const unsigned x[n][n], unsigned w[n], unsigned y[n][n]) {
  for (int i = 0; i < n; i++) {
    if (x[i][0] > 2) { y[i][0] = x[i][i]; w[i] = 1; }
    else { y[i][0] = w[i]; w[i] = 2 * x[0][i]; }
  }
}"""

CHANGED_BETWEEN = """
void kernel(int n, unsigned x[n][n], const unsigned w[n], unsigned y[n][n]) {
  for (int i = 0; i < n; i++) {
    if (x[i][0] > 2) y[i][0] = 4;
    if (x[i][0] > 2) x[i][0] = w[i];
    if (!(x[i][0] > 2)) y[i][0] = w[i] + 9;
  }
}"""

BRANCHES = {
    "else ifs": (ELSE_IFS, 1),
    "no last else": (NO_LAST_ELSE, 1),
    "two stores": (TWO_STORES_EACH, 2),
    "changed between": (CHANGED_BETWEEN, 3),
}

PROGRAMS = {
    "signs": SIGNS,
    "no else": NO_ELSE,
    "nested": NESTED,
    "chain": CHAIN,
    "target in the condition": TARGET_IN_THE_CONDITION,
    "overwritten in between": OVERWRITTEN_IN_BETWEEN,
    "of the iteration before": OF_THE_ITERATION_BEFORE,
    "sometimes": SOMETIMES,
    "two ifs": TWO_IFS,
    "both or none": BOTH_OR_NONE,
    "as an index": AS_AN_INDEX,
    "summed area": SUMMED_AREA,
    "started by parameters": STARTED_BY_PARAMETERS,
    "of data and iterators": OF_DATA_AND_ITERATORS,
}


def assert_as_c(source: str, n: int) -> None:
    numbers = np.random.default_rng(n)
    shapes = {"x": (n, n), "w": (n,), "y": (n, n) if "y[n][n]" in source else (n,)}
    arrays = {array: numbers.integers(0, 9, shape, np.uint32) for array, shape in shapes.items()}
    expected = call(source, "kernel", {"n": n, **arrays})
    program = transformed(source)
    given = {b.name: arrays[b.name] for b in program.buffers if b.role in (Role.INPUT, Role.UPDATED)}
    for array, values in {**arrays, **evaluate_host(program, {"n": n}, given)}.items():
        np.testing.assert_array_equal(values, expected[array])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("n", [1, 6])
def test_the_numbers_are_those_of_c(name: str, n: int) -> None:
    assert_as_c(PROGRAMS[name], n)


@pytest.mark.parametrize("name", BRANCHES)
@pytest.mark.parametrize("n", [1, 6, 9])
def test_branches_become_one_statement_for_each_element(name: str, n: int) -> None:
    source, statements = BRANCHES[name]
    assert len(joined(read(source)).statements) == statements
    assert_as_c(source, n)


@pytest.mark.parametrize("name", ["signs", "nested", "chain"])
def test_one_sum_and_no_array_of_its_values(name: str) -> None:
    program = transformed(PROGRAMS[name])
    (node,) = leaves_in(program.body)
    assert isinstance(node, MdHom)
    assert all(buffer.name in "xwy" for buffer in program.buffers)


def test_a_value_that_costs_much_is_computed_once() -> None:
    source = CHAIN.replace("b * x[j][i]", "b * x[j][i] + b")
    twice = source.replace("y[i] +=", "y[j] -= b; y[i] +=")
    dear = twice.replace("a * 3 + w[i]", "(a / 3 + w[i] / 5) / 7 % 11 / 2")
    assert [len(substituted(joined(read(text))).statements) for text in (source, twice, dear)] == [1, 2, 3]


def test_a_statement_without_loops_keeps_its_coordinates() -> None:
    source = "void f(int n, double a[n][n]) { a[0][0] = 1; for (int i = 0; i < n; i++) a[i][i] = 2; }"
    before, after = (form(read(source)).statements for form in (lambda s: s, over_written))
    assert [s.name for s in before] == [s.name for s in after]
    assert before[0].domain.is_equal(after[0].domain)


BETWEEN = """
void kernel(int n, unsigned x[n][n], unsigned y[n]) {
  for (int i = 0; i < n; i++)
    for (int j = 1; j < n; j++) {
      unsigned t = x[i][j - 1] * 3;
      %s
      y[i] += t;
    }
}
"""


@pytest.mark.parametrize(
    ("between", "statements"),
    [
        ("x[i][j] = t + 1;", 2),
        ("x[i][j - 1] = t + 1;", 3),
        ("for (int k = 0; k < 1; k++) x[i][j - 1] = 1;", 3),
        ("for (int k = 0; k < n; k++) x[i][k] = 1;", 3),
        ("if (j == 2) x[i][1] = 1;", 3),
        ("if (i == 1) x[1][j - 1] = 1;", 3),
    ],
)
def test_what_a_value_is_made_of_may_be_written_elsewhere(between: str, statements: int) -> None:
    source = BETWEEN % between
    assert len(substituted(joined(read(source))).statements) == statements
    arrays = {"x": np.arange(25, dtype=np.uint32).reshape(5, 5), "y": np.zeros(5, np.uint32)}
    expected = call(source, "kernel", {"n": 5, **arrays})
    for array, values in evaluate_host(transformed(source), {"n": 5}, arrays).items():
        np.testing.assert_array_equal(values, expected[array])


INSIDE = """
void kernel(int n, unsigned x[n][n], unsigned y[n][n], unsigned char c[n]) {
  for (int i = 1; i < n; i++) {
    %s
  }
}
"""


@pytest.mark.parametrize(
    ("body", "statements"),
    [
        ("unsigned t = x[i][0]; for (int j = 0; j < n; j++) y[i][j] += t * j;", 1),
        ("unsigned t = c[i]; for (int j = 0; j < n; j++) y[i][j] += t * j;", 1),
        ("unsigned t = x[i][0] * 3; for (int j = 0; j < n; j++) y[i][j] += t * j;", 2),
        ("unsigned t = x[i][i - 1]; for (int j = i; j < n; j++) x[i][j] -= t * x[i - 1][j];", 1),
        ("unsigned t = x[i][i]; for (int j = i; j < n; j++) x[i][j] -= t * x[i - 1][j];", 2),
        ("unsigned t = x[i][0]; for (int j = 0; j < n; j++) { y[i][j] += t; x[i][0] = y[i][j] * 5; }", 3),
        ("unsigned t = x[i][0]; x[i][0] = 7; for (int j = 0; j < n; j++) y[i][j] += t;", 3),
        ("unsigned t = x[i][0]; for (int j = 0; j < n; j++) y[i][j] += t; x[i][0] = y[i][1];", 2),
        ("x[i][0] += 2; unsigned t = x[i][0]; for (int j = 0; j < n; j++) y[i][j] += t;", 2),
        ("unsigned t = x[i][c[i]]; for (int j = 0; j < n; j++) y[i][j] += t; c[i] += 1;", 3),
        ("unsigned t = x[i][0]; for (int j = 0; j < n; j++) { t += x[i][j]; y[i][j] += t; }", 3),
        ("unsigned t = x[i][0]; if (t > 2) for (int j = 0; j < n; j++) y[i][j] += t;", 1),
    ],
)
def test_copies_are_read_by_loops_inside(body: str, statements: int) -> None:
    source = INSIDE % body
    assert len(substituted(joined(read(source))).statements) == statements
    numbers = np.random.default_rng(statements)
    arrays = {name: numbers.integers(0, 9, (5, 5), np.uint32) for name in "xy"}
    arrays["c"] = np.array([3, 0, 2, 2, 4], np.uint8)
    expected = call(source, "kernel", {"n": 5, **arrays})
    program = transformed(source)
    given = {b.name: arrays[b.name] for b in program.buffers if b.name in arrays}
    for array, values in {**arrays, **evaluate_host(program, {"n": 5}, given)}.items():
        np.testing.assert_array_equal(values, expected[array])


OVERWRITTEN = """
void kernel(int n, unsigned x[n][n], unsigned y[n][n]) {
  unsigned kept = 5;
  for (int i = 0; i < n; i++)
    for (int j = 1; j < n; j++) {
      unsigned best = x[i][j - 1] * 3, code = 0;
      %s
      y[i][j] = best * 4 + code;
    }
}
"""


@pytest.mark.parametrize(
    ("between", "statements"),
    [
        ("best += x[i][j]; best *= best; code = best + 1;", 1),
        ("if (x[i][j] > best) best = x[i][j];", 1),
        (
            "unsigned a = x[i][j], b = x[j][i];"
            "if (a > best) { best = a; code = 1; } if (b > best) { best = b; code = 2; }",
            1,
        ),
        ("y[i][0] = best; if (best > 9) code = best; best = 7; y[j][0] += best;", 4),
        ("if (x[i][j] > 4) best = x[i][0];", 3),
        ("if (x[i][j] > 4) best = x[i][j] / (x[i][j] - 4);", 3),
        ("if (j > 2) best = 1;", 3),
        ("if (j == 1) best = x[i][j]; if (best > 7) best = 7;", 4),
        ("if (i == 2) best = x[i][j]; best = best & 5;", 4),
        ("for (int k = 0; k < n; k++) best += x[k][j];", 3),
        ("code = kept; if (best > kept) kept = best;", 4),
        ("unsigned t = best; best = code; code = t; best += t;", 1),
    ],
)
def test_what_the_same_iteration_overwrites_is_a_value_too(between: str, statements: int) -> None:
    source = OVERWRITTEN % between
    numbers = np.random.default_rng(statements)
    arrays = {name: numbers.integers(0, 9, (5, 5), np.uint32) for name in "xy"}
    expected = call(source, "kernel", {"n": 5, **arrays})
    for array, values in evaluate_host(transformed(source), {"n": 5}, arrays).items():
        np.testing.assert_array_equal(values, expected[array])
    assert len(substituted(joined(read(source))).statements) == statements


@pytest.mark.slow
@pytest.mark.ci
def test_choices_of_its_own_array_become_statements() -> None:
    made = {name: with_choices_made(read(PROGRAMS[name])).statements for name in PROGRAMS}
    choosing = {
        name for name, statements in made.items() if len(statements) > len(read(PROGRAMS[name]).statements)
    }
    assert choosing == {"summed area", "started by parameters", "of data and iterators"}
    assert [len(made[name]) for name in sorted(choosing)] == [2, 3, 4]
    for piece in made["summed area"]:
        assert all(read.relation.domain().is_equal(piece.domain) for read in piece.reads)
        assert not any(isinstance(part, Select) for part in walk(piece.value))


def test_what_is_chosen_of_other_arrays_stays_one_statement() -> None:
    source = SUMMED_AREA.replace("y[i - 1]", "x[i - 1]").replace("y[i][j - 1]", "x[i][j - 1]")
    assert len(with_choices_made(read(source)).statements) == 1


def test_what_leaves_an_element_as_it_is_is_left_out() -> None:
    """The others read what it would write."""
    source = """void kernel(int n, int k, int a[n][n]) {
        for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) a[i][j] = a[i][k];
    }"""
    (before,) = read(source).statements
    (after,) = without_unchanged(read(source)).statements
    left = before.domain.subtract(after.domain)
    assert left.is_equal(isl.Set("[n, k] -> { S1[i, k] : 0 <= i < n and 0 <= k < n }"))
    assert all(isinstance(node, MdHom) for node in leaves_in(transformed(source).body))


def test_what_stores_everywhere_into_itself_stays() -> None:
    """There would be no statement left."""
    source = "void kernel(int n, int a[n]) { for (int i = 0; i < n; i++) a[i] = a[i]; }"
    part = read(source)
    assert without_unchanged(part) is part


CHECKERED = """void kernel(int n, unsigned x[n][n], unsigned w[n], unsigned y[n][n]) {
    for (int i = 1; i < n; i++) for (int j = 0; j < n; j++)
        if ((i + j) % 2 == 0) y[i][j] = x[i][j] + w[j]; else y[i][j] = x[i - 1][j];
}"""


def test_branches_by_a_remainder_are_a_choice() -> None:
    (statement,) = with_remainders_joined(read(CHECKERED)).statements
    assert not statement.domain.involves_locals()
    for n in (1, 2, 7):
        assert_as_c(CHECKERED, n)


@pytest.mark.parametrize(
    "text",
    [
        CHECKERED.replace("= x[i - 1][j]", "= y[i - 1][j]"),
        CHECKERED.replace("x[i - 1][j]", "x[i - 1][2 * j + 2 - (j + 1)]"),
        CHECKERED.replace("else y[i][j]", "else y[i - 1][j]"),
        CHECKERED.replace("else y", "else if ((i + j) % 3 == 1) y"),
    ],
    ids=["reads the array", "may not exist", "another element", "not all of the rest"],
)
def test_other_branches_by_remainders_stay_two(text: str) -> None:
    assert len(with_remainders_joined(read(text)).statements) == 2
