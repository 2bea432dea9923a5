"""Integer expressions: C's division, conditions, folding, and their text."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyloom.ir.integers import fold, fold_tree, holds, integer, names_in_tree, values_of
from polyloom.ir.text.integers import integer_text, tree_lines
from polyloom.polyhedra.loops.tree import Branch, Instance, Loop, Name, Number, Operation

N, M = Name("n"), Name("m")
OPERATORS = ("+", "-", "*", "min", "max", "<", "<=", ">", ">=", "==", "!=")


def expressions() -> st.SearchStrategy:
    leaves = st.one_of(st.integers(-5, 9).map(Number), st.sampled_from([N, M]))

    def grown(inner: st.SearchStrategy) -> st.SearchStrategy:
        pairs = st.tuples(inner, inner)
        divisors = st.tuples(inner, st.sampled_from([Number(2), Number(3), Number(-4)]))
        comparison = st.builds(Operation, st.sampled_from(OPERATORS[5:]), pairs)
        return st.one_of(
            st.builds(Operation, st.sampled_from(OPERATORS[:5]), pairs),
            st.builds(Operation, st.sampled_from(["/", "%", "floor"]), divisors),
            st.builds(lambda c, p: Operation("?", (c, *p)), comparison, pairs),
        )

    return st.recursive(leaves, grown, max_leaves=8)


def test_division_goes_towards_zero() -> None:
    a = np.array([-7, -6, 7, 6])
    assert values_of(Operation("/", (N, Number(4))), {"n": a}).tolist() == [-1, -1, 1, 1]
    assert values_of(Operation("%", (N, Number(4))), {"n": a}).tolist() == [-3, -2, 3, 2]
    assert values_of(Operation("floor", (N, Number(4))), {"n": a}).tolist() == [-2, -2, 1, 1]
    with pytest.raises(ZeroDivisionError):
        integer(Operation("/", (N, M)), {"n": 1, "m": 0})


def test_conditions() -> None:
    inside = Operation("and", (Operation("<=", (Number(0), N)), Operation("<", (N, M))))
    assert holds(inside, {"n": 1, "m": 2})
    assert not holds(inside, {"n": 2, "m": 2})
    assert holds(Operation("or", (inside, Operation("not", (inside,)))), {"n": 5, "m": 2})


@given(expressions(), st.integers(-9, 9), st.integers(-9, 9))
def test_folding_keeps_the_value(expression: object, n: int, m: int) -> None:
    names = {"n": n, "m": m}
    wanted = integer(expression, names)
    assert integer(fold(expression, {"n": n}), names) == wanted
    assert fold(expression, names) == Number(wanted)


def test_known_branches_and_loops_of_trees() -> None:
    body = (Branch(Operation("<", (Name("i"), N)), (Instance("S", (Name("i"), M)),), (Instance("T", ()),)),)
    tree = (
        Loop(
            iterator="i", start=Number(0), condition=Operation("<", (Name("i"), M)), step=Number(1), body=body
        ),
    )
    assert names_in_tree(tree) == {"n", "m"}
    folded = fold_tree(tree, {"m": 4, "i": 7})
    assert list(tree_lines(folded)) == [
        "for i = 0; i < 4; i += 1",
        "  if i < n",
        "    S(i, 4)",
        "  else",
        "    T()",
    ]
    assert fold_tree(body, {"i": 1, "n": 2, "m": 3}) == (Instance("S", (Number(1), Number(3))),)


def test_text() -> None:
    product = Operation("*", (Number(2), Operation("+", (N, Number(1)))))
    assert integer_text(product) == "2 * (n + 1)"
    assert integer_text(Operation("-", (N, Operation("-", (M, Number(1)))))) == "n - (m - 1)"
    assert (
        integer_text(Operation("floor", (Operation("-", (N, Number(1))), Number(4)))) == "floor((n - 1) / 4)"
    )
    chosen = Operation("?", (Operation("<", (N, M)), N, M))
    assert integer_text(Operation("min", (chosen, Number(-3)))) == "min(n < m ? n : m, -3)"
