"""The instances that loops visit, worked out from their text, and loops where isl's generator is wrong."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest

from polyloom.polyhedra.loops.generate import (
    Branch,
    CodeBuilder,
    Instance,
    Loop,
    Name,
    Number,
    Operation,
    Tree,
    rename_iterator,
)
from polyloom.polyhedra.loops.meaning import visited, visited_in_order

CONTEXT = isl.Set("[n] -> { : 0 <= n <= 20 }")
I, N = Name("i"), Name("n")  # noqa: E741


def _loop(body: Tree, start: int = 0, step: int = 1) -> Tree:
    return (
        Loop(
            iterator="i", start=Number(start), condition=Operation("<", (I, N)), step=Number(step), body=body
        ),
    )


INSTANCE = Instance("S", (I, Operation("/", (Operation("-", (I, Number(3))), Number(2)))))


@pytest.mark.parametrize(
    ("tree", "points"),
    [
        (_loop((Instance("S", (I,)),)), "{ S[i] : 0 <= i < n }"),
        (_loop((Instance("S", (I,)),), 1, 3), "{ S[i] : 1 <= i < n and i mod 3 = 1 }"),
        (_loop((INSTANCE,), 3), "{ S[i, j] : 3 <= i < n and j = (i - 3)//2 }"),
        # C's division truncates: -3/2, -2/2 and -1/2 are -1, -1 and 0
        (_loop((INSTANCE,)), "{ S[i, j] : 3 <= i < n and j = (i - 3)//2; S[i, -1] : 0 <= i <= 1 and i < n; "
         "S[2, 0] : n > 2 }"),
        (
            _loop((Branch(Operation("==", (I, Number(2))), (Instance("A", ()),), (Instance("S", (I,)),)),)),
            "{ A[] : n > 2; S[i] : 0 <= i < n and i != 2 }",
        ),
        (_loop((Instance("S", (Operation("max", (I, Number(4))),)),)), "{ S[i] : 4 <= i < n; S[4] : n > 0 }"),
    ],
)  # fmt: skip
def test_what_loops_visit(tree: Tree, points: str) -> None:
    expected = isl.UnionSet(f"[n] -> {points}").intersect_params(CONTEXT)
    assert visited(tree, CONTEXT, {}).is_equal(expected)


def test_renamed_parameters() -> None:
    tree = _loop((Instance("S", (I,)),))
    renamed = tuple(replace(t, condition=Operation("<", (I, Name("m")))) for t in tree)
    assert visited(renamed, CONTEXT, {"n": "m"}).is_equal(visited(tree, CONTEXT, {}))


def test_only_loops_are_renamed() -> None:
    tree = rename_iterator(rename_iterator(_nested("i"), "n", "m"), "i", "index")
    assert tree == _nested("index")


def _nested(outer: str) -> Tree:
    inner = (Instance("S", (Name(outer), Name("j"))),)
    loop = Loop(
        iterator="j", start=N, condition=Operation("<=", (Name("j"), Name(outer))), step=Number(1), body=inner
    )
    return (
        Loop(
            iterator=outer,
            start=Number(0),
            condition=Operation("<", (Name(outer), N)),
            step=Number(1),
            body=(loop,),
        ),
    )


SCHEDULES = [
    "[n] -> { A[i] -> [i, 0] : 0 <= i < n; B[i] -> [i, 1] : 0 <= i < n and i mod 2 = 0 }",
    "[n] -> { S[i, j] -> [j, i] : 0 <= i <= j < n }",
    "[n] -> { S[] -> [] : n mod 4 >= 2 }",
    "[n] -> { S[i, j] -> [i, j] : 0 <= j <= 4 and -11n - 43i <= 22j <= 2 - 11n - 43i }",
]


@pytest.mark.parametrize("text", SCHEDULES)
@pytest.mark.parametrize("make", ["_scanning", "_filtering"])
def test_both_ways_visit_the_same(text: str, make: str) -> None:
    schedule = isl.UnionMap(text).intersect_params(CONTEXT)
    builder = CodeBuilder(CONTEXT, {})
    tree = getattr(builder, make)(schedule)
    assert visited(tree, CONTEXT, {}).is_equal(schedule.domain())


def test_wrong_loops_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = isl.UnionMap(SCHEDULES[0])
    builder = CodeBuilder(CONTEXT, {})
    right = builder.loops(schedule)
    monkeypatch.setattr(CodeBuilder, "_scanning", lambda self, schedule: right[:0])
    tree = builder.loops(schedule)
    assert tree and visited(tree, CONTEXT, {}).is_equal(schedule.intersect_params(CONTEXT).domain())


A, B = Instance("A", (I,)), Instance("B", (I,))
APART = (*_loop((A,)), *_loop((B,)))
ORDERS: list[tuple[Tree, str, bool]] = [
    (_loop((A, B)), "A[i] -> [i, 0]; B[i] -> [i, 1]", True),
    (_loop((B, A)), "A[i] -> [i, 0]; B[i] -> [i, 1]", False),
    (_loop((B, A)), "A[i] -> [i, 0]; B[i] -> [i, 0]", True),
    (APART, "A[i] -> [0, i]; B[i] -> [1, i]", True),
    (APART[::-1], "A[i] -> [0, i]; B[i] -> [1, i]", False),
    (APART, "A[i] -> [i, 0]; B[i] -> [i, 1]", False),
    (_loop((A, B)), "A[i] -> [0, i]; B[i] -> [1, i]", False),
    (_loop((A,)), "A[i] -> [-i]", False),
    (_loop((Branch(Operation("<", (I, Number(3))), (A,), (B,)),)), "A[i] -> [0, i]; B[i] -> [1, i]", True),
    (_loop((Branch(Operation("<", (I, Number(3))), (B,), (A,)),)), "A[i] -> [0, i]; B[i] -> [1, i]", False),
]


@pytest.mark.parametrize(("tree", "times", "holds"), ORDERS)
def test_the_order_of_what_loops_visit(tree: Tree, times: str, holds: bool) -> None:
    visits = visited(tree, CONTEXT, {})
    schedule = isl.UnionMap(f"[n] -> {{ {times} }}").intersect_domain(visits)
    assert visited_in_order(tree, schedule, CONTEXT, {}) is holds


def test_loops_in_another_order_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = isl.UnionMap("[n] -> { A[i] -> [i, 0] : 0 <= i < n; B[i] -> [i, 1] : 0 <= i < n }")
    monkeypatch.setattr(CodeBuilder, "_scanning", lambda self, schedule: APART)
    tree = CodeBuilder(CONTEXT, {}).loops(schedule)
    assert tree != APART
    assert visited_in_order(tree, schedule.intersect_params(CONTEXT), CONTEXT, {})
