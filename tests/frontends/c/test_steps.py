"""Steps inside statements: taken apart where that is the same, refused else."""

from __future__ import annotations

import pytest

from polyloom.diagnostics import Source, Unsupported
from polyloom.frontends.c import read_c


def targets(statement: str) -> list[str]:
    text = f"void f(int n, int a[n], int b[n]) {{ int k = 0; for (int i = 0; i < n; i++) {{ {statement} }} }}"
    (scop,) = read_c(Source("f.c", text))
    return [s.target.array for s in scop.statements if s.iterators]


@pytest.mark.parametrize(
    ("statement", "order"),
    [
        ("if (b[i] > 0) a[k++] = b[i];", ["a", "k"]),
        ("if (b[i] > 0) a[++k] = b[i];", ["k", "a"]),
        ("if (b[i] > 0) a[i] = b[k--];", ["a", "k"]),
        ("if (b[i] > 0) { a[i] += b[--k]; }", ["k", "a"]),
        ("if (b[i] > 0) do { a[k++] = b[i]; } while (0);", ["a", "k"]),
        ("switch (b[i]) { case 1: a[k++] = 5; break; default: k += 2; }", ["a", "k", "k"]),
    ],
)
def test_steps_are_statements_before_or_after(statement: str, order: list[str]) -> None:
    assert targets(statement) == order


@pytest.mark.parametrize(
    "statement",
    [
        "a[k++] = b[k];",
        "a[i] = b[i] > 0 ? k++ : 0;",
        "a[i] = b[i] > 0 && k++;",
        "a[k++] = b[k++];",
    ],
)
def test_steps_of_which_it_is_not_known_stay_refused(statement: str) -> None:
    with pytest.raises(Unsupported, match="changes a variable inside an expression"):
        targets(statement)


def test_a_counter_that_both_branches_step_alike_is_an_induction_variable() -> None:
    text = """void f(int n, int a[n], int b[n]) {
      int k = 0, m = 0;
      for (int i = 0; i < n; i++) {
        if (b[i] > 0) { a[k] = b[i]; k++; } else { a[k] = -b[i]; k++; }
        if (b[i] > 0) { b[m] = i; m += 2; } else m++;
      }
    }"""
    (scop,) = read_c(Source("f.c", text))
    places = {s.target.array: s.target for s in scop.statements if s.iterators}
    assert not places["a"].computed
    assert places["b"].computed
