"""Hints in front of a reduction: they name what is stored behind it, and nothing changes by them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from test_c_source import assert_same

from polyloom.ir.expressions import Binary, BinaryOp, Constant, Read
from polyloom.ir.types import ElementType
from polyloom.mdh.print.c_source import c_source
from polyloom.mdh.tree.nodes import (
    Array,
    Code,
    Compute,
    For,
    Function,
    Kind,
    Load,
    Parameter,
    Space,
    Store,
    Totals,
    counted,
)
from polyloom.polyhedra.loops.tree import IntExpression, Name, Number, Operation, sum_of

I32 = ElementType.INT32
ROW, K, L = map(Name, "ikl")
HINT = re.compile(r"__builtin_prefetch\(&(.*), 1\);")


def rows(points: int, *, totals: bool = True) -> Function:
    """Return ``y[i][l] += sum over k of A[i][k] * x[k][l]``, two rows at once, eight lanes."""
    neutral = Compute(Constant(0, I32))
    names = ("first", "second")
    body: Code = tuple(
        Array(
            name=name,
            type=I32,
            shape=(Number(8),),
            space=Space.REGISTER,
            lanes=True,
            totals=Totals(None, 0) if totals else None,
        )
        for name in names
    )
    body += tuple(_lanes(Store(name, (L,), neutral)) for name in names)
    one, two, three = (Read(k, I32) for k in range(3))
    more = Binary(BinaryOp.ADD, one, Binary(BinaryOp.MULTIPLY, two, three))
    added = []
    for k, name in enumerate(names):
        loads = Load(name, (L,)), Load("A", (_row(k), K)), Load("x", (K, L))
        added.append(_lanes(Store(name, (L,), Compute(more, loads))))
    both = Binary(BinaryOp.ADD, one, two)
    body += (counted("k", Number(points), tuple(added)),)
    body += tuple(
        _lanes(Store("y", (_row(k), L), Compute(both, (Load("y", (_row(k), L)), Load(name, (L,))))))
        for k, name in enumerate(names)
    )
    return Function(
        name="rows",
        parameters=(
            Parameter(name="A", type=I32, shape=(Number(6), Number(points)), constant=True),
            Parameter(name="x", type=I32, shape=(Number(points), Number(8)), constant=True),
            Parameter(name="y", type=I32, shape=(Number(6), Number(8))),
        ),
        integers=(),
        body=(counted("i", Number(6), body, kind=Kind.GROUP, step=2),),
    )


def _row(k: int) -> IntExpression:
    return sum_of([(1, ROW), (1, Number(k))])


def _lanes(store: Store) -> For:
    return counted("l", Number(8), (store,), kind=Kind.VECTOR)


def hints(function: Function) -> list[str]:
    return HINT.findall(c_source(function))


def test_what_a_long_reduction_leaves_is_asked_for_before_it() -> None:
    text = c_source(rows(32))
    assert hints(rows(32)) == ["y[i][0]", "y[i + 1][0]"]
    assert text.index("__builtin_prefetch") < text.index("for (int64_t k")


@pytest.mark.parametrize(("points", "totals"), [(8, True), (32, False)])
def test_short_loops_and_other_stores_have_none(points: int, totals: bool) -> None:
    assert not hints(rows(points, totals=totals))


def test_results_are_the_same() -> None:
    rng = np.random.default_rng(5)
    shapes = {"A": (6, 32), "x": (32, 8), "y": (6, 8)}
    assert_same(rows(32), {n: rng.integers(-9, 9, shape).astype(np.int32) for n, shape in shapes.items()})


def test_a_loop_over_the_rest_asks_for_nothing_again() -> None:
    function = rows(60)
    (group,) = function.body
    assert isinstance(group, For)
    at = next(k for k, s in enumerate(group.body) if isinstance(s, For) and s.iterator == "k")
    loop = group.body[at]
    parts = (replace(loop, condition=Operation("<", (K, Number(30)))), replace(loop, start=Number(30)))
    both = replace(group, body=(*group.body[:at], *parts, *group.body[at + 1 :]))
    assert hints(replace(function, body=(both,))) == hints(function)
