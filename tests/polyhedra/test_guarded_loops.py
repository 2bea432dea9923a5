"""Loops that are read off constraints visit exactly a set's points, in the order of their times."""

from __future__ import annotations

import islpy as isl
import pytest

from polyloom.polyhedra.loops.guarded import NoBounds, Timed, Times, guarded_loops
from polyloom.polyhedra.loops.meaning import visited
from polyloom.polyhedra.loops.tree import iterators_in

SETS = (
    "[n] -> { S[i, j] : 0 <= i < n and i <= j < 2n }",
    "[n, m] -> { S[i, j] : 0 <= i < n and 0 <= j <= m and (i + 2j) mod 3 = 1 }",
    "[n] -> { S[i, j] : 0 <= j < n and i = 2j + 1 }",
    "[n] -> { S[i, j] : (0 <= i < 5 and j = n) or (n <= i <= n + 3 and 2 <= 3j <= i) }",
    "[c0] -> { S[i, j] : 0 <= i <= floor(c0/4) and exists k : j = 5k + i and 0 <= j < 50 }",
    "[n] -> { S[i, j] : 0 <= i < n and 0 <= floor((i + floor(j/3))/2) <= 4 and 0 <= j < 9 }",
    "{ S[i, j] : 0 <= i < 3 and 0 <= j < 3 }",
    "[n] -> { S[i, j] : 0 <= i < n and 0 <= j < n and 1 = 0 }",
)


@pytest.mark.parametrize("text", SETS)
@pytest.mark.parametrize("times", [(0, (0, 1), 0, (1, 1), 0), ((0, -1), 2, (1, -1)), ((0, 1), (1, -1))])
def test_they_visit_the_set(text: str, times: Times) -> None:
    domain = isl.Set(text)
    context = isl.Set.universe(domain.get_space().params())
    tree = guarded_loops([Timed(domain, times)], context)
    assert visited(tree, context, {}).is_equal(isl.UnionSet.from_set(domain))


def test_statements_share_loops() -> None:
    a = Timed(isl.Set("[n] -> { A[i] : 0 <= i < n }"), (0, (0, 1), 0))
    b = Timed(isl.Set("[n] -> { B[i] : 3 <= i < n + 2 }"), (0, (0, 1), 1))
    context = isl.Set("[n] -> { : }")
    tree = guarded_loops([a, b], context)
    assert len(list(iterators_in(tree))) == 1
    assert visited(tree, context, {}).is_equal(
        isl.UnionSet.from_set(a.domain).union(isl.UnionSet.from_set(b.domain))
    )


def test_what_has_no_end_is_refused() -> None:
    with pytest.raises(NoBounds, match="S"):
        guarded_loops([Timed(isl.Set("{ S[i] : i >= 0 }"), ((0, 1),))], isl.Set("{ : }"))
