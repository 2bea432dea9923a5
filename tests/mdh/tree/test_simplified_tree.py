"""What is known of integers in trees is worked out, and nothing else changes."""

from __future__ import annotations

import pytest

from polyloom.ir.integers import integer
from polyloom.ir.text.integers import integer_text
from polyloom.mdh.tree.simplify import simple
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation

INDEX = Name("i")


def over(operator: str, a: IntExpression, n: int) -> IntExpression:
    return Operation(operator, (a, Number(n)))


FOUR = Operation("+", (Operation("*", (Number(4), INDEX)), Number(8)))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (over("/", FOUR, 4), "i + 2"),
        (over("%", FOUR, 4), "0"),
        (over("/", FOUR, 8), "(4 * i + 8) / 8"),
        (over("%", over("%", INDEX, 16), 4), "i % 4"),
        (over("%", over("%", INDEX, 16), 3), "i % 16 % 3"),
        (over("/", over("%", INDEX, 16), 16), "0"),
        (over("/", over("%", INDEX, 16), 8), "i % 16 / 8"),
    ],
)
def test_quotients(expression: IntExpression, text: str) -> None:
    """Those towards zero, as in C, of negative integers, too."""
    assert integer_text(simple(expression)) == text
    for i in range(-70, 70):
        assert integer(simple(expression), {"i": i}) == integer(expression, {"i": i})
