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
